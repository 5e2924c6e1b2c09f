package robot

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/perception"
	"perch/socket"
	"perch/store/storetest"
)

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
		if got := base(r, c.public, c.checkedIn); got != c.want {
			t.Errorf("Host %q, public_url %q, checked in at %q: %q, want %q", c.host, c.public, c.checkedIn, got, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := base(r, "", ""); got != "" {
		t.Errorf("without any port: %q", got)
	}
}

// claimed is a registry where somebody has checked in with a robot's MAC from
// elsewhere.
type claimed struct{ *registry }

func (claimed) Admit(id device.ID, _ device.Client, _ string) (device.Robot, error) {
	return device.Robot{ID: id, BaseURL: "http://10.9.1.66:8004"}, nil
}

// TestPicturesGoWhereTheTalkIs: a client that has claimed another address for a robot,
// it sends its pictures to the one that its own channel came to.
func TestPicturesGoWhereTheTalkIs(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for public, want := range map[string]string{"": "http://perch.local:8004/xiaozhi/vision/explain",
		"http://perch.example:80": "http://perch.example:80/xiaozhi/vision/explain"} {
		bus := event.NewBus()
		s := NewServer(Options{Robots: claimed{&registry{}}, Bus: bus, Senses: perception.NewIntake(bus, nil, quiet),
			Mind:        mindSaying(agent.Done{End: agent.Continue}),
			Records:     NewRecords(&storetest.Table[SessionRecord]{}, &storetest.Table[TurnRecord]{}, 10),
			Commands:    NewCommandQueue(&storetest.Table[[]Command]{}),
			Synthesizer: &beepSynthesizer{}, Phrases: func(string) string { return "" }, Zone: time.UTC, Log: quiet, PublicURL: public})
		server := httptest.NewServer(routesOf(t, s))
		// The firmware sends no port.
		conn, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/xiaozhi/v1/",
			socket.Options{MaxMessage: 1 << 16, Header: http.Header{"Host": {"perch.local"}, "Device-Id": {robotID.MAC()}}})
		if err != nil {
			t.Fatal(err)
		}
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
