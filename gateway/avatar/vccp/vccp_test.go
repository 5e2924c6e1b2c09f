package vccp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/device"
	"perch/gateway/avatar/avatartest"
	"perch/limit"
	"perch/must"
	"perch/socket"
	"perch/waittest"
)

// TestConversation tests the flow in the protocol's specification, with the official MCP library as the model.
func TestConversation(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	id := m.ID()
	for tool, want := range map[string]string{"get-capability": "null", "get-perception": "null"} {
		if got := m.must(tool, nil); got != want {
			t.Errorf("before it is registered %s is %s", tool, got)
		}
	}
	if got := m.must("register-agent", nil); got != "Agentは正常に登録されました。 Session ID: "+id {
		t.Errorf("registered: %s", got)
	}
	b := h.body(t, "/"+id)
	waittest.For(t, "it is shown as connected", func() bool {
		all := h.server.Connected()
		return len(all) == 1 && strings.HasPrefix(all[0].Address, "127.0.0.1:") && time.Since(all[0].Since) < time.Minute
	})
	b.send(`{"type":"perception","category":"object","timestamp":"2024-01-01T00:00:00Z","data":{"name":"early"}}`)
	b.can(m, `{"actions":[{"type":"action","category":"wink","data":{}}]}`)
	if got := m.must("get-perception", nil); got != "[]" {
		t.Errorf("what came before the capability is known: %s", got)
	}
	if got := m.must("register-agent", nil); got != "agentが既に登録されています Session ID: "+id {
		t.Errorf("registered again: %s", got)
	}
	b.send(`{"type":"perception","category":"object","timestamp":"2024-01-01T00:00:00Z","data":{"name":"cat"}}`)
	b.send(`not JSON`)
	b.send(`{"type":"action","category":"movement","timestamp":"2024-01-01T00:00:00Z","data":{}}`)
	b.send(`{"type":"perception","category":"x.my-own","timestamp":"2024-01-01T00:00:01Z","data":{"deep":{"er":[1]}}}`)
	b.send(`{"type":"perception","category":"object","timestamp":"2024-01-01T00:00:02Z","data":{"name":"dog"}}`)
	dog := `{"type":"perception","category":"object","timestamp":"2024-01-01T00:00:02Z","data":{"name":"dog"}}`
	own := `{"type":"perception","category":"x.my-own","timestamp":"2024-01-01T00:00:01Z","data":{"deep":{"er":[1]}}}`
	waittest.For(t, "the dog", func() bool { return m.must("get-perception", object{"category": "object"}) == dog })
	if got := m.must("get-perception", nil); got != "["+dog+","+own+"]" {
		t.Errorf("perceived is %s", got)
	}
	if got := m.must("get-perception", object{"category": "smell"}); got != "null" {
		t.Errorf("a category that is not there is %s", got)
	}
	if got := m.must("play-action", object{"action": object{"type": "action", "category": "x.dance", "timestamp": "2024-01-01T00:00:03Z",
		"data": object{"a": 1}}}); got != "アクションを実行しました。" {
		t.Errorf("played: %s", got)
	}
	if got := b.next(); got != `{"type":"action","category":"x.dance","timestamp":"2024-01-01T00:00:03Z","data":{"a":1}}` {
		t.Errorf("the character is sent %s", got)
	}
	m.must("play-action", object{"action": `{"type":"action","category":"wink","data":{}}`})
	if got := b.next(); !strings.Contains(got, `"category":"wink","timestamp":"20`) {
		t.Errorf("without a time the character is sent %s", got)
	}
	b.can(m, `{"actions":[]}`)
	if got := m.must("get-perception", nil); got != "[]" {
		t.Errorf("after a new capability is known %s", got)
	}
}

