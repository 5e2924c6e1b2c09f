package ota_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/must"
	"perch/ota"
)

// TestReplyToTheByte compares the bytes of replies.
func TestReplyToTheByte(t *testing.T) {
	kathmandu := must.Value(time.LoadLocation("Asia/Kathmandu"))(t)
	h := newFixture(t, device.AdoptCode, func(o *ota.Options) { o.Zone, o.Framing = kathmandu, 3 })
	request := ota.Request{Host: "192.168.1.9:8003", DeviceID: "a0:b1:c2:d3:e4:f5", ClientID: "one"}
	got := checkIn(t, h, request)
	robot := must.Value(h.robots.Get("a0b1c2d3e4f5"))(t)
	then := time.UnixMilli(1785153600123)
	code := h.robots.Code(robot, then)
	want := `{"server_time":{"timestamp":1785153600123,"timezone_offset":345},"firmware":{"version":"0","url":""},` +
		fmt.Sprintf(`"activation":{"message":"Adopt this robot: perch robot adopt %s","code":"%s","challenge":"%s"}}`, code, code, code)
	if got != want {
		t.Errorf("waiting, it gets\n%s\nwant\n%s", got, want)
	}
	for tag, says := range map[string]string{"ja": "このロボットを迎えてください: perch robot adopt " + code, "de-AT": "Nimm diesen Roboter auf: perch robot adopt " + code,
		"xx, fr;q=0.5": "Adoptez ce robot : perch robot adopt " + code, "xx": "Adopt this robot: perch robot adopt " + code,
		strings.Repeat("xx,", 5000): "Adopt this robot: perch robot adopt " + code} {
		request.Language = tag
		if got := checkIn(t, h, request); !strings.Contains(got, says) {
			t.Errorf("waiting, one in %.40s gets %s", tag, got)
		}
	}
	request.Language = ""
	must.Value(h.robots.Adopt(code, then))(t)
	got = checkIn(t, h, request)
	want = `{"server_time":{"timestamp":1785153600123,"timezone_offset":345},"firmware":{"version":"0","url":""},` +
		`"websocket":{"url":"ws://192.168.1.9:8003/xiaozhi/v1/","token":"` + device.Key("key").Token("a0b1c2d3e4f5", device.NewClient("one"), 0) +
		`","version":3}}`
	if got != want {
		t.Errorf("adopted, it gets\n%s\nwant\n%s", got, want)
	}
}

func checkIn(t *testing.T, h *fixture, r ota.Request) string {
	t.Helper()
	reply := must.Value(h.service.CheckIn(r, time.UnixMilli(1785153600123)))(t)
	text := must.Value(json.Marshal(reply))(t)
	return string(text)
}

