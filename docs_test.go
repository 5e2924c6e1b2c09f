package perch_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are all that people read, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/how-to/*.md", "firmware-tools/discovery/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(name)] = string(text)
		}
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	coded   = regexp.MustCompile("`[^`\n]*`")
)

// anchors are the names by which the headings of a page can be linked to, as
// GitHub makes them.
func anchors(page string) []string {
	var all []string
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(h[1]))
		all = append(all, kept)
	}
	return all
}

// links are where a page leads to within this repository: a path, and the name
// of a heading there or nothing.
func links(name, page string) (all [][2]string) {
	page = coded.ReplaceAllString(fenced.ReplaceAllString(page, ""), "")
	for _, l := range link.FindAllStringSubmatch(page, -1) {
		if strings.Contains(l[1], ":") {
			continue // elsewhere
		}
		to, anchor, _ := strings.Cut(l[1], "#")
		if to == "" {
			to = path.Base(name)
		}
		all = append(all, [2]string{path.Join(path.Dir(name), to), anchor})
	}
	return all
}

// TestLinks: every link between pages leads to something that is there, and
// whoever begins at the README comes to every page of docs.
func TestLinks(t *testing.T) {
	all := pages(t)
	seen, total := map[string]bool{}, 0
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, l := range links(name, all[name]) {
			visit(l[0])
		}
	}
	visit("README.md")
	for name, page := range all {
		if !seen[name] && strings.HasPrefix(name, "docs/") {
			t.Errorf("no link leads to %s from the README", name)
		}
		for _, l := range links(name, page) {
			total++
			if _, err := os.Stat(l[0]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if l[1] != "" && !slices.Contains(anchors(all[l[0]]), l[1]) {
				t.Errorf("%s leads to %s#%s, which is no heading there", name, l[0], l[1])
			}
		}
	}
	if total < 60 {
		t.Errorf("only %d links were found; the test does not see the pages", total)
	}
}

// TestTheTestSeesWrongLinks keeps TestLinks able to fail.
func TestTheTestSeesWrongLinks(t *testing.T) {
	page := "# A page: *one*, two\n```\n# no heading\n[no](link)\n```\n[a](b.md#c), [a](../b.md) [a](#a-page-one-two) `[no](link)` [x](https://example.org/x.md)\n"
	want := [][2]string{{"docs/b.md", "c"}, {"b.md", ""}, {"docs/a.md", "a-page-one-two"}}
	if got := links("docs/a.md", page); !slices.Equal(got, want) {
		t.Errorf("links %v, want %v", got, want)
	}
	if got := anchors(page); !slices.Equal(got, []string{"a-page-one-two"}) {
		t.Errorf("headings %v", got)
	}
}

// TestGlossary: the glossary is short, and in alphabetical order.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "|---|---|\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) < 20 || len(rows) > 30 {
		t.Errorf("the glossary has %d words, want 20 to 30", len(rows))
	}
	if !slices.IsSorted(rows) {
		t.Error("the words are not in alphabetical order")
	}
}

// TestMakeHelp: make help lists every target.
func TestMakeHelp(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	listed, err := exec.CommandContext(t.Context(), "make", "-s", "help").CombinedOutput()
	if err != nil {
		t.Fatalf("make help: %v\n%s", err, listed)
	}
	_, phony, _ := strings.Cut(string(text), ".PHONY:")
	phony, _, _ = strings.Cut(phony, "\n")
	targets := strings.Fields(phony)
	if len(targets) < 10 {
		t.Fatalf("targets %v", targets)
	}
	for _, target := range targets {
		if !strings.Contains("\n"+string(listed), "\n  "+target+" ") {
			t.Errorf("make help does not list %s", target)
		}
	}
}
