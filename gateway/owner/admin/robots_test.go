package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
)

// TestRobotRoutes checks valid and invalid requests for the routes of a robot.
func TestRobotRoutes(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	huge := strings.Repeat(" ", 64<<10) + `{"message":"x"}`
	for _, c := range []request{
		{"POST", "alert", `{"message":"The door is open."}`, 202, `{"ok":true,"queued":false}`, "alert @ Perch The door is open. neutral"},
		{"POST", "alert", `{"status":"House","message":" two\nlines ","emotion":"cloud_off","more":1}`, 202, `{"ok":true,"queued":false}`,
			"alert @ House two\nlines cloud_off"},
		{"POST", "alert", `{"status":"` + x(64) + `","message":"` + x(1000) + `","emotion":"` + x(32) + `"}`, 202, `"ok":true`, "alert @ " +
			x(64) + " " + x(1000) + " " + x(32)},
		{"POST", "alert", `{"status":" ","message":"é 😊","emotion":""}`, 202, `"ok":true`, "alert @ Perch é 😊 neutral"},
		{"POST", "alert", `{"status":"` + x(65) + `","message":"x"}`, 400, `"bad_body","message":"status is`, ""},
		{"POST", "alert", `{"message":"` + x(1001) + `"}`, 400, `"bad_body","message":"message is needed`, ""},
		{"POST", "alert", `{"message":"x","emotion":"` + x(33) + `"}`, 400, `"bad_body","message":"emotion is`, ""},
		{"POST", "alert", `{"message":"x","emotion":"😊"}`, 400, `"bad_body","message":"emotion is`, ""},
		{"POST", "alert", `{"message":"x","emotion":"a b"}`, 400, `"bad_body","message":"emotion is`, ""},
		{"POST", "alert", `{"message":"a\u0000b"}`, 400, `"bad_body","message":"message is needed`, ""},
		{"POST", "alert", `{"status":"a\tb","message":"x"}`, 400, `"bad_body","message":"status is`, ""},
		{"POST", "alert", `{"status":"x","emotion":"happy"}`, 400, `"bad_body"`, ""},
		{"POST", "alert", `{"message":" \n"}`, 400, `"bad_body"`, ""},
		{"POST", "alert", `{"message":7}`, 400, `"bad_body"`, ""},
		{"POST", "alert", `{"message":"x"`, 400, `"bad_body"`, ""},
		{"POST", "alert", `null`, 400, `"bad_body"`, ""},
		{"POST", "alert", ``, 400, `"bad_body"`, ""},
		{"POST", "alert", huge, 413, `"body_too_large"`, ""},
		{"GET", "alert", ``, 405, `"wrong_method"`, ""},

		{"POST", "ask", `{"text":"what time is it"}`, 202, `{"ok":true,"queued":false,"text":"It is late."}`, "ask @ what time is it"},
		{"POST", "ask", `{"text":""}`, 400, `"bad_body"`, ""},
		{"POST", "ask", `{"text":"` + x(4001) + `"}`, 400, `"bad_body"`, ""},
		{"POST", "leave", ``, 409, `"not_of_the_page"`, ""},

		{"POST", "reboot", ``, 202, `{"ok":true}`, "reboot @"},
		{"POST", "reboot", `{}`, 202, `{"ok":true}`, "reboot @"},
		{"GET", "reboot", ``, 405, `"wrong_method"`, ""},

		{"POST", "tools/self.a.b", `{"arguments":{"n":40,"on":true,"s":"x"}}`, 200, `{"text":"","pictures":[]}`,
			`call @ self.a.b {"n":40,"on":true,"s":"x"}`},
		{"POST", "tools/self.a.b", ``, 200, `{"text":"","pictures":[]}`, `call @ self.a.b {}`},
		{"POST", "tools/self.a.b", `{}`, 200, `{"text":"","pictures":[]}`, `call @ self.a.b {}`},
		{"POST", "tools/self.a.b", `{"arguments":null}`, 200, `{"text":"","pictures":[]}`, `call @ self.a.b {}`},
		{"POST", "tools/self.a.b", `{"arguments":{"color":16777215}}`, 200, `"text"`, `call @ self.a.b {"color":16777215}`},
		{"POST", "tools/self.a.b", `{"arguments":[1]}`, 400, `"bad_body"`, ""},
		{"POST", "tools/self.a.b", `{"arguments":"x"}`, 400, `"bad_body"`, ""},
		{"POST", "tools/self.a.b", `{"arguments":{`, 400, `"bad_body"`, ""},
		{"POST", "tools/self.a.b", huge, 413, `"body_too_large"`, ""},
		{"POST", "tools/" + x(128), ``, 200, `"text"`, `call @ ` + x(128) + ` {}`},
		{"POST", "tools/" + x(129), ``, 404, `"unknown_tool"`, ""},
		{"POST", "tools/", ``, 404, `"not_found"`, ""},
		{"GET", "tools/self.a.b", ``, 405, `"wrong_method"`, ""},
		{"GET", "tools", ``, 200, `[]`, ""},
		{"POST", "tools", ``, 405, `"wrong_method"`, ""},
		{"GET", "picture", ``, 404, `"no_picture"`, ""},
		{"POST", "record", ``, 405, `"wrong_method"`, ""},
	} {
		c.try(t, "/api/v1/devices/A0:B1:C2:D3:E4:F5/")
	}
}

