package appliance_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/socket"
)

// TestNothingIsLeftOfBrokenConnections opens connections of every kind and breaks them off at several points, five
// times. It checks that afterwards there are at most firstUse more goroutines than before: those of parts that start at
// their first use. A kind of connection with a leak of one goroutine would leave twenty.
//
// The test has no abandoned MCP sessions: up to 32 of them stay open, each with a goroutine, until newer sessions
// replace them or an hour has passed (see TestIdleSessions in gateway/avatar/vccp).
func TestNothingIsLeftOfBrokenConnections(t *testing.T) {
	const rounds, firstUse = 5, 8
	c := appliancetest.WithBroker(t)
	c.Skins.Key, c.Bridge.Key = appliancetest.Key, appliancetest.Key
	c.Wyoming.Listen, c.Skins.OpenClaw = "127.0.0.1:0", "127.0.0.1:0"
	h := appliancetest.Start(t, c, t.TempDir())
	h.Eventually("MQTT is connected", func() bool { return h.Part("mqtt").OK })
	macs := []string{"A0:B1:C2:D3:E4:F0", "A0:B1:C2:D3:E4:F1", "A0:B1:C2:D3:E4:F2", "A0:B1:C2:D3:E4:F3"}
	h.Adopt(macs...)
	for _, id := range []string{"a0b1c2d3e4f0", "a0b1c2d3e4f1"} {
		h.Admin(http.MethodPut, "/api/v1/devices/"+id, `{"transport":"mqtt"}`, nil)
	}
	say := appliancetest.Sentences(t, "what time is it")
	http1 := func(line, key, body string) string {
		return fmt.Sprintf("%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nDevice-Id: a0:b1:c2:d3:e4:f5\r\nClient-Id: one\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, key, len(body), body)
	}
	web := h.Listeners.Addresses()[0]
	sent := map[string][]string{
		web: {
			http1("GET /api/v1/events", h.OwnerToken(), ""),
			http1("GET /api/v1/actions/stream", h.OwnerToken(), ""),
			http1("GET /api/perception/feed", appliancetest.Key, ""),
			http1("POST /permission", appliancetest.Key,
				`{"hook_event_name":"PermissionRequest","session_id":"one","tool_name":"Bash","tool_input":{"command":"ls"}}`),
			http1("POST /v1/chat/completions", appliancetest.Key, `{"model":"perch","stream":true,"messages":[{"role":"user","content":"hello"}]}`),
			http1("POST /xiaozhi/ota/", "", "{}"),
		},
		h.WyomingAddr.String(): { // Wyoming
			`{"type":"transcribe"}` + "\n" + `{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}` + "\n" +
				`{"type":"audio-chunk","data":{"rate":16000,"width":2,"channels":1},"payload_length":3200}` + "\n" + strings.Repeat("\x00", 3200),
			`{"type":"synthesize","data":{"text":"This is a sentence that takes a while to say."}}` + "\n",
		},
		fmt.Sprintf("127.0.0.1:%d", h.RobotMQTT.Port()): {"\x10\x1f\x00\x04MQTT\x04\xc2\x00\x3c\x00\x01c\x00\x0ca0b1c2d3e4f5\x00\x01p"},
		c.MQTT.Listen: {"\x10\x19\x00\x04MQTT\x04\xc2\x00\x3c\x00\x01c\x00\x05perch\x00\x02no"},
		h.Listeners.At("skins.openclaw")[0]: {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"},
	}
	// breakOff sends a part of a text, waits a moment for an answer, and ends the connection.
	breakOff := func(address, part string, reset bool) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, part)
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = conn.Read(make([]byte, 4096))
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
	var before bytes.Buffer
	runtime.GC()
	_ = pprof.Lookup("goroutine").WriteTo(&before, 1)
	began := runtime.NumGoroutine()
	for round := range rounds {
		var all sync.WaitGroup
		for address, texts := range sent {
			for _, text := range texts {
				for quarter := 1; quarter <= 4; quarter++ {
					all.Go(func() { breakOff(address, text[:len(text)*quarter/4], (quarter+round)%2 == 0) })
				}
			}
		}
		for n, mac := range macs {
			r := h.NewRobot(simrobot.Options{MAC: mac, Say: say})
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(300*(n/2*2+round+1))*time.Millisecond)
				defer cancel()
				_ = r.Run(ctx) // returns an error if the timeout switches the robot off
			})
		}
		for _, path := range []string{"/v1/vtuber/ws", "/client-ws", "/ws", "/vccp/one"} {
			for range 4 {
				all.Go(func() {
					conn, err := socket.Dial(t.Context(), "ws://"+web+path,
						socket.Options{Header: http.Header{"Authorization": {"Bearer " + appliancetest.Key}}})
					if err != nil {
						t.Errorf("%s: %v", path, err)
						return
					}
					_ = conn.SendText([]byte(`{"type":"text-input","text":"hello"}`))
					conn.Drop()
				})
			}
		}
		all.Wait()
	}
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > began+firstUse && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > began+firstUse {
		var after bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&after, 1)
		t.Errorf("%d goroutines, %d before:\n%s\nbefore:\n%s", n, began, &after, &before)
	} else {
		t.Logf("%d goroutines, %d before", n, began)
	}
}