func TestRobotsGetLocalTime(t *testing.T) {
	summer, winter := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		zone string
		at   time.Time
		want int // minutes
	}{
		{"UTC", summer, 0},
		{"Asia/Kathmandu", summer, 345},
		{"America/New_York", winter, -300},
		{"America/New_York", summer, -240},
		{"America/St_Johns", winter, -210},
		{"America/St_Johns", summer, -150},
		{"Europe/Berlin", winter, 60},
		{"Europe/Berlin", summer, 120},
		{"Australia/Lord_Howe", winter, 660},
		{"Pacific/Kiritimati", summer, 840},
		{"America/New_York", time.Date(2026, 3, 8, 6, 59, 59, 0, time.UTC), -300},
		{"America/New_York", time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), -240},
	} {
		zone := must.Value(time.LoadLocation(c.zone))(t)
		h := newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.Zone = zone })
		reply, err := h.service.CheckIn(ota.Request{Host: "perch", DeviceID: "a0b1c2d3e4f5"}, c.at)
		if err != nil || reply.ServerTime.Offset != c.want || reply.ServerTime.Timestamp != c.at.UnixMilli() {
			t.Errorf("%s at %v: %+v (%v), want %d minutes", c.zone, c.at, reply.ServerTime, err, c.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for host, want := range map[string]string{
		"perch.local:8003":                    "ws://perch.local:8003/xiaozhi/v1/",
		"perch.local":                         "ws://perch.local:80/xiaozhi/v1/",
		"192.168.1.9":                         "ws://192.168.1.9:80/xiaozhi/v1/",
		"192.168.1.9:1":                       "ws://192.168.1.9:1/xiaozhi/v1/",
		"PERCH.local:65535":                   "ws://PERCH.local:65535/xiaozhi/v1/",
		"perch:+80":                           "",
		"perch:0":                             "",
		"perch:65536":                         "",
		"perch:-1":                            "",
		"perch:8003x":                         "",
		"perch:":                              "",
		"":                                    "",
		":8003":                               "",
		"[::1]:8003":                          "", // the firmware cannot parse an IPv6 address
		"[fe80::1]":                           "",
		"perch:80:80":                         "",
		"user@perch:80":                       "",
		"perch/evil:80":                       "",
		"perch?x:80":                          "",
		"perch#x":                             "",
		"a b":                                 "",
		"perch\"}:80":                         "",
		"perch\\n":                            "",
		"perch\r\nX: y":                       "",
		"pérch:80":                            "",
		"perch\x00:80":                        "",
		"%70erch":                             "",
		strings.Repeat("a", 253) + ":8003":    "ws://" + strings.Repeat("a", 253) + ":8003/xiaozhi/v1/",
		strings.Repeat("a", 254) + ":8003":    "",
		strings.Repeat("a", 15<<10) + ":8003": "",
	} {
		h := newFixture(t, device.AdoptOpen)
		w := h.ask(http.MethodPost, "/xiaozhi/ota/", host, headers(), whole)
		if want == "" {
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"bad_host"`) || w.Body.Len() > 1000 {
				t.Errorf("Host %.60q: %d %.300s", host, w.Code, w.Body)
			}
			if len(h.robots.List()) != 0 {
				t.Errorf("Host %.60q: the robot is remembered all the same", host)
			}
			continue
		}
		if f := mustRead(t, w); f.url != want {
			t.Errorf("Host %q: %s, want %s", host, f.url, want)
		}
		robot, err := h.robots.Get("a0b1c2d3e4f5")
		if err != nil || robot.BaseURL+"/xiaozhi/v1/" != strings.Replace(want, "ws:", "http:", 1) {
			t.Errorf("Host %q: remembered is %q (%v)", host, robot.BaseURL, err)
		}
	}
}

func TestPublicURLOverridesHost(t *testing.T) {
	h := newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.PublicURL = "http://perch.example:80" })
	for _, host := range []string{"192.168.1.9:8003", "a b", ""} {
		w := h.ask(http.MethodPost, "/xiaozhi/ota/", host, headers(), whole)
		if f := mustRead(t, w); f.url != "ws://perch.example:80/xiaozhi/v1/" {
			t.Errorf("Host %q: %s", host, f.url)
		}
	}
}

// TestWhatIsRemembered checks which details of a robot are registered from the body and the headers. Either is
// enough; the body has precedence, except for the language.
func TestWhatIsRemembered(t *testing.T) {
	const long = "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"
	bodyOnly := `{"application":{"version":"2.4.0"},"board":{"name":"bread"},"language":"zh-CN"}`
	for _, c := range []struct {
		name, agent, accept, body, board, firmware, language string
	}{
		{"both", "m5stack-stack-chan/1.2.4", "en-US", bodyOnly, "bread", "2.4.0", "en-US"},
		{"headers", "m5stack-stack-chan/1.2.4", "en-US", "", "m5stack-stack-chan", "1.2.4", "en-US"},
		{"body", "", "", bodyOnly, "bread", "2.4.0", "zh-CN"},
		{"broken body", "m5stack-stack-chan/1.2.4", "", bodyOnly[:30], "m5stack-stack-chan", "1.2.4", ""},
		{"neither", "", "", "", "", "", ""},
		{"a web page", browser, "de", `{"application":{"name":"web-test","version":"1.0.0"},"board":{"type":"web"}}`, "web", "1.0.0", "de"},
		{"a web page without a board", browser, "", `{"application":{"name":"web-test"}}`, "web-test", "", ""},
		{"a browser that says nothing", browser, "", "", "", "", ""},
		{"no version", "curl", "", "[]", "curl", "", ""},
		{"long", "x" + long + "/" + long, long + "x", "", ("x" + long)[:99], long[:100], long[:100]},
		{"no text", "\xffboard/\xfe1", "", "", "board", "1", ""},
	} {
		h := newFixture(t, device.AdoptOpen)
		header := headers()
		header.Set("User-Agent", c.agent)
		header.Set("Accept-Language", c.accept)
		mustRead(t, h.ask(http.MethodPost, "/xiaozhi/ota/", "perch:8003", header, c.body))
		r, err := h.robots.Get("a0b1c2d3e4f5")
		if err != nil || r.Board != c.board || r.Firmware != c.firmware || r.Language != c.language || r.Address != "192.168.1.40" {
			t.Errorf("%s: %+v (%v)", c.name, r, err)
		}
	}
}

func TestRobotSeen(t *testing.T) {
	type who struct{ client, what string }
	for _, c := range []struct {
		name     string
		adoption device.Adoption
		visits   []who
		last     event.RobotSeen
	}{
		{"new, with open adoption", device.AdoptOpen, []who{{"one", ""}}, event.RobotSeen{New: true}},
		{"known", device.AdoptOpen, []who{{"one", ""}, {"one", ""}}, event.RobotSeen{}},
		{"with another flash", device.AdoptOpen, []who{{"one", ""}, {"two", ""}}, event.RobotSeen{Waiting: true}},
		{"forgotten", device.AdoptOpen, []who{{"one", "forget"}, {"one", ""}}, event.RobotSeen{New: true}},
		{"new, with a code", device.AdoptCode, []who{{"one", ""}}, event.RobotSeen{New: true, Waiting: true}},
		{"still waiting", device.AdoptCode, []who{{"one", ""}, {"one", ""}}, event.RobotSeen{Waiting: true}},
		{"adopted", device.AdoptCode, []who{{"one", "adopt"}, {"one", ""}}, event.RobotSeen{}},
	} {
		h := newFixture(t, c.adoption)
		var last event.RobotSeen
		for _, v := range c.visits {
			header := headers()
			header.Set("Client-Id", v.client)
			h.boot(t, header)
			last = h.seen(t)
			switch v.what {
			case "adopt":
				h.adopt(t, "a0b1c2d3e4f5")
			case "forget":
				must.Succeed(t, h.robots.Forget("a0b1c2d3e4f5"))
			}
		}
		c.last.Board, c.last.Firmware, c.last.Address = "m5stack-stack-chan", "1.2.4", "192.168.1.40"
		if last != c.last {
			t.Errorf("%s: %+v, want %+v", c.name, last, c.last)
		}
	}
}

func TestServerAECNeedsTimestamps(t *testing.T) {
	h := newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.Framing = 3 })
	robot := ota.Request{DeviceID: "a0:b1:c2:d3:e4:f5", ClientID: "c", Host: "perch.local:8003"}
	for _, c := range []struct {
		ours    bool
		version int
	}{{false, 3}, {true, 2}, {false, 3}} {
		h.robots.StoreEcho("a0b1c2d3e4f5", c.ours)
		reply, err := h.service.CheckIn(robot, time.Now())
		if err != nil || reply.WebSocket.Version != c.version {
			t.Errorf("echo ours %v: %+v, %v", c.ours, reply.WebSocket, err)
		}
	}
}
