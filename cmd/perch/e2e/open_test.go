package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/httpserver/httpservertest"
)

// TestOpenLetsABrowserIn: the link that perch open prints begins one session, which is valid for the owner's routes
// and for those of skins until it is ended.
func TestOpenLetsABrowserIn(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.Key = "the-key-of-the-skins"
	h := open(t, c, t.TempDir())
	out := h.command("open", 0, "/#/in/", "It works once")
	code := regexp.MustCompile(`/#/in/(\S+)`).FindStringSubmatch(out)[1]
	body := `{"code":"` + code + `"}`
	answer, text := httpservertest.Ask(t, http.MethodPost, h.URL("/session"), body)
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	cookie := answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value
	h.Expect(http.StatusUnauthorized, "wrong_key", http.MethodPost, "/session", body)

	h.Expect(http.StatusOK, `"how":"cookie"`, http.MethodGet, "/session", "", "Cookie", cookie)
	u, _ := url.Parse(h.URL(""))
	own := []string{"Cookie", cookie, "Origin", "http://" + u.Host, "X-Perch-Page", "1"}
	h.Expect(http.StatusOK, "parts", http.MethodGet, "/api/v1/status", "", "Cookie", cookie, "X-Perch-Page", "1")
	h.Expect(http.StatusOK, "agent_state", http.MethodGet, "/v1/vtuber/schema", "", "Cookie", cookie, "X-Perch-Page", "1")
	h.Expect(http.StatusAccepted, "id", http.MethodPost, "/api/v1/notifications", `{"text":"hello"}`, own...)
	for _, foreign := range []string{"http://127.0.0.1:8123", "http://evil.example"} {
		h.Expect(http.StatusForbidden, "foreign_origin", http.MethodPost, "/api/v1/notifications", `{"text":"hello"}`,
			"Cookie", cookie, "Origin", foreign)
	}
	// A session is not valid for the bridge.
	h.Expect(http.StatusForbidden, "no_key_set", http.MethodGet, "/api/perception/state", "", "Cookie", cookie, "X-Perch-Page", "1")
	h.Expect(http.StatusNoContent, "", http.MethodDelete, "/session", "", own...)
	h.Expect(http.StatusUnauthorized, "wrong_key", http.MethodGet, "/api/v1/status", "", "Cookie", cookie, "X-Perch-Page", "1")
}

// TestPageSwitchedOff: if the page is disabled, its routes do not exist, and nobody can log in.
func TestPageSwitchedOff(t *testing.T) {
	c := appliancetest.Config()
	c.Web.Enabled = false
	h := open(t, c, t.TempDir())
	for _, path := range []string{"/", "/session", "/robot", "/perch-card.js"} {
		h.Expect(http.StatusNotFound, "not_found", http.MethodGet, path, "")
	}
	h.command("open", 1, "nothing at this address")
}
