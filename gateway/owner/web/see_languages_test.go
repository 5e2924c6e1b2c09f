package web_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/language"
	"perch/must"
)

// pageWords returns the sentences of the page in a language, by view and key.
func pageWords(t *testing.T, tag language.Tag) (words map[string]map[string]string) {
	t.Helper()
	for _, name := range []string{"home.json", "page.json"} {
		text, err := os.ReadFile(filepath.Join("../../../language", string(tag), name))
		if err == nil {
			err = json.Unmarshal(text, &words)
		}
		must.Succeed(t, err)
	}
	return words
}

// seeLanguages checks that every view fits a phone in every language and shows no English sentence that is translated,
// and that the page changes its language without being reloaded.
func seeLanguages(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "adoption: code\n")
	h.Adopt(kitchenMAC)
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"Miso"}`, nil)
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"Miso","urgency":"high"}`, nil)
	words := map[language.Tag]map[string]map[string]string{}
	for _, tag := range language.All() {
		words[tag] = pageWords(t, tag)
	}
	// english returns the English sentences whose translation differs, with their translations.
	english := func(tag language.Tag) map[string]string {
		said, kept := map[string]string{}, map[string]bool{}
		for view, all := range words["en"] {
			for key, text := range all {
				own := words[tag][view][key]
				said[text], kept[text] = own, kept[text] || own == text
			}
		}
		for text, is := range kept {
			if is {
				delete(said, text)
			}
		}
		var labels map[string][]string // labels of the settings; in Spanish, "Red" means network
		text, err := os.ReadFile(filepath.Join("../../../language", string(tag), "labels.json"))
		if err == nil {
			err = json.Unmarshal(text, &labels)
		}
		must.Succeed(t, err)
		for _, label := range labels {
			delete(said, label[0])
		}
		return said
	}
	left := map[language.Tag]map[string]string{}
	for _, tag := range language.All()[1:] {
		left[tag] = english(tag)
	}
	b := c.comeIn(t, h)
	b.at(360, 800)
	b.open(h.LocalURL())
	for _, v := range views(kitchen) {
		b.view(v.hash, v.element)
		if v.hash == "settings" {
			value[bool](b, `(see.all(".group").forEach((group) => (group.open = true)), true)`)
		}
		for _, tag := range append(language.All()[1:], language.English) {
			value[bool](b, `(() => { // its list is in the menu, which covers the view
				const own = see.all("p-shell >>> [data-test=language]")[0];
				own.value = `+quote(string(tag))+`;
				return own.dispatchEvent(new Event("change"));
			})()`)
			b.until("document.documentElement.lang === " + quote(string(tag)))
			b.frame()
			if v.hash == "settings" { // the descriptions of the keys are loaded separately
				b.until(`see.all(".doc").length > 60`)
				b.until(`see.all(".doc [lang=en]").length < 30`)
			}
			b.fits("#/" + v.hash + " in " + string(tag))
			for _, text := range value[[]string](b, "see.leaves(see.one('main'))") {
				if own, is := left[tag][text]; is {
					t.Errorf("#/%s in %s says %q in English, and not %q", v.hash, tag, text, own)
				}
			}
		}
	}
}
