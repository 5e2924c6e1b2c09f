package ota_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/must"
	"perch/ota"
)

// TestTransports: a robot is told of one transport, its own or everybody's, and of MQTT
// only where that is served and the client is no page.
func TestTransports(t *testing.T) {
	served := ota.MQTT{Port: 1884, Topic: "perch"}
	for name, c := range map[string]struct {
		all, own device.Transport
		mqtt     ota.MQTT
		agent    string
		want     device.Transport
	}{
		"nothing said":                {"", "", served, "", device.WebSocket},
		"everybody's":                 {device.MQTT, "", served, "", device.MQTT},
		"its own":                     {device.WebSocket, device.MQTT, served, "", device.MQTT},
		"its own against everybody's": {device.MQTT, device.WebSocket, served, "", device.WebSocket},
		"not served":                  {device.MQTT, device.MQTT, ota.MQTT{}, "", device.WebSocket},
		"a page":                      {device.MQTT, "", served, browser, device.WebSocket},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, device.AdoptOpen, func(o *ota.Options) { o.Transport, o.MQTT = c.all, c.mqtt })
			given := func() map[string]json.RawMessage {
				r := httptest.NewRequest("POST", "http://192.168.1.5:8003/xiaozhi/ota/", strings.NewReader(whole))
				r.Header = headers()
				if c.agent != "" {
					r.Header.Set("User-Agent", c.agent)
					r.Header.Set("Origin", "https://panel.example")
				}
				w := httptest.NewRecorder()
				h.handler.ServeHTTP(w, r)
				var reply map[string]json.RawMessage
				must.Succeed(t, json.Unmarshal(w.Body.Bytes(), &reply))
				return reply
			}
			given()
			if c.own != "" {
				if _, err := h.robots.Adopt("a0b1c2d3e4f5", time.Now()); err != nil {
					t.Fatal(err)
				}
				own := string(c.own)
				if _, err := h.robots.Configure("a0b1c2d3e4f5", device.Change{Transport: &own}); err != nil {
					t.Fatal(err)
				}
			}
			reply := given()
			_, byMQTT := reply["mqtt"]
			_, bySocket := reply["websocket"]
			if byMQTT != (c.want == device.MQTT) || bySocket != (c.want == device.WebSocket) {
				t.Errorf("it is given %v", reply)
			}
			if r, _ := h.robots.Get("a0b1c2d3e4f5"); r.Transport != c.want {
				t.Errorf("%q is remembered", r.Transport)
			}
			// Who knows the MAC and nothing else is told nothing, and changes nothing.
			other := httptest.NewRequest("POST", "http://192.168.1.66:8003/xiaozhi/ota/", strings.NewReader(whole))
			other.Header = headers()
			other.Header.Set("Client-Id", "somebody-else")
			w := httptest.NewRecorder()
			h.handler.ServeHTTP(w, other)
			if body := w.Body.String(); strings.Contains(body, "mqtt") || strings.Contains(body, "websocket") {
				t.Errorf("another client is told %s", body)
			}
			if r, _ := h.robots.Get("a0b1c2d3e4f5"); r.Transport != c.want {
				t.Errorf("another client has changed it to %q", r.Transport)
			}
			if !byMQTT {
				return
			}
			var m map[string]any
			must.Succeed(t, json.Unmarshal(reply["mqtt"], &m))
			for key := range m {
				if len(key) > 15 { // the robot would abort at every boot
					t.Errorf("the key %q has %d characters", key, len(key))
				}
			}
			if m["endpoint"] != "192.168.1.5:1884" || m["username"] != "a0b1c2d3e4f5" || m["client_id"] != "3f1c8e5a-9b1d-4c7e-8a2f-0d6b5e4c3a21" ||
				m["keepalive"] != 60.0 || m["publish_topic"] != "perch" || m["password"] == "" {
				t.Errorf("it is given %v", m)
			}
		})
	}
}