// TestInvalidActions tests that an invalid action results in an error and does not disconnect the character.
func TestInvalidActions(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	play := func(action any) (string, bool) { return m.call("play-action", object{"action": action}) }
	wave := object{"type": "action", "category": "wave", "data": object{}}
	if text, failed := play(wave); !failed || !strings.HasPrefix(text, "アクションの実行に失敗しました: ") {
		t.Errorf("nobody is registered: %t %s", failed, text)
	}
	m.must("register-agent", nil)
	gone := "アクションの実行に失敗しました: Client for session " + m.ID() + " is not connected"
	if text, failed := play(wave); !failed || text != gone {
		t.Errorf("nobody has come: %t %s", failed, text)
	}
	b := h.body(t, "/"+m.ID())
	b.can(m, `{"actions":[]}`)
	for _, bad := range []any{
		object{"type": "perception", "category": "wave", "data": object{}}, object{"type": "system", "category": "capability", "data": object{}},
		object{"category": "wave", "data": object{}}, object{"type": "action", "data": object{}}, object{"type": "action", "category": "wave"},
		object{"type": "action", "category": "wave", "data": []int{}}, object{"type": "action", "category": 7, "data": object{}},
		object{"type": "action", "category": strings.Repeat("x", 65), "data": object{}}, "wave", 7, nil,
		object{"type": "action", "category": "wave", "data": object{"x": strings.Repeat("x", limit.Instructions)}},
	} {
		if text, failed := play(bad); !failed || !strings.HasPrefix(text, "無効なスキーマ: ") || len(text) > 400 {
			t.Errorf("%.60v: %t %s", bad, failed, text)
		}
	}
	m.must("play-action", object{"action": wave})
	if got := b.next(); !strings.Contains(got, "wave") {
		t.Errorf("the character is sent %s", got)
	}
	b.Close(socket.Normal, "")
	waittest.For(t, "it has left", func() bool { return m.must("get-capability", nil) == "null" })
	if text, failed := play(wave); !failed || text != gone {
		t.Errorf("it has left: %t %s", failed, text)
	}
	again := h.body(t, "/"+m.ID())
	again.can(m, `{"actions":[]}`)
	m.must("play-action", object{"action": wave})
	again.next()
}

// TestRefusedSockets tests that the WebSocket for a session without an agent is closed with the status for a policy
// violation, and that a WebSocket without the key is not accepted.
func TestRefusedSockets(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	for path, want := range map[string]string{"/vccp/nobody": "Invalid session ID", "/vccp/" + m.ID(): "Invalid session ID",
		"/vccp": "Session ID required", "/vccp/": "Session ID required"} {
		if code, why, _ := h.raw(t, path).ReadClose(); code != 1008 || why != want {
			t.Errorf("%s: %d %s", path, code, why)
		}
	}
	m.must("register-agent", object{"robot": string(robotA)})
	if code, _, _ := h.raw(t, "/vccp/"+m.ID()).ReadClose(); code != 1008 {
		t.Errorf("who has a robot is given another character: %d", code)
	}
	_, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(h.http.URL, "http")+"/vccp/"+m.ID(), socket.Options{})
	var refused *socket.Refusal
	if !errors.As(err, &refused) || refused.Status != 401 {
		t.Errorf("without a key: %v", err)
	}
	if status, _, _ := h.post(t, `{}`, "Authorization", "Bearer wrong"); status != 401 {
		t.Errorf("a wrong key: %d", status)
	}
	if status, _, _ := h.post(t, `{}`, "Origin", "http://evil.example"); status != 403 {
		t.Errorf("a foreign page: %d", status)
	}
}

// TestLaterCharacterReplacesEarlier tests that a new character replaces and closes the previous character.
func TestLaterCharacterReplacesEarlier(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	m.must("register-agent", nil)
	first := h.raw(t, "/vccp/"+m.ID())
	first.SendShort(`{"type":"system","category":"capability","data":{"actions":[1]}}`)
	waittest.For(t, "the first", func() bool { return m.must("get-capability", nil) == `{"actions":[1]}` })
	second := h.body(t, "/"+m.ID())
	if code, why, _ := first.ReadClose(); code != 1000 || why != "replaced" {
		t.Errorf("the first ended with %d %s", code, why)
	}
	second.can(m, `{"actions":[2]}`)
}

// TestNoCrossTalk tests that two models reach only their own characters.
func TestNoCrossTalk(t *testing.T) {
	h := newHarness(t)
	one, two := h.model(t), h.model(t)
	if one.ID() == two.ID() {
		t.Fatal("one session for two")
	}
	one.must("register-agent", nil)
	two.must("register-agent", nil)
	a, b := h.body(t, "/"+one.ID()), h.body(t, "/"+two.ID())
	a.can(one, `{"actions":["a"]}`)
	if got := two.must("get-capability", nil); got != "null" {
		t.Errorf("the second can %s", got)
	}
	b.can(two, `{"actions":["b"]}`)
	a.send(`{"type":"perception","category":"smell","timestamp":"t","data":{"of":"a"}}`)
	b.send(`{"type":"perception","category":"smell","timestamp":"t","data":{"of":"b"}}`)
	for _, x := range []struct {
		m    *model
		want string
	}{{one, `{"of":"a"}`}, {two, `{"of":"b"}`}} {
		waittest.For(t, x.want, func() bool { return strings.Contains(x.m.must("get-perception", nil), x.want) })
	}
	for i := range 20 {
		one.must("play-action", object{"action": object{"type": "action", "category": "a", "data": object{"i": i}}})
		two.must("play-action", object{"action": object{"type": "action", "category": "b", "data": object{"i": i}}})
	}
	for i := range 20 {
		for category, x := range map[string]*body{"a": a, "b": b} {
			var got message
			if err := json.Unmarshal([]byte(x.next()), &got); err != nil || got.Category != category {
				t.Fatalf("%d: %s is sent %+v, %v", i, category, got, err)
			}
		}
	}
	must.Succeed(t, one.Close())
	if _, _, err := a.Receive(); err != io.EOF {
		t.Errorf("after the end of its session a character is open: %v", err)
	}
	two.must("play-action", object{"action": object{"type": "action", "category": "b", "data": object{}}})
	b.next()
	waittest.For(t, "the first is forgotten", func() bool {
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		return len(h.server.agents) == 1 && len(h.server.sockets) == 1
	})
}