// TestRobotOfThePageLeaves checks that a browser tab that acts as a robot is shown as left from when it is closed until
// it is opened again.
func TestRobotOfThePageLeaves(t *testing.T) {
	h := newAppliance(t)
	shown := func(when string, left bool) {
		t.Helper()
		if d := get[admin.Device](t, h, "/api/v1/devices/"+string(robotA)); d.Left != left {
			t.Errorf("%s: it has left: %t", when, d.Left)
		}
	}
	boot := func(at time.Time) {
		h.robots.CheckIn(device.CheckIn{ID: robotA, Client: device.NewClient("one"), Board: device.PageBoard, Address: "192.168.1.40"}, at)
	}
	boot(met)
	must.Value(h.robots.Adopt(string(robotA), met))(t)
	boot(met) // from now on the board of the robot is known
	shown("at first", false)
	h.wants(t, "POST", "/api/v1/devices/"+string(robotA)+"/leave", "", 202, `={"ok":true}`)
	shown("after its tab was closed", true)
	boot(time.Now().Add(time.Second))
	shown("opened again", false)
}

// each lists routes of a robot with a valid body for each.
var each = []struct{ method, path, body string }{
	{"GET", "", ""}, {"DELETE", "", ""}, {"POST", "/say", `{"text":"x"}`}, {"POST", "/ask", `{"text":"x"}`}, {"POST", "/leave", ""}, {"POST", "/alert", `{"message":"x"}`}, {"POST", "/abort", ""},
	{"POST", "/reboot", ""}, {"GET", "/tools", ""}, {"POST", "/tools/self.a", ""}, {"GET", "/record", ""}, {"GET", "/picture", ""},
}

func TestUnknownRobots(t *testing.T) {
	for _, c := range each {
		for id, want := range map[string]string{"020000000001": "unknown_robot", "robot": "bad_robot_id"} {
			h := newAppliance(t)
			h.visit(t, robotA, "one")
			status := map[string]int{"unknown_robot": 404, "bad_robot_id": 400}[want]
			h.wants(t, c.method, "/api/v1/devices/"+id+c.path, c.body, status, `"`+want+`"`)
			if len(h.talk.asked) > 0 {
				t.Errorf("%s %s%s: a robot is asked %q", c.method, id, c.path, h.talk.asked)
			}
		}
	}
}

// TestRobotOffline checks which requests for a robot that is not connected are refused, and which are queued.
func TestRobotOffline(t *testing.T) {
	closed := &httpserver.Fault{Word: "robot_offline", Sentence: "its channel is closed", HTTP: 409}
	for _, path := range []string{"POST /abort", "POST /reboot", "POST /tools/self.a", "GET /record"} {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.err = closed
		method, path, _ := strings.Cut(path, " ")
		h.wants(t, method, "/api/v1/devices/a0b1c2d3e4f5"+path, "", 409, `={"error":{"code":"robot_offline","message":"its channel is closed"}}`)
	}
	for path, body := range map[string]string{"/say": `{"text":"x"}`, "/alert": `{"message":"x"}`} {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.queued = true
		h.wants(t, "POST", "/api/v1/devices/a0b1c2d3e4f5"+path, body, 202, `={"ok":true,"queued":true}`)
	}
}

