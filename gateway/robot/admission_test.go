package robot

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/device"
	"perch/gateway/door/doortest"
)

// TestTokensByQuery: a page cannot set headers for its WebSocket, and names the
// token in the address as it likes.
func TestTokensByQuery(t *testing.T) {
	for query, want := range map[string]string{
		"authorization=a":                      "a",
		"authorization=Bearer%20a":             "a",
		"token=a":                              "a",
		"access_token=a":                       "a",
		"access_token=Bearer+a":                "a",
		"authorization=a&token=b":              "a",
		"token=&access_token=a":                "a",
		"device-id=a0b1c2d3e4f5&client-id=abc": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/?"+query, nil)
		if _, _, got := identity(r); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		r.Header.Set("Authorization", "Bearer h")
		if _, _, got := identity(r); got != "h" {
			t.Errorf("%s, with a header: %q", query, got)
		}
	}
}

// bound is a registry with one robot, as the true one admits it.
type bound struct{ *registry }

var boundTo = device.NewClient("mine")

func (bound) Get(id device.ID) (device.Robot, error) {
	if id != robotID {
		return device.Robot{}, device.ErrUnknownRobot
	}
	return device.Robot{ID: id, Bound: true, Client: boundTo}, nil
}

func (b bound) Admit(id device.ID, c device.Client, token string) (device.Robot, error) {
	if id != robotID || c != boundTo || token != "right" {
		return device.Robot{}, device.ErrToken
	}
	return b.Get(id)
}

// TestWhyARobotIsTurnedAway: a token is one client's, and another client gets
// that error. A client without Client-Id is the one of the token.
func TestWhyARobotIsTurnedAway(t *testing.T) {
	s := NewServer(Options{Robots: bound{&registry{}}, Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	server := httptest.NewServer(routesOf(t, s))
	defer server.Close()
	for name, c := range map[string]struct {
		id, client, token string
		status            int // 400 and more is that of an upgrade that is none: it was let in
		says              string
	}{
		"right":             {"a0b1c2d3e4f5", "mine", "right", 0, ""},
		"no client":         {"a0b1c2d3e4f5", "", "right", 0, ""},
		"another client":    {"a0b1c2d3e4f5", "other", "right", 401, "Client-Id"},
		"no token":          {"a0b1c2d3e4f5", "mine", "", 401, "missing or wrong"},
		"nothing":           {"a0b1c2d3e4f5", "", "", 401, "missing or wrong"},
		"nobody":            {"020000000001", "mine", "right", 401, "missing or wrong"},
		"nobody, no client": {"020000000001", "", "right", 401, "missing or wrong"},
	} {
		url := server.URL + "/xiaozhi/v1/?device-id=" + c.id + "&client-id=" + c.client + "&token=" + c.token
		answer, text := doortest.Ask(t, http.MethodGet, url, "")
		if letIn := answer.StatusCode != 401; letIn != (c.status == 0) || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		if other := strings.Contains(text, "another Client-Id"); other != (c.says == "Client-Id") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
