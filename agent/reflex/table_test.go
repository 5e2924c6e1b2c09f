package reflex_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"perch/agent/reflex"
	"perch/language"
	"perch/must"
)

// TestTableOfIntents compares the table in docs/reflex.md with the sentences of each language.
// PERCH_GOLDEN=rewrite writes it.
func TestTableOfIntents(t *testing.T) {
	var names []string
	has := map[string]map[language.Tag]bool{}
	for _, tag := range language.All() {
		b := must.Value(reflex.Load(string(tag), ""))(t)
		for _, name := range b.Intents() {
			if has[name] == nil {
				names, has[name] = append(names, name), map[language.Tag]bool{}
			}
			has[name][tag] = true
		}
	}
	slices.Sort(names)
	table := "| intent |"
	for _, tag := range language.All() {
		table += fmt.Sprintf(" `%s` |", tag)
	}
	table += "\n|---|" + strings.Repeat("---|", len(language.All())) + "\n"
	for _, name := range names {
		table += "| " + name + " |"
		for _, tag := range language.All() {
			if has[name][tag] {
				table += " yes |"
			} else {
				table += " |"
			}
		}
		table += "\n"
	}
	const path, begin, end = "../../docs/reflex.md", "<!-- intents by language -->\n", "<!-- end of intents -->"
	text := must.Value(os.ReadFile(path))(t)
	before, rest, found := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the table", path)
	case old == table:
	case os.Getenv("PERCH_GOLDEN") == "rewrite":
		must.Succeed(t, os.WriteFile(path, []byte(before+begin+table+end+after), 0o644))
	default:
		t.Errorf("the table in %s is of other sentences; PERCH_GOLDEN=rewrite go test ./agent/reflex writes it", path)
	}
}