// TestHTTP tests requests that are made without the library's client.
func TestHTTP(t *testing.T) {
	h := newHarness(t)
	for _, text := range []string{``, `{}`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`} {
		if status, _, body := h.post(t, text); status != 400 || body != noSession {
			t.Errorf("%q without a session: %d %s", text, status, body)
		}
	}
	status, header,
		body := h.post(t,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}`)
	id := header.Get("Mcp-Session-Id")
	if status != 200 || id == "" || header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(body, "event: message\n") ||
		!strings.Contains(body, `"serverInfo":{"name":"vccp"`) || !strings.Contains(body, `"version":"1.0.0"`) ||
		!strings.Contains(body, `"listChanged":true`) {
		t.Fatalf("initialize: %d %v %s", status, header, body)
	}
	if status, _, body = h.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); status != 202 || body != "" {
		t.Errorf("initialized: %d %s", status, body)
	}
	status, _, body = h.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"register-agent","arguments":{}}}`, "Mcp-Session-Id",
		id)
	if status != 200 || !strings.Contains(body, `"text":"Agentは正常に登録されました。 Session ID: `+id+`"`) {
		t.Errorf("register-agent: %d %s", status, body)
	}
	_, _, body = h.post(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"play-action","arguments":{}}}`, "Mcp-Session-Id", id)
	if !strings.Contains(body, `"isError":true`) || !strings.Contains(body, "無効なスキーマ: ") {
		t.Errorf("play-action: %s", body)
	}
	if status, _, _ := h.post(t, `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, "Mcp-Session-Id", "another"); status != 404 {
		t.Errorf("another session: %d", status)
	}
	if status, _, body := h.post(t, `{"x":"`+strings.Repeat("x", limit.List)+`"}`, "Mcp-Session-Id", id); status != 413 {
		t.Errorf("too much: %d %s", status, body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.http.URL+"/mcp", nil)
	must.Succeed(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Mcp-Session-Id", id)
	a, err := h.http.Client().Do(r)
	if err != nil || a.StatusCode != 204 {
		t.Fatalf("delete: %v %v", a, err)
	}
	_ = a.Body.Close()
	waittest.For(t, "the agent is forgotten", func() bool {
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		return len(h.server.agents) == 0
	})
}

// TestIdleSessions tests that an idle session ends, and that its character is closed.
func TestIdleSessions(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Idle = 200 * time.Millisecond })
	m := h.model(t)
	m.must("register-agent", nil)
	b := h.body(t, "/"+m.ID())
	if _, _, err := b.Receive(); err != io.EOF {
		t.Errorf("its character ended with %v", err)
	}
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	if len(h.server.agents) != 0 {
		t.Errorf("%d agents", len(h.server.agents))
	}
}

// TestBounds tests the maximum number of stored perceptions, and the maximum size of a message.
func TestBounds(t *testing.T) {
	c := &client{}
	c.handleMessage([]byte(`{"type":"perception","category":"early","data":{}}`), noon)
	if len(c.latest) != 0 {
		t.Error("a character senses before it has said what it can do")
	}
	c.handleMessage([]byte(`{"type":"system","category":"capability","data":{}}`), noon)
	for i := range 1000 {
		c.handleMessage([]byte(`{"type":"perception","category":"c`+strings.Repeat("x", i%60)+`","data":{"i":1}}`), noon)
	}
	if len(c.latest) != maxCategories {
		t.Errorf("%d categories are kept", len(c.latest))
	}
	h := newHarness(t)
	m := h.model(t)
	m.must("register-agent", nil)
	b := h.body(t, "/"+m.ID())
	b.send(strings.Repeat("x", limit.Instructions+1))
	if _, _, err := b.Receive(); err != io.EOF {
		t.Errorf("after too long a message: %v", err)
	}
}

// TestRobotsTools tests that a robot's tools are offered with the robot's ID in their names, and change with the robot's
// list.
func TestRobotsTools(t *testing.T) {
	h := newHarness(t)
	defer h.runs()()
	m := h.model(t)
	want := []string{"a0b1c2d3e4f5_camera_take_photo", "a0b1c2d3e4f5_robot_set_head_angles", "a0b1c2d3e4f5_robot_set_led_color",
		"a0b1c2d3e4f6_camera_take_photo", "a0b1c2d3e4f6_robot_set_head_angles", "a0b1c2d3e4f6_robot_set_led_color",
		"get-capability", "get-perception", "play-action", "register-agent"}
	if got := m.names(); !slices.Equal(got, want) {
		t.Errorf("offered are %q", got)
	}
	h.robots.answer = func(context.Context) (device.Result, error) {
		return device.Result{Text: "a cat", Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte("jpeg")}}}, nil
	}
	r, err := m.CallTool(t.Context(), &mcp.CallToolParams{Name: "a0b1c2d3e4f6_camera_take_photo", Arguments: object{"question": "who?"}})
	if err != nil || r.IsError || len(r.Content) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if p, ok := r.Content[1].(*mcp.ImageContent); !ok || p.MIMEType != "image/jpeg" || string(p.Data) != "jpeg" {
		t.Errorf("the picture is %+v", r.Content[1])
	}
	if got := h.robots.take(); !slices.Equal(got, []string{`call a0b1c2d3e4f6 self.camera.take_photo {"question":"who?"}`}) {
		t.Errorf("asked is %q", got)
	}
	h.robots.answer = func(context.Context) (device.Result, error) {
		return device.Result{}, errors.New("its channel is closed")
	}
	if text, failed := m.call("a0b1c2d3e4f6_camera_take_photo", object{"question": "who?"}); !failed || text != "its channel is closed" {
		t.Errorf("%t %s", failed, text)
	}
	for len(m.changed) > 0 {
		<-m.changed
	}
	h.robots.mu.Lock()
	h.robots.tools = h.robots.tools[:1]
	h.robots.mu.Unlock()
	h.bus.Publish(robotA, "s", toolsListed)
	<-m.changed
	if got := m.names(); len(got) != 6 {
		t.Errorf("then are offered %q", got)
	}
}

// TestCharacterWithoutPongs tests that a character that sends no pongs is disconnected.
func TestCharacterWithoutPongs(t *testing.T) {
	h := newHarness(t)
	h.server.quiet = 200 * time.Millisecond
	m := h.model(t)
	m.must("register-agent", nil)
	began := time.Now()
	r := h.raw(t, "/vccp/"+m.ID())
	if _, err := io.Copy(io.Discard, r.R); err != nil {
		t.Fatalf("it is not let go: %v", err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("it was given %v", took)
	}
	waittest.For(t, "the model has no character", func() bool {
		_, failed := m.call("play-action", object{"action": object{"type": "action", "category": "wave", "data": object{}}})
		return failed
	})
}

// upgrade requests a WebSocket as a web page does, which can set no header except the list of subprotocols.
func (h *harness) upgrade(t *testing.T, path, protocols string) *http.Response {
	t.Helper()
	host := strings.TrimPrefix(h.http.URL, "http://")
	c, err := net.Dial("tcp", host)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return avatartest.NewRaw(t, c).Handshake(path, "Origin: http://"+host, "Sec-WebSocket-Protocol: "+protocols)
}

// TestKeysOfPages tests that a key in a subprotocol is accepted, and that the response names another requested
// subprotocol. Without that, a browser would close the connection.
func TestKeysOfPages(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	m.must("register-agent", nil)
	coded := base64.RawURLEncoding.EncodeToString([]byte(key))
	for asked, want := range map[string]string{"vccp.v1, bearer." + coded: "vccp.v1", "bearer." + coded + ", vccp.v1": "vccp.v1",
		"bearer." + coded: ""} {
		a := h.upgrade(t, "/vccp/"+m.ID(), asked)
		if got := a.Header.Get("Sec-Websocket-Protocol"); a.StatusCode != http.StatusSwitchingProtocols || got != want {
			t.Errorf("%.12s...: %s, in %q", asked, a.Status, got)
		}
	}
	for _, asked := range []string{"vccp.v1", "vccp.v1, bearer.d3Jvbmc"} {
		if a := h.upgrade(t, "/vccp/"+m.ID(), asked); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", asked, a.Status)
		}
	}
}
