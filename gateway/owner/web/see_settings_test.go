package web_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/must"
)

// gone is what a browser says of requests to an appliance that starts anew.
func gone() []string {
	return []string{"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"}
}

// file is the configuration of an appliance.
func file(h *appliancetest.Appliance) string {
	h.T.Helper()
	text, err := os.ReadFile(h.File)
	must.Succeed(h.T, err)
	return string(text)
}

// set types a value of a key into its form.
func (b *tab) set(key, to string) {
	b.t.Helper()
	b.fill("#find", key)
	b.fill("[data-key='"+key+"'] >>> input", to)
	b.press(kb.Tab) // it is a change once the field is left
}

// settings are what an owner has changed on the page.
func settings(h *appliancetest.Appliance) string {
	h.T.Helper()
	text, err := os.ReadFile(filepath.Join(h.Data, config.OverlayFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.T.Fatal(err)
	}
	return string(text)
}

// seeSettings: a setting is refused with its fault, then set, which leaves the owner's file as it
// is; the page says what needs a restart, and waits for it; the value is given back. A fault is in
// the page's language, or marked as English. A rule is written in YAML, a secret is replaced and
// not shown, and a text that is pasted is checked.
func seeSettings(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house # by mDNS\n")
	before := file(h)
	b := c.comeIn(t, h)
	b.allow("status of 422")
	b.open(h.LocalURL() + "#/settings")
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
	if settings(h) != "" {
		t.Errorf("a fault was written:\n%s", settings(h))
	}
	b.set("name", "cottage")
	b.click("[data-test=save]")
	b.sees("[data-key=name] [data-from=settings]")
	b.says("p-settings", "restart: name")
	b.set("skins.key", "another-key-of-the-screens")
	b.click("[data-test=save]")
	b.sees("[data-key='skins.key'] [data-from=settings]")
	b.lacks("p-settings >>> #bar")
	b.fill("#find", "rules")
	b.fill("[data-key=rules] >>> textarea", "- when: {event: touch}\n  do: [{say: hello}]\n")
	b.press(kb.Tab)
	b.click("[data-test=save]")
	b.sees("[data-key=rules] [data-from=settings]")
	if got := settings(h); !strings.Contains(got, "name: cottage\n") || !strings.Contains(got, "say: hello") || !strings.Contains(got, "key: another-key") {
		t.Errorf("the settings are:\n%s", got)
	}
	b.axe("settings that were changed")
	b.click("[data-test=text]")
	b.until(`see.all("#text")[0].value.includes("name: house # by mDNS") && see.all("#text")[0].value.includes("key: ••••••")`)
	b.click("#text")
	b.types("nmae: x\n")
	b.says("#faults", "nmae")
	b.axe("a text that is checked")
	b.allow(gone()...)
	b.click("#restart")
	b.click("p-dialog [data-test=yes]")
	b.sees("#restarting")
	h = h.Again()
	b.lacks("#restarting")
	b.lacks("#restart")
	if h.Config().Name != "cottage" || len(h.Config().Rules) != 1 {
		t.Errorf("its name is %q, and it has %d rules", h.Config().Name, len(h.Config().Rules))
	}
	b.click("[data-test=form]")
	b.says("main", "cottage")
	b.fill("#find", "name")
	b.click("[data-key=name] [data-test=reset]")
	b.click("[data-test=save]")
	b.sees("[data-key=name] [data-from=file]")
	if got := settings(h); strings.Contains(got, "cottage") {
		t.Errorf("the settings are:\n%s", got)
	}
	if file(h) != before {
		t.Errorf("the owner's file is:\n%s", file(h))
	}
}

// seeTwoConfigurations: two owners change different keys at the same time, and neither loses anything.
func seeTwoConfigurations(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: house\n")
	first, second := c.visit(t, h, "#/settings"), c.visit(t, h, "#/settings")
	second.set("timezone", "Europe/Berlin")
	first.set("name", "cottage")
	first.click("[data-test=save]")
	second.says("p-settings", "restart: name")
	second.click("[data-test=save]")
	second.sees("[data-key=timezone] [data-from=settings]")
	if got := settings(h); !strings.Contains(got, "name: cottage\ntimezone: Europe/Berlin\n") {
		t.Errorf("the settings are:\n%s", got)
	}
}

// seeFirstSteps: the first steps keep a household's languages, add one, and say which of
// them nothing understands.
func seeFirstSteps(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "language: [en, de]\n")
	const language = "main >>> [data-test=language]"
	b := c.visit(t, h, "#/first")
	b.says(language, "English")
	b.until(`see.all("[data-test=also]").filter((e) => e.checked).map((e) => e.value).join() === "de"`)
	b.says("[data-test=unheard]", "understands German:")
	b.click("[data-test=also][value=ja]")
	b.says("[data-test=unheard]", "understands German and Japanese:")
	b.sees("[value='openjtalk, espeak']")
	b.choose(language, "fr")
	b.says("h1", "Premiers pas")
	b.says("[data-test=unheard]", "français, allemand et japonais")
	b.click("[data-test=save]")
	b.sees("[data-phase=saved]") // without a restart
	if got := settings(h); !strings.Contains(got, "language:\n    - fr\n    - de\n    - ja\n") {
		t.Errorf("the settings are:\n%s", got)
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
