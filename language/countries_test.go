package language

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"perch/must"
)

// TestCountries checks the lists of countries of perch-portal: the names in each language are those of
// CLDR, in the order of the language. perch-portal embeds the lists, because the tables of CLDR would
// enlarge the program by 2.3 MB. With PERCH_GOLDEN=rewrite the test writes the lists.
func TestCountries(t *testing.T) {
	folder := filepath.Join("..", "packaging", "image", "portal", "countries")
	english := must.Value(os.ReadFile(filepath.Join(folder, "en.txt")))(t)
	for _, tag := range All()[1:] {
		own := language.Make(string(tag))
		var names []string
		codes := map[string]string{}
		for line := range strings.Lines(string(english)) {
			code, _, is := strings.Cut(line, "\t")
			if !is {
				continue
			}
			name := display.Regions(own).Name(language.MustParseRegion(code))
			if name == "" || codes[name] != "" {
				t.Errorf("%s: %s is %q, as %q is", tag, code, name, codes[name])
			}
			codes[name], names = code, append(names, name)
		}
		order := collate.New(own)
		slices.SortFunc(names, order.CompareString)
		var want strings.Builder
		want.WriteString("# ISO 3166-1: two letters and the name, as CLDR has them. TestCountries of package language writes this.\n")
		for _, name := range names {
			fmt.Fprintf(&want, "%s\t%s\n", codes[name], name)
		}
		file := filepath.Join(folder, string(tag)+".txt")
		if os.Getenv("PERCH_GOLDEN") == "rewrite" {
			must.Succeed(t, os.WriteFile(file, []byte(want.String()), 0o644))
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
			t.Errorf("%s is not as CLDR has it (%v); PERCH_GOLDEN=rewrite go test ./language -run TestCountries writes it", file, err)
		}
	}
}
