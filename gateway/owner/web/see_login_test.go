package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// Texts that a browser writes to the console when a login is refused.
const (
	notIn    = "status of 401"
	tooOften = "status of 429"
)

// enter logs in with the admin token.
func (b *tab) enter(h *appliancetest.Appliance) {
	b.t.Helper()
	b.open(h.URL("/"))
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.sees("main > p-home")
}

// seeComingIn checks that a page that needs the owner redirects to the login, which shows nothing of the appliance but
// its name.
func seeComingIn(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	b := c.browse(t)
	b.open(h.URL("/robot"))
	b.says("h1", "perch")
	b.inspect("coming in")
	if value[bool](b, `see.says("body", "`+kitchen+`") || see.has("[data-test=nav-home]")`) {
		t.Error("a stranger is shown what is the owner's")
	}
	b.allow(notIn)
	b.fill("#token", "wrong")
	b.click("[data-test=enter]")
	b.says("[data-test=refused]", "not the admin token")
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.until(`location.pathname === "/robot"`)
	b.open(h.URL("/"))
	b.sees("main > p-home")
	if value[string](b, "document.cookie") != "" {
		t.Error("scripts can read the cookie")
	}
	b.open(h.URL("/#/memory"))
	b.sees("main > p-memory")
}

// seeThisMachine checks that a browser on this machine can read everything without a login. An action that changes
// something asks for a login, and works afterwards.
func seeThisMachine(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "name: perch\n")
	b := c.browse(t)
	b.allow(notIn)
	b.open(h.LocalURL() + "#/memory")
	b.fill("[data-test=memory-text]", "The cat is called Miso.")
	b.click("[data-test=memory-add]")
	b.says("main", "perch open prints a link")
	b.sees("main > p-memory")
	b.click("[data-test=come-in]")
	b.sees("main > p-login")
	b.open(h.LocalURL())
	b.click("[data-test=first]") // the first steps begin with the login, because they change settings
	b.sees("main > p-login")
	b.axe("coming in on this machine")
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.step("language")
	b.lacks("[data-test=come-in]")
	b.open(h.LocalURL() + "#/memory")
	b.fill("[data-test=memory-text]", "The cat is called Miso.")
	b.click("[data-test=memory-add]")
	b.says("[data-test=memory]", "Miso")

	var made struct{ URLs []string }
	h.Admin(http.MethodPost, "/api/v1/link", "", &made)
	second := c.browse(t)
	second.open(made.URLs[len(made.URLs)-1]) // perch open opens this URL on a machine with a screen
	second.sees("main > p-home")
	second.lacks("[data-test=come-in]")
	second.sees("[data-test=logout]")
}

// seeLink checks that a link logs in once.
func seeLink(t *testing.T, c *chromium) {
	h := startAppliance(t)
	var made struct{ URLs []string }
	status, text := h.Owner(http.MethodPost, "/api/v1/link", "")
	if err := json.Unmarshal([]byte(text), &made); err != nil || len(made.URLs) == 0 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	at, err := url.Parse(made.URLs[0])
	must.Succeed(t, err)
	b := c.browse(t)
	b.open(h.URL("/#" + at.Fragment))
	b.sees("main > p-home")
	if here := value[string](b, "location.href"); here != h.URL("/#/") {
		t.Errorf("the code stays in the address: %s", here)
	}
	second := c.browse(t)
	second.allow(notIn)
	second.open(h.URL("/#" + at.Fragment))
	second.says("[data-test=refused]", "older than ten minutes")
	second.lacks("[data-test=nav-home]")
}

// seeCode checks that six digits log in once, and that an adopted robot can be requested to say a code.
func seeCode(t *testing.T, c *chromium) {
	h := startAppliance(t)
	var made struct{ Code string }
	_, text := h.Owner(http.MethodPost, "/api/v1/link", "")
	must.Succeed(t, json.Unmarshal([]byte(text), &made))
	b := c.browse(t)
	b.allow(notIn, "status of 409")
	b.open(h.URL("/"))
	b.sees("#code")
	b.lacks("[data-test=say-code]")
	h.Adopt(kitchenMAC)
	b.open(h.URL("/"))
	b.click("[data-test=say-code]")
	b.says("[data-test=refused]", "wake one of yours")
	b.inspect("coming in by a code")
	b.fill("#code", "12 34")
	b.click("[data-test=enter-code]")
	b.says("[data-test=refused]", "after five wrong tries")
	b.fill("#code", made.Code[:3]+" "+made.Code[3:])
	b.press(kb.Enter)
	b.sees("main > p-home")
}

// seeLockout checks that after ten wrong tokens the right one is refused too.
func seeLockout(t *testing.T, c *chromium) {
	h := startAppliance(t)
	b := c.browse(t)
	b.allow(notIn, tooOften)
	b.open(h.URL("/"))
	b.sees("#token")
	for range 9 { // quickly, because another try is allowed every six seconds
		if status := value[int](b, `fetch("session", { method: "POST", headers: { "Content-Type": "application/json" },
			body: '{"token":"wrong"}' }).then((r) => r.status)`); status != http.StatusUnauthorized {
			t.Errorf("a wrong token is answered with %d", status)
		}
	}
	b.fill("#token", "wrong")
	b.press(kb.Enter)
	b.says("[data-test=refused]", "not the admin token")
	b.until("!see.one('[data-test=enter]').busy")
	b.fill("#token", h.OwnerToken())
	b.press(kb.Enter)
	b.says("[data-test=refused]", "minute")
	b.lacks("[data-test=nav-home]")
}

// seeLoggingOut checks that a logout ends the session of one browser and the streams of its pages. Other browsers stay
// logged in until all sessions are ended with the button for that.
func seeLoggingOut(t *testing.T, c *chromium) {
	h := startAppliance(t)
	first, phone := c.browse(t), c.browse(t)
	first.enter(h)
	phone.enter(h)
	second := first.beside()
	second.open(h.URL("/#/memory"))
	second.sees("main > p-memory")
	for _, b := range []*tab{first, second, phone} {
		b.allow(notIn, "ERR_INCOMPLETE_CHUNKED_ENCODING") // Perch breaks off the stream of a session that has ended
		b.until("see.one('p-shell')?.link === 'fine'")
	}
	first.click("[data-test=logout]")
	isOut := func(b *tab) {
		b.sees("#token")
		b.lacks("[data-test=nav-home]")
	}
	isOut(first)
	isOut(second)
	phone.view("memory", "p-memory")
	first.enter(h)
	first.until("see.one('p-shell')?.link === 'fine'")
	first.click("[data-test=logout-all]")
	first.sees("p-dialog [data-test=yes]")
	first.axe("the question of whether all sessions end")
	first.click("p-dialog [data-test=yes]")
	isOut(first)
	isOut(phone)
}
