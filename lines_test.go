package perch_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Columns of a line of Go, where a tab counts as 4 and gofmt's alignment as one
// space; and how long a literal may be before its line is exempt, because a
// literal is not cut.
const (
	mostColumns = 150
	longLiteral = 100
)

// TestLines: a line of Go has at most 150 columns.
func TestLines(t *testing.T) {
	for _, name := range goFiles(t, "") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text[:min(len(text), 300)], []byte("Code generated")) {
			continue
		}
		for _, n := range longLines(text) {
			t.Errorf("%s:%d is longer than %d columns", name, n, mostColumns)
		}
	}
}

var alignment = regexp.MustCompile(" {2,}")

// longLines are the numbers of the lines that are too long.
func longLines(text []byte) (long []int) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	exempt := map[int]bool{}
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.STRING && utf8.RuneCountInString(literal) >= longLiteral {
			first := file.Line(at)
			for n := range strings.Count(literal, "\n") + 1 {
				exempt[first+n] = true
			}
		}
	}
	for i, line := range strings.Split(string(text), "\n") {
		line = alignment.ReplaceAllString(strings.ReplaceAll(line, "\t", "...."), " ")
		if utf8.RuneCountInString(line) > mostColumns && !exempt[i+1] {
			long = append(long, i+1)
		}
	}
	return long
}

// TestTheTestSeesLongLines keeps TestLines able to fail.
func TestTheTestSeesLongLines(t *testing.T) {
	word := strings.Repeat("x", 148)
	text := "package p\n\n// " + word + "\n\tvar a" + word[:141] + " int\nvar b = \"" + word + "\"\n" +
		"var c = `\n" + word + word + "`\nvar d = \"\" // " + word + "\n"
	if got := longLines([]byte(text)); !slices.Equal(got, []int{3, 4, 8}) {
		t.Errorf("lines %v are too long, want 3, 4 and 8", got)
	}
}
