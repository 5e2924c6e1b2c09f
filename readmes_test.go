package perch_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// translations of the README, which is the one that counts.
var translations = []string{"README.ja.md", "README.zh.md"}

// TestReadmesAreEqual: a translation of the README has its headings, and in each
// section its links, pictures, commands, rows and items. Only words differ.
func TestReadmesAreEqual(t *testing.T) {
	all := pages(t)
	english := sections(all["README.md"])
	if len(english) < 10 {
		t.Fatalf("the README has %d headings; the test does not see them", len(english))
	}
	for _, name := range translations {
		if all[name] == "" {
			t.Fatalf("there is no %s", name)
		}
		for _, other := range append(slices.Clone(translations), "README.md") {
			if other != name && !strings.Contains(all[name], "]("+other+")") {
				t.Errorf("%s does not lead to %s", name, other)
			}
		}
		for _, fault := range unlike(english, sections(all[name])) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// section is what a part of a page has beside its words.
type section struct {
	name, level string
	code        string   // its blocks, without their comments and texts
	links       []string // in alphabetical order, and so the others
	spans       []string // `of code`
	items       []string // the marks of its lists: -, 1.
	rows        int      // of tables
}

var (
	indented = regexp.MustCompile(`(?m)^    (\S.*)$`)
	comment  = regexp.MustCompile(`\s+#.*|"[^"]*"`)
	item     = regexp.MustCompile(`(?m)^(-|\d+\.) `)
	row      = regexp.MustCompile(`(?m)^\|`)
	headed   = regexp.MustCompile(`(?m)^(#+) (.*)$`)
)

// sections are the parts of a page, by its headings. Links among the readmes do not
// count.
func sections(page string) (all []section) {
	var blocks []string
	page = fenced.ReplaceAllStringFunc(page, func(b string) string {
		blocks = append(blocks, b)
		return fmt.Sprintf("    \x00%d", len(blocks)-1)
	})
	found := headed.FindAllStringSubmatchIndex(page, -1)
	for i, at := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		s := section{name: page[at[4]:at[5]], level: page[at[2]:at[3]]}
		body := page[at[1]:end]
		for _, line := range indented.FindAllStringSubmatch(body, -1) {
			text := line[1]
			if n := 0; strings.HasPrefix(text, "\x00") {
				fmt.Sscanf(text, "\x00%d", &n)
				text = blocks[n]
			}
			s.code += comment.ReplaceAllString(text, "") + "\n"
		}
		body = indented.ReplaceAllString(body, "")
		for _, l := range link.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(l[1], "README") {
				s.links = append(s.links, l[1])
			}
		}
		s.spans = coded.FindAllString(body, -1)
		s.rows = len(row.FindAllString(body, -1))
		s.items = item.FindAllString(body, -1)
		slices.Sort(s.links)
		slices.Sort(s.spans)
		s.spans = slices.Compact(s.spans)
		all = append(all, s)
	}
	return all
}

// unlike is where a translation differs from the page.
func unlike(page, translation []section) (faults []string) {
	for i, want := range page {
		if i >= len(translation) {
			return append(faults, fmt.Sprintf("%q is missing, and what follows it", want.name))
		}
		got := translation[i]
		differs := func(what string, want, got any) {
			if fmt.Sprint(want) != fmt.Sprint(got) {
				faults = append(faults, fmt.Sprintf("%q, which is %q: its %s are %v, want %v", translation[i].name, page[i].name, what, got, want))
			}
		}
		differs("levels", want.level, got.level)
		differs("code blocks", want.code, got.code)
		differs("links", want.links, got.links)
		differs("code spans", want.spans, got.spans)
		differs("list items", want.items, got.items)
		differs("rows", want.rows, got.rows)
	}
	if len(translation) > len(page) {
		faults = append(faults, fmt.Sprintf("%q is not in the page", translation[len(page)].name))
	}
	return faults
}

// TestTheTestSeesUnequalReadmes keeps TestReadmesAreEqual able to fail.
func TestTheTestSeesUnequalReadmes(t *testing.T) {
	page := "# A\n[b](c.md) `d`\n\n    make x # why\n\n## E\n- f\n- g\n\n| h |\n"
	same := "# あ\n`d` [い](c.md) [x](README.md)\n\n    make x # う\n\n## え\n- お\n- か\n\n| き |\n"
	if got := unlike(sections(page), sections(same)); got != nil {
		t.Errorf("a translation is unequal: %q", got)
	}
	for what, wrong := range map[string]string{
		"levels":      strings.Replace(same, "## え", "### え", 1),
		"links":       strings.Replace(same, "(c.md)", "(d.md)", 1),
		"code spans":  strings.Replace(same, "`d`", "", 1),
		"code blocks": strings.Replace(same, "make x", "make y", 1),
		"list items":  strings.Replace(same, "- か\n", "", 1),
		"rows":        strings.Replace(same, "| き |", "| き |\n| く |", 1),
		"is missing":  same[:strings.Index(same, "## え")],
		"is not in":   same + "## く\n",
	} {
		if got := unlike(sections(page), sections(wrong)); len(got) != 1 || !strings.Contains(got[0], what) {
			t.Errorf("%s: %q", what, got)
		}
	}
}
