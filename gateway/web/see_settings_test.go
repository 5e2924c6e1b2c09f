package web_test

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
)

// gone is what a browser says of requests to an appliance that starts anew.
func gone() []string {
	return []string{"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"}
}

// file is the configuration of an appliance.
func file(h *appliancetest.Appliance) string {
	h.T.Helper()
	text, err := os.ReadFile(h.File)
	if err != nil {
		h.T.Fatal(err)
	}
	return string(text)
}

// set types a value of a key into its form.
func (b *tab) set(key, to string) {
	b.t.Helper()
	b.fill("#find", key)
	b.fill("[data-key='"+key+"'] >>> input", to)
	b.press(kb.Tab) // it is a change once the field is left
}

// seeSettings: a setting is refused with its fault, then set, which changes a line of
// the file, and applied by a restart that the page waits for. A fault is in the page's
// language, or marked as English.
func seeSettings(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house # by mDNS\n")
	before := file(h)
	b := c.comeIn(t, h)
	b.allow("status of 422")
	b.open(local(h) + "#/settings")
	b.set("name", "my house")
	b.click("[data-test=save]")
	b.says("[data-key=name]", "name")
	b.axe("a setting with a fault")
	b.choose("p-shell >>> [data-test=language]", "de")
	b.says("[data-key=name]", "kein Name für das Netz")
	b.lacks("[data-key=name] [lang=en]")
	b.set("skins.live2d_model", "/nowhere")
	b.click("[data-test=save]")
	b.says("[data-key='skins.live2d_model'] [lang=en]", "no such file") // which has no German words
	b.click("[data-key='skins.live2d_model'] [data-test=undo]")
	b.choose("p-shell >>> [data-test=language]", "en")
	if file(h) != before {
		t.Errorf("a fault was written:\n%s", file(h))
	}
	b.set("name", "cottage")
	b.click("[data-test=save]")
	b.sees("#restart")
	if got, want := file(h), strings.Replace(before, "name: house", "name: cottage", 1); got != want {
		t.Errorf("the file is:\n%s\nwant:\n%s", got, want)
	}
	if kept, err := os.ReadFile(h.File + ".before"); err != nil || string(kept) != before {
		t.Errorf("the one before is %q, %v", kept, err)
	}
	b.allow(gone()...)
	b.click("#restart")
	b.click("p-dialog [data-test=yes]")
	b.sees("#restarting")
	h = h.Again()
	b.lacks("#restarting")
	b.lacks("#restart")
	if h.Config().Name != "cottage" {
		t.Errorf("its name is %q", h.Config().Name)
	}
	b.says("main", "cottage")
}

// seeTwoConfigurations: an owner who has typed where another has saved is shown both,
// and loses nothing.
func seeTwoConfigurations(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house\n")
	first, second := c.comeIn(t, h), c.comeIn(t, h)
	for _, b := range []*tab{first, second} {
		b.allow("status of 409")
		b.open(local(h) + "#/settings")
	}
	second.click("[data-test=text]")
	second.click("#text")
	second.types("# ours\n")
	first.set("name", "cottage")
	first.click("[data-test=save]")
	first.sees("#restart")
	second.click("[data-test=save]")
	second.says("#theirs", "cottage")
	second.says("#mine", "ours")
	second.axe("two changes beside each other")
	if strings.Contains(file(h), "ours") {
		t.Errorf("one owner has overwritten what another did:\n%s", file(h))
	}
}

// seeFirstSteps: the first steps keep a household's languages, add one, and say which of
// them nothing understands.
func seeFirstSteps(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "language: [en, de]\n")
	const language = "main >>> [data-test=language]"
	b := c.comeIn(t, h)
	b.open(local(h) + "#/first")
	b.says(language, "English")
	b.until(`see.all("[data-test=also]").filter((e) => e.checked).map((e) => e.value).join() === "de"`)
	b.says("[data-test=unheard]", "understands German:")
	b.click("[data-test=also][value=ja]")
	b.says("[data-test=unheard]", "understands German and Japanese:")
	b.sees("[value='openjtalk, espeak']")
	b.choose(language, "fr")
	b.says("h1", "Premiers pas")
	b.says("[data-test=unheard]", "français, allemand et japonais")
	b.allow(gone()...)
	b.click("[data-test=save]")
	h = h.Again()
	b.sees("[data-phase=back]")
	if !strings.Contains(file(h), "\nlanguage: [fr, de, ja]\n") {
		t.Errorf("the file is:\n%s", file(h))
	}
	b.says(language, "français")
	b.choose(language, "de")
	b.says("h1", "ersten Minuten")
	b.until(`see.all("[data-test=also]").filter((e) => e.checked).map((e) => e.value).join() === "ja,fr"`)
	// The page speaks German now, and voices are tried in the language of the household.
	b.view("engines", "p-engines")
	b.says("h1", "Module")
	b.click("#synthesizer >>> [data-test=try]")
	b.says("p-try", "Bonjour")
}
