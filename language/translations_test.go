package language

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"perch/must"
)

// TestTranslations checks what findings.json of each language says: each value belongs to a
// verb of the English format. What a language lacks is English on the page and no failure;
// "make translations" prints it, and what is translated and no longer said.
func TestTranslations(t *testing.T) {
	verb := regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]`)
	place := regexp.MustCompile(`\{(\d+)\}`)
	programs := programTexts(t)
	all := map[Tag]map[string]string{}
	known := map[string]bool{}
	for _, tag := range All()[1:] {
		text, err := os.ReadFile(filepath.Join(string(tag), "findings.json"))
		own := map[string]string{}
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		must.Succeed(t, err)
		all[tag] = own
		for format, words := range own {
			known[format] = true
			if strings.TrimSpace(words) == "" {
				t.Errorf("%s has no words for %q", tag, format)
			}
			if !strings.ContainsFunc(verb.ReplaceAllString(format, ""), unicode.IsLetter) {
				t.Errorf("%s: %q fits every sentence", tag, format)
			}
			for _, m := range place.FindAllStringSubmatch(words, -1) {
				if n, _ := strconv.Atoi(m[1]); n < 1 || n > len(verb.FindAllString(format, -1)) {
					t.Errorf("%s has no value for %s of %q", tag, m[0], words)
				}
			}
		}
	}
	for _, tag := range All()[1:] {
		for _, format := range slices.Sorted(maps.Keys(known)) {
			switch _, has := all[tag][format]; {
			case programs.named[format] == "" && has:
				t.Logf("%s: no program says %q", tag, format)
			case programs.named[format] != "" && !has:
				t.Logf("%s lacks %q", tag, format)
			}
		}
	}
	for _, format := range slices.Sorted(maps.Keys(programs.errors)) {
		if !known[format] {
			t.Logf("no language has %q of %s", format, programs.errors[format])
		}
	}
}
