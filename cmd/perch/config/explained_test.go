package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perch/language"
	"perch/must"
)

// TestTranslations checks that the annotated sample documents each key, and that keys.json of each
// language is valid. A missing translation is no failure, because the page then shows the English text.
// "make translations" prints missing translations, translations of unknown keys, and translations that
// lack a name, address or number of the English text.
func TestTranslations(t *testing.T) {
	english := map[string]string{}
	config := Default()
	for _, k := range listKeys(new(checker), &config, Default(), nil, secretMasker{}) {
		inEntry := regexp.MustCompile(`\.\d+\.`).MatchString(k.Key) // a key in an entry of a list; the list has the documentation
		if k.Doc == "" && !inEntry {
			t.Errorf("the annotated sample does not explain %s", k.Key)
		}
		if k.Doc != "" {
			english[k.About] = k.Doc
		}
	}
	for _, kinds := range EngineKinds() {
		for _, k := range kinds {
			english[k.About] = k.Summary
		}
	}
	if len(english) < 70 {
		t.Fatalf("only %d keys are explained", len(english))
	}
	for _, tag := range language.All()[1:] {
		text, err := os.ReadFile(filepath.Join("../../../language", string(tag), "keys.json"))
		var own map[string]string
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		must.Succeed(t, err)
		for _, key := range slices.Sorted(maps.Keys(english)) {
			if own[key] == "" {
				t.Logf("%s does not explain %s", tag, key)
			}
		}
		for key, words := range own {
			if english[key] == "" {
				t.Logf("%s explains %s, which is no key", tag, key)
			}
			for _, word := range untranslated(english[key]) {
				if !strings.Contains(strings.ToLower(words), strings.ToLower(word)) {
					t.Logf("%s: %s does not name %s", tag, key, word)
				}
			}
		}
	}
}

// untranslated returns the names, addresses and numbers of a text, and its quoted words.
func untranslated(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, ".,;:()")
		if strings.ContainsAny(word, `0123456789_/"=:{`) || strings.Contains(word, ".") {
			words = append(words, word)
		}
	}
	return words
}

// TestSharedDocsBelongToOneOfTheirKeys: the documentation that several keys share belongs to one of these keys, or
// to their section.
func TestSharedDocsBelongToOneOfTheirKeys(t *testing.T) {
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
