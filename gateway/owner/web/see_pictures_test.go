package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestPictures makes the pictures of docs/pictures in the folder that PERCH_SCREENSHOTS names, and is skipped without it:
// PERCH_SCREENSHOTS=$PWD/docs/pictures go test -run TestPictures ./gateway/owner/web
func TestPictures(t *testing.T) {
	to := os.Getenv("PERCH_SCREENSHOTS")
	if to == "" {
		t.Skip("PERCH_SCREENSHOTS names no folder for them")
	}
	c := startChromium(t)
	h, talked := livedIn(t)
	talked()
	h.Admin(http.MethodPost, "/api/v1/adopt", `{"robot":"`+guest+`"}`, nil)
	h.Admin(http.MethodPut, "/api/v1/devices/"+guest, `{"name":"Study"}`, nil)
	var asked []struct{ ID string }
	h.Admin(http.MethodGet, "/api/v1/permissions", "", &asked)
	for _, q := range asked {
		h.Admin(http.MethodPost, "/api/v1/permissions/"+q.ID, `{"allow":true}`, nil)
	}
	b := c.visit(t, h, "")
	for _, v := range []struct{ name, hash, element, shown, top string }{
		{"home", "", "p-home", "[data-test=robot-" + kitchen + "]", "p-shell"},
		{"robot", "robots/" + kitchen, "p-robot", "[data-test=transcript]", "p-shell"},
		{"settings", "settings", "p-settings", "#find", "p-shell"},
		{"turns", "turns", "p-turns", "[data-test=turn]", "p-shell"},
	} {
		b.view(v.hash, v.element)
		b.sees(v.shown)
		if v.name == "settings" {
			b.fill("#find", "quiet at night")
			b.sees("[data-test=key]")
		}
		b.sized(to, v.name, v.top)
	}
	b.at(1400, 900)
	b.open(startAppliance(t).LocalURL() + "robot") // the appliance adopts the robot in the page at once
	b.until(`see.one("[data-test=status]")?.dataset.state === "idle"`)
	b.talkInPage("what can you do")
	b.sized(to, "page", "body")
}

// talkInPage writes to the robot in the page, and waits for the robot's answer.
func (b *tab) talkInPage(text string) {
	b.t.Helper()
	b.fill("[data-test=write]", text)
	b.press(kb.Enter)
	b.says("[data-test=said-you]", text)
	b.sees("[data-test=said-robot]")
	b.until(`see.one("[data-test=status]").dataset.state !== "speaking"`)
}

// sized takes a picture in the size of a desktop and one in that of a phone, each with the element top at its top.
func (b *tab) sized(to, name, top string) {
	b.t.Helper()
	for suffix, size := range map[string][2]int64{"": {1400, 900}, "-narrow": {360, 780}} {
		b.at(size[0], size[1])
		value[bool](b, "(see.one("+quote(top)+").scrollIntoView({behavior: 'instant'}), document.fonts.ready.then(() => new Promise((r) => setTimeout(() => r(true), 300))))")
		path := filepath.Join(to, name+suffix+".jpg")
		b.picture(path)
		if info, err := os.Stat(path); err != nil || info.Size() > 150_000 {
			b.t.Errorf("%s is too large: %v %v", path, info, err)
		}
	}
}
