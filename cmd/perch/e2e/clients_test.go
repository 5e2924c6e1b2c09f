package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
	"perch/socket"
	"perch/voice"
)

// dial opens the WebSocket for robots as a browser does: with the values of the headers in the query.
func (h *running) dial(t *testing.T, query url.Values) (*socket.Conn, error) {
	t.Helper()
	c, err := socket.Dial(t.Context(), strings.Replace(h.URL("/xiaozhi/v1/"), "http", "ws", 1)+"?"+query.Encode(),
		socket.Options{MaxMessage: 1 << 20})
	if err == nil {
		t.Cleanup(func() { c.Close(socket.Normal, "") })
	}
	return c, err
}

// next returns the next message of a type from the appliance, and skips others.
func next(t *testing.T, c *socket.Conn, kind string) map[string]any {
	t.Helper()
	for {
		isText, data, err := c.Receive()
		if err != nil {
			t.Fatalf("waiting for %s: %v", kind, err)
		}
		var m map[string]any
		if isText && json.Unmarshal(data, &m) == nil && m["type"] == kind {
			return m
		}
	}
}

func send(t *testing.T, c *socket.Conn, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must.Succeed(t, c.SendText([]byte(text)))
	}
}

// TestClientsOfTheField: clients other than the firmware, with their unusual requests and messages, work or get an
// error with a reason. TestABrowserAsARobot tests the checks of origins.
func TestClientsOfTheField(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Robots.Greeting = false
	h := open(t, c, t.TempDir())

	t.Run("everything in the query, and no Client-Id", func(t *testing.T) {
		token := h.Token("/xiaozhi/ota/?device-id=A0-B1-C2-00-00-01")
		conn := must.Value(h.dial(t, url.Values{"device-id": {"a0:b1:c2:00:00:01"}, "authorization": {"Bearer " + token}}))(t)
		send(t, conn, `{"type":"hello"}`)
		if hello := next(t, conn, "hello"); hello["transport"] != "websocket" || hello["session_id"] == "" {
			t.Errorf("hello %v", hello)
		}
	})
	t.Run("a page: a MAC with the bit of a group, its uuid in the body, the token in the address, and typed text", func(t *testing.T) {
		status, text := h.Request(http.MethodPost, "/xiaozhi/ota/", `{"uuid":"page","board":{"type":"web"}}`, "Device-Id", "A1:B1:C2:00:00:04")
		var boot struct{ Websocket struct{ Token string } }
		if err := json.Unmarshal([]byte(text), &boot); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s (%v)", status, text, err)
		}
		conn, err := h.dial(t, url.Values{"device-id": {"a1:b1:c2:00:00:04"}, "client-id": {"page"}, "token": {boot.Websocket.Token}})
		must.Succeed(t, err)
		send(t, conn, `{"type":"hello"}`, `{"type":"listen","state":"detect","text":"look up","source":"text"}`)
		next(t, conn, "hello")
		if stt := next(t, conn, "stt"); stt["text"] != "look up" {
			t.Errorf("understood %v", stt)
		}
		for m := next(t, conn, "tts"); m["state"] != "stop"; m = next(t, conn, "tts") {
		}
	})
	t.Run("odd messages", func(t *testing.T) {
		const mac = "A0:B1:C2:00:00:03"
		token := h.Token("/xiaozhi/ota/", "Device-Id", mac)
		conn := must.Value(h.dial(t, url.Values{"device-id": {strings.ToLower(mac)}, "authorization": {token}}))(t)
		send(t, conn, `{"type":"hello","session_id":""}`, `{"type":"iot","states":[]}`, `{"type":"ping"}`, `{"type":"goodbye","session_id":""}`,
			`{"type":"listen","state":"detect","text":"hello there","session_id":""}`, `{"type":"listen","state":"start","mode":"ptt"}`)
		next(t, conn, "hello")
		encoder := must.Value(voice.NewEncoder(voice.MicRate))(t)
		packets := [][]byte{{}, {0xf8}, make([]byte, 4000)}
		if err := encoder.Encode(appliancetest.Sentences(t, "look up")[0].PCM, func(p []byte) error {
			packets = append(packets, append([]byte(nil), p...))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			must.Succeed(t, conn.SendBinary(p))
		}
		send(t, conn, `{"type":"listen","state":"stop","session_id":""}`)
		if stt := next(t, conn, "stt"); stt["text"] != "look up" {
			t.Errorf("heard %v", stt)
		}
		next(t, conn, "tts")
		send(t, conn, `{"type":"listen","state":"start","mode":"manual"}`) // while the appliance speaks
		for m := next(t, conn, "tts"); m["state"] != "stop"; m = next(t, conn, "tts") {
		}
	})
	t.Run("without a token", func(t *testing.T) {
		if _, err := h.dial(t, url.Values{"device-id": {"a0:b1:c2:00:00:01"}}); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("answered with %v", err)
		}
	})
}
