package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// attributes are the names that lines of the log have for things. One thing has
// one name everywhere, so that a search for a robot or a session finds all of
// it: who it was about comes first, and what went wrong is err.
var attributes = []string{
	"robot", "session", "err",
	"why", // a channel is closed, which is no fault

	// Who and what else.
	"agent", "appliance", "behaviour", "board", "boards", "broker", "engine", "event", "file", "firmware", "model", "path", "relay", "server",
	"sha256", "table", "key", "text", "thing", "tool", "topic", "base_topic", "verb", "version", "name", "project", "title", "kind", "voice",
	"language",

	// Where.
	"address", "addresses", "data", "host", "instance", "listen", "services", "url", "by", "next",

	// How much, and how.
	"bytes", "dropped", "dropped_before", "events", "first", "limit", "tools", "turns", "took", "waiting", "pairs", "loss", "most", "most_a_second",
	"offered", "left_out", "from", "to",
	"recognizers", "synthesizers", "servers", "names", "until", "part", "what", "listener", "count", "latest",
	"allowed", "answered", "files", "made", "used", "framing", "force", "how", "runs", "said", "stderr", "panic",
}

// TestLogLinesNameThingsAlike reads every line that is logged.
func TestLogLinesNameThingsAlike(t *testing.T) {
	lines := 0
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{"testdata", "firmware-tools", ".git", "dist"}, d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			names, logs := logged(call)
			if logs {
				lines++
			}
			for _, name := range names {
				used[name] = true
				if !slices.Contains(attributes, name) {
					t.Errorf("%s: %q is no name that lines of the log have for a thing", files.Position(call.Pos()), name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 100 {
		t.Errorf("only %d lines are logged; the test does not see them", lines)
	}
	for _, name := range attributes {
		if !used[name] {
			t.Errorf("no line has a thing of the name %q", name)
		}
	}
}

// logged are the names in a call that writes to a log, or gives it attributes.
func logged(call *ast.CallExpr) (names []string, logs bool) {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return nil, false
	}
	first := map[string]int{
		"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "log": 3,
	}
	at, is := first[method.Sel.Name]
	if !is || !slices.Contains([]string{"log", "Log", "Logger", "logger", "slog", "out", "refused", "quiet"}, lastName(method.X)) {
		return nil, false
	}
	for ; at < len(call.Args); at += 2 {
		literal, is := call.Args[at].(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return names, true // attributes that are handed on
		}
		if name, err := strconv.Unquote(literal.Value); err == nil {
			names = append(names, name)
		}
	}
	return names, true
}

// lastName is how an expression's value is called: log of a.door.log.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