func TestTools(t *testing.T) {
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	most := 100
	h.talk.tools = []device.Tool{
		{Name: "self.audio_speaker.set_volume", Description: "Set the volume", Schema: device.Schema{Type: "object",
			Properties: map[string]device.Argument{"volume": {Type: "integer", Maximum: &most}}, Required: []string{"volume"}}},
		{Name: "self.reboot", UserOnly: true},
	}
	want := `=[{"name":"self.audio_speaker.set_volume","description":"Set the volume","schema":{"type":"object",` +
		`"properties":{"volume":{"type":"integer","maximum":100}},"required":["volume"]},"user_only":false},` +
		`{"name":"self.reboot","description":"","schema":{"properties":null},"user_only":true}]`
	h.wants(t, http.MethodGet, "/api/v1/devices/a0b1c2d3e4f5/tools", "", 200, want)
}

func TestToolResult(t *testing.T) {
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	h.talk.result = device.Result{Text: `{"volume":40}`, Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte{0xff, 0xd8}}}}
	status, body := h.ask("POST", "/api/v1/devices/a0b1c2d3e4f5/tools/self.a", "")
	if want := `{"text":"{\"volume\":40}","pictures":[{"type":"image/jpeg","data":"/9g="}]}`; status != 200 || body != want {
		t.Errorf("%d %s, want %s", status, body, want)
	}
	var back admin.Result
	if err := json.Unmarshal([]byte(body), &back); err != nil || !reflect.DeepEqual(back.Pictures[0].Data, h.talk.result.Pictures[0].Data) {
		t.Errorf("it reads as %+v (%v)", back, err)
	}
}

// TestToolTimeout checks that the wait for a tool ends after a minute, and at once if the client disconnects.
func TestToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.call = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		status, body := h.ask("POST", "/api/v1/devices/a0b1c2d3e4f5/tools/self.a", "")
		if took := time.Since(began); status != http.StatusGatewayTimeout || !strings.Contains(body, `"tool_timeout"`) || took != time.Minute {
			t.Errorf("after %v: %d %s", took, status, body)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		w := httptest.NewRecorder()
		h.engine.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/api/v1/devices/a0b1c2d3e4f5/tools/self.a", nil))
		if took := time.Since(began); took != time.Second || strings.Contains(h.log.String(), "level=ERROR") {
			t.Errorf("after %v, log %s", took, h.log)
		}
	})
}

func TestPicture(t *testing.T) {
	for kind, want := range map[string]string{
		"image/jpeg": "image/jpeg", "image/png": "image/png",
		"text/html": "application/octet-stream", "image/svg+xml": "application/octet-stream", "": "application/octet-stream",
	} {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.picture = &device.Picture{Type: kind, Data: []byte("<script>")}
		w := httptest.NewRecorder()
		h.engine.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/devices/a0b1c2d3e4f5/picture", nil))
		if w.Code != 200 || w.Body.String() != "<script>" || w.Header().Get("Content-Type") != want ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %d %v %s", kind, w.Code, w.Header(), w.Body)
		}
	}
}

// TestRecord checks that lines arrive during the recording, and that the recording ends when the client disconnects.
func TestRecord(t *testing.T) {
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	lines, ended := make(chan string), make(chan error, 1)
	h.talk.record = func(ctx context.Context, out func(string) error) error {
		var err error
		for err == nil {
			select {
			case line := <-lines:
				err = out(line)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		ended <- err
		return err
	}
	server := httptest.NewServer(h.engine)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/api/v1/devices/a0b1c2d3e4f5/record")
	must.Succeed(t, err)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%s %v", answer.Status, answer.Header)
	}
	for _, line := range []string{`> {"type":"hello"}`, "", "< 😊"} {
		lines <- line
		got := make([]byte, len(line)+1)
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != line+"\n" {
			t.Errorf("read %q (%v), want %q", got, err, line)
		}
	}
	_ = answer.Body.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on without its client")
	}
	server.Close() // waits for the request
	if h.log.Len() != 0 {
		t.Errorf("logged %s", h.log)
	}
}
