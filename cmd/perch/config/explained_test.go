package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perch/language"
)

// TestKeysAreExplained: the settings view explains each key in each language. English is
// the comment of the annotated sample; language/TAG/keys.json has the others, each with
// the names, addresses and numbers of the English one, and none of a key that is gone.
// testdata/explained.txt holds of which English sentence each is, so that none stays behind
// when that is changed; PERCH_GOLDEN=rewrite writes it.
func TestKeysAreExplained(t *testing.T) {
	english := map[string]string{}
	config := Default()
	for _, k := range new(checker).keys(&config, nil) {
		inEntry := regexp.MustCompile(`\.\d+\.`).MatchString(k.Key) // an engine's, of which its list says what there is
		if k.Doc == "" && !inEntry {
			t.Errorf("the annotated sample does not explain %s", k.Key)
		}
		if k.Doc != "" {
			english[k.About] = k.Doc
		}
	}
	if len(english) < 70 {
		t.Fatalf("only %d keys are explained", len(english))
	}
	for _, tag := range language.All()[1:] {
		name := filepath.Join("../../../language", string(tag), "keys.json")
		var own map[string]string
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(english)) {
			if strings.TrimSpace(own[key]) == "" {
				t.Errorf("%s does not explain %s", name, key)
				continue
			}
			for _, word := range untranslated(english[key]) {
				if !strings.Contains(strings.ToLower(own[key]), strings.ToLower(word)) {
					t.Errorf("%s: %s is not said with %s", name, key, word)
				}
			}
		}
		for key := range own {
			if english[key] == "" {
				t.Errorf("%s explains %s, which the sample does not", name, key)
			}
		}
	}
	holdsEnglish(t, english)
}

// untranslated are the names, addresses and numbers of a text, and its quoted words.
func untranslated(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, ".,;:()")
		if strings.ContainsAny(word, `0123456789_/"=:{`) || strings.Contains(word, ".") {
			words = append(words, word)
		}
	}
	return words
}

// holdsEnglish fails the test for each key whose English has changed since it was translated.
func holdsEnglish(t *testing.T, english map[string]string) {
	t.Helper()
	var now strings.Builder
	for _, key := range slices.Sorted(maps.Keys(english)) {
		sum := sha256.Sum256([]byte(strings.Join(strings.Fields(english[key]), " ")))
		fmt.Fprintf(&now, "%s %s\n", key, hex.EncodeToString(sum[:4]))
	}
	file := filepath.Join("testdata", "explained.txt")
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	then, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(now.String()) {
		if !strings.Contains("\n"+string(then), "\n"+line) {
			key, _, _ := strings.Cut(line, " ")
			t.Errorf("packaging/perch.yaml has a new text for %s: translate it in language/*/keys.json, then "+
				"PERCH_GOLDEN=rewrite go test ./cmd/perch/config -run TestKeysAreExplained", key)
		}
	}
	if !t.Failed() && now.String() != string(then) {
		t.Errorf("%s has keys that are gone", file)
	}
}

// TestDocsStandWhereTheySay: a text of several keys is that of one of them, or of their section.
func TestDocsStandWhereTheySay(t *testing.T) {
	docs := sampleDocs()
	for key, about := range map[string]string{
		"name": "name", "tls.listen": "tls.listen", "behaviours.dance.every": "behaviours.dance", "mqtt.password_file": "mqtt.user",
		"robots.mqtt.tls": "robots.mqtt", "wyoming.listen": "wyoming",
	} {
		if got := docs[key]; got.about != about || got.text == "" || got.text != docs[about].text {
			t.Errorf("%s is explained at %s: %s", key, got.about, got.text)
		}
	}
}
