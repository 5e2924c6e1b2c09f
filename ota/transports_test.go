package ota_test

import (
	"encoding/json"
	"strings"
	"testing"

	"perch/device"
	"perch/must"
	"perch/ota"
)

// TestTransports checks that a reply has the section of one transport: the robot's setting or the default. A
// reply has MQTT only if MQTT is enabled and the client is not a browser.
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
			header := headers()
			if c.agent != "" {
				header.Set("User-Agent", c.agent)
				header.Set("Origin", "https://panel.example")
			}
			h.ask("POST", "/xiaozhi/ota/", "192.168.1.5:8003", header, whole)
			if c.own != "" {
				h.adopt(t, "a0b1c2d3e4f5")
				own := string(c.own)
				must.Value(h.robots.Configure("a0b1c2d3e4f5", device.Change{Transport: &own}))(t)
			}
			var reply map[string]json.RawMessage
			must.Succeed(t, json.Unmarshal(h.ask("POST", "/xiaozhi/ota/", "192.168.1.5:8003", header, whole).Body.Bytes(), &reply))
			_, byMQTT := reply["mqtt"]
			_, bySocket := reply["websocket"]
			if byMQTT != (c.want == device.MQTT) || bySocket != (c.want == device.WebSocket) {
				t.Errorf("it is given %v", reply)
			}
			if r, _ := h.robots.Get("a0b1c2d3e4f5"); r.Transport != c.want {
				t.Errorf("%q is remembered", r.Transport)
			}
			// Another client with the same MAC address receives no transport, and does not change the robot's.
			header.Set("Client-Id", "somebody-else")
			body := h.ask("POST", "/xiaozhi/ota/", "192.168.1.66:8003", header, whole).Body.String()
			if strings.Contains(body, "mqtt") || strings.Contains(body, "websocket") {
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
