package language

import (
	"encoding/json"
	"io/fs"
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

// TestPageIsWhole checks that the sentences of the page and of the face exist in every language, with the same
// values as in English and with the plural forms of the language, and that there are no others.
func TestPageIsWhole(t *testing.T) {
	for name, least := range map[string]int{"home.json": 120, "page.json": 700, "face.json": 30} {
		words := map[Tag]*Words{}
		for _, tag := range All() {
			words[tag] = &Words{Tag: tag, messages: map[string]message{}}
			if err := words[tag].add(os.DirFS("."), string(tag)+"/"+name); err != nil {
				t.Error(err)
			}
			for _, fault := range differences(words[English], words[tag]) {
				t.Errorf("%s/%s: %s", tag, name, fault)
			}
			for key, said := range words[tag].messages {
				if len(said) == 0 {
					t.Errorf("%s/%s: %s is empty", tag, name, key)
				}
			}
		}
		if n := len(words[English].keys()); n < least {
			t.Errorf("%s has %d messages; the test does not see them", name, n)
		}
	}
}

// TestPageIsUsed checks that the scripts of the page use every sentence. A script may build the name of a
// sentence from a literal part and a value, such as `framing${n}`.
func TestPageIsUsed(t *testing.T) {
	var scripts strings.Builder
	err := filepath.WalkDir("../gateway/owner/web/ui/src", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".ts" {
			return err
		}
		text, err := os.ReadFile(name)
		scripts.Write(text)
		return err
	})
	must.Succeed(t, err)
	var made []*regexp.Regexp
	for _, m := range regexp.MustCompile("`([a-zA-Z_]*)\\$\\{[^}`]+\\}([a-zA-Z_]*)`").FindAllStringSubmatch(scripts.String(), -1) {
		if m[1]+m[2] != "" {
			made = append(made, regexp.MustCompile("^"+m[1]+`\w+`+m[2]+"$"))
		}
	}
	named := func(name string) bool {
		return strings.Contains(scripts.String(), `"`+name+`"`) ||
			slices.ContainsFunc(made, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	}
	english := &Words{Tag: English, messages: map[string]message{}}
	must.Succeed(t, english.add(os.DirFS("."), "en/home.json"))
	must.Succeed(t, english.add(os.DirFS("."), "en/page.json"))
	for _, key := range english.keys() {
		view, name, _ := strings.Cut(key, ".")
		if view == "refusals" || view == "parts" { // the server sends these names; other tests check them
			continue
		}
		if !named(name) || !strings.Contains(scripts.String(), `catalogue("`+view+`")`) {
			t.Errorf("no script says %s", key)
		}
	}
}

// TestTranslations checks findings.json of each language: each value must belong to a verb of the English
// format, and the notes of all parts must be translated. It only logs other sentences without a translation,
// which the page shows in English, and translations that no program uses any more. "make translations" prints
// this log.
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
			case programs.notes[format] != "" && !has:
				t.Errorf("%s lacks the note %q", tag, format)
			case programs.named[format] != "" && !has:
				t.Logf("%s lacks %q", tag, format)
			}
		}
	}
	for _, note := range slices.Sorted(maps.Keys(programs.notes)) {
		if !known[note] && note != "" && note != "%s at %s" { // the name and the address of a program, which are the same in all languages
			t.Errorf("no language has the note %q of %s", note, programs.notes[note])
		}
	}
	for _, format := range slices.Sorted(maps.Keys(programs.errors)) {
		if !known[format] {
			t.Logf("no language has %q of %s", format, programs.errors[format])
		}
	}
}
