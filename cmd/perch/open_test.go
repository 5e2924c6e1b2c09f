package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/door/doortest"
)

// TestOpenLetsABrowserIn: what perch open prints is good once, for a session that the
// owner's doors and skins' socket take, and whose end ends it.
func TestOpenLetsABrowserIn(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.Key = "the-key-of-the-skins"
	h := open(t, c, t.TempDir())
	out := h.command("open", 0, "/#/in/", "It works once")
	code := regexp.MustCompile(`/#/in/(\S+)`).FindStringSubmatch(out)[1]
	body := `{"code":"` + code + `"}`
	answer, text := doortest.Ask(t, http.MethodPost, h.URL("/session"), body)
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
	h.Expect(http.StatusForbidden, "no_key_set", http.MethodGet, "/api/perception/state", "", "Cookie", cookie, "X-Perch-Page", "1") // the bridge is not the owner's
	h.Expect(http.StatusNoContent, "", http.MethodDelete, "/session", "", own...)
	h.Expect(http.StatusUnauthorized, "wrong_key", http.MethodGet, "/api/v1/status", "", "Cookie", cookie, "X-Perch-Page", "1")
}

// TestAQRCodeIsDrawn with its margin: each character is two modules, one above the other.
func TestAQRCodeIsDrawn(t *testing.T) {
	rows := []string{"101", "010", "110"}
	var got [][]byte
	for line := range strings.Lines(drawQR(rows)) {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[30;107m"), "\x1b[0m\n")
		var up, down []byte
		for _, c := range line {
			i := strings.IndexRune(" ▀▄█", c)
			both := map[int]string{0: "00", 1: "10", 4: "01", 7: "11"}[i]
			up, down = append(up, both[0]), append(down, both[1])
		}
		got = append(got, up, down)
	}
	var text strings.Builder
	for _, row := range got {
		text.WriteString(string(row) + "\n")
	}
	want := strings.Join([]string{"0000000", "0000000", "0010100", "0001000", "0011000", "0000000", "0000000", "0000000", ""}, "\n")
	if text.String() != want {
		t.Errorf("it is\n%s, want\n%s", text.String(), want)
	}
}

// TestWithoutThePage: there is none, and nobody comes in by it.
func TestWithoutThePage(t *testing.T) {
	c := appliancetest.Config()
	c.Web.Enabled = false
	h := open(t, c, t.TempDir())
	for _, path := range []string{"/", "/session", "/robot", "/perch-card.js"} {
		h.Expect(http.StatusNotFound, "not_found", http.MethodGet, path, "")
	}
	h.command("open", 1, "nothing at this address")
}
