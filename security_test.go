package perch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatSecurityNamesExists: a claim that names a test is held by it, and the
// whole is short enough to be read.
func TestWhatSecurityNamesExists(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 180 {
		t.Errorf("it has %d lines", lines)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				tests[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Fatalf("only %d tests are named", len(named))
	}
	for _, n := range named {
		if !tests[n[1]] {
			t.Errorf("it names %s, which does not exist", n[1])
		}
	}
}
