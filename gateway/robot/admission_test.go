package robot

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
)

// TestTokensByQuery checks the names of query parameters that may hold the token. A web page needs them, because it
// cannot set headers for a WebSocket.
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

// bound is a registry with one robot that only its client may use, with the token "right".
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

// TestReasonOfARefusedUpgrade checks the errors of refused requests. A token is valid for one Client-Id; a request
// without a Client-Id is accepted as that client.
func TestReasonOfARefusedUpgrade(t *testing.T) {
	refused := 0
	s := NewServer(Options{Robots: bound{&registry{}}, RecordRefusal: func(*http.Request, error) { refused++ }, Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	server := httptest.NewServer(routesOf(t, s))
	defer server.Close()
	for name, c := range map[string]struct {
		id, client, token string
		status            int // 0 if the request is admitted; it then fails, because it is no WebSocket upgrade
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
		answer, text := httpservertest.Ask(t, http.MethodGet, url, "")
		if letIn := answer.StatusCode != 401; letIn != (c.status == 0) || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		if other := strings.Contains(text, "another Client-Id"); other != (c.says == "Client-Id") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if refused != 7 { // all requests, because the two admitted ones are no WebSocket upgrades
		t.Errorf("the owner is shown %d of them", refused)
	}
}

func TestBase(t *testing.T) {
	listener := &net.TCPAddr{IP: net.IPv4(192, 168, 1, 2), Port: 8003}
	for _, c := range []struct{ host, public, checkedIn, want string }{
		{"perch.local:9000", "", "http://10.9.1.66:8004", "http://perch.local:9000"},
		{"perch.local", "", "http://10.9.1.66:8004", "http://perch.local:8004"},
		{"192.168.1.2", "", "http://10.9.1.66:8004", "http://192.168.1.2:8004"},
		{"perch.local:", "", "http://10.9.1.66:8004", "http://perch.local:8004"},
		{"perch.local", "", "", "http://perch.local:8003"},
		{"perch.local", "", "http://10.9.1.66", "http://perch.local:8003"},
		{"perch.local", "", "\x00:\x00", "http://perch.local:8003"},
		{"perch.local", "http://perch.example:80", "http://10.9.1.66:8004", "http://perch.example:80"},
		{"", "http://perch.example:80", "", "http://perch.example:80"},
		{"", "", "http://10.9.1.66:8004", ""},
		{"[fe80::1]:8003", "", "", ""},
		{"[fe80::1]", "", "", ""},
		{"fe80::1", "", "", ""},
		{"perch.local:0", "", "", ""},
		{"perch.local:65536", "", "", ""},
		{"perch.local:http", "", "", ""},
		{"robot@perch.local", "", "", ""},
		{"perch.local/x", "", "", ""},
		{"perch local", "", "", ""},
		{strings.Repeat("x", 254), "", "", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, listener))
		if got := baseURL(r, c.public, c.checkedIn); got != c.want {
			t.Errorf("Host %q, public_url %q, checked in at %q: %q, want %q", c.host, c.public, c.checkedIn, got, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := baseURL(r, "", ""); got != "" {
		t.Errorf("without any port: %q", got)
	}
}

// TestPicturesGoWhereTheTalkIs checks that a robot is told to upload its pictures to the host to which its channel is
// connected, or to PublicURL, even if another client has checked in for the robot at another host.
func TestPicturesGoWhereTheTalkIs(t *testing.T) {
	for public, want := range map[string]string{"": "http://perch.local:8004/xiaozhi/vision/explain",
		"http://perch.example:80": "http://perch.example:80/xiaozhi/vision/explain"} {
		bus := event.NewBus()
		o := testOptions(&registry{admitted: device.Robot{BaseURL: "http://10.9.1.66:8004"}}, bus, mindSaying(agent.Done{End: agent.Continue}))
		o.PublicURL = public
		s := NewServer(o)
		server := httptest.NewServer(routesOf(t, s))
		// The firmware sends no port.
		conn, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/xiaozhi/v1/",
			socket.Options{MaxMessage: 1 << 16, Header: http.Header{"Host": {"perch.local"}, "Device-Id": {robotID.MAC()}}})
		must.Succeed(t, err)
		if err := conn.SendText(xiaozhi.AppendFromRobot(nil, "", xiaozhi.Hello{Version: 1, Transport: "websocket",
			Features: xiaozhi.Features{MCP: true}})); err != nil {
			t.Fatal(err)
		}
		for {
			_, data, err := conn.Receive()
			if err != nil {
				t.Fatalf("no address came: %v", err)
			}
			if strings.Contains(string(data), "capabilities") {
				if !strings.Contains(string(data), `"`+want+`"`) {
					t.Errorf("public_url %q: %s, want %s", public, data, want)
				}
				break
			}
		}
		conn.Drop()
		s.Close()
		server.Close()
		bus.Close()
	}
}
