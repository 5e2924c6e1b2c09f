package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
)

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []admin.Part
		want  int
	}{
		{"all well", []admin.Part{{Name: "store", OK: true, Vital: true}, {Name: "mqtt", OK: true}}, 200},
		{"a broker away", []admin.Part{{Name: "store", OK: true, Vital: true}, {Name: "mqtt", Note: "connection refused"}}, 200},
		{"the store unreadable", []admin.Part{{Name: "mqtt", OK: true}, {Name: "store", Vital: true, Note: "disk error"}}, 503},
		{"no parts", nil, 200},
	} {
		h := newAppliance(t)
		h.parts = c.parts
		status, body := h.ask(http.MethodGet, "/health", "")
		want := `{"ok":true}`
		if c.want != 200 {
			want = `{"error":{"code":"unhealthy","message":"store: disk error"}}`
		}
		if status != c.want || body != want {
			t.Errorf("%s: health %d %s", c.name, status, body)
		}
		ready := get[struct{ Parts []admin.Part }](t, h, "/ready") // the status is always 200
		if !reflect.DeepEqual(ready.Parts, c.parts) {
			t.Errorf("%s: ready %+v", c.name, ready.Parts)
		}
	}
}

func TestStatus(t *testing.T) {
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	h.visit(t, robotB, "two")
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	must.Value(h.notices.Accept(notice.Notification{Text: "the laundry is done"}, time.Now()))(t)
	got := get[admin.Status](t, h, "/api/v1/status")
	want := admin.Status{ID: "perch-1", Version: "1.0", Started: started, Robots: 2, Open: 1, Reached: 1, Lost: 3, Notices: 1, Parts: h.parts}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("status %+v, want %+v", got, want)
	}
	h.publish(t, robotA, "s1", event.RobotOffline{Why: "hung up"})
	if got := get[admin.Status](t, h, "/api/v1/status"); got.Open != 0 {
		t.Errorf("%d channels are open after the only one closed", got.Open)
	}
}

func TestDevices(t *testing.T) {
	h := newAppliance(t)
	h.wants(t, http.MethodGet, "/api/v1/devices", "", 200, "=[]")
	a := h.visit(t, robotA, "one")
	h.visit(t, robotB, "two")
	list := get[[]admin.Device](t, h, "/api/v1/devices")
	if len(list) != 2 || list[0].ID != robotA || list[1].ID != robotB {
		t.Fatalf("devices %+v", list)
	}
	want := admin.Device{
		ID: robotA, MAC: "a0:b1:c2:d3:e4:f5", Board: "m5stack-stack-chan", Firmware: "1.2.4", Address: "192.168.1.40",
		FirstSeen: met, LastSeen: met,
		Waiting: "it is new here; adopt it", Code: a.Code, State: agent.Idle, Emotion: "neutral", Character: "default",
		Senses: []string{"a face in front of it since 3 s"},
	}
	for _, spelling := range []string{"a0b1c2d3e4f5", "A0:B1:C2:D3:E4:F5", "a0-b1-c2-d3-e4-f5"} {
		if got := get[admin.Device](t, h, "/api/v1/devices/"+spelling); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", spelling, got, want)
		}
	}
	must.Value(h.robots.Adopt(string(robotA), time.Now()))(t)
	token := h.visit(t, robotA, "one").Token
	h.robots.StoreTools(robotA, []device.Tool{{Name: "self.reboot"}})
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	h.publish(t, robotA, "s1", event.Emotion{Name: "happy", Emoji: "😊"})
	h.publish(t, robotA, "s1", event.ThinkingStarted{Brain: "reflex"})
	want.BaseURL = "http://perch.local:8003"
	want.Waiting, want.Code, want.Adopted, want.Connected, want.Talking = "", "", true, true, true
	want.State, want.Emotion, want.Tools = agent.Thinking, "happy", []string{"self.reboot"}
	got := get[admin.Device](t, h, "/api/v1/devices/a0b1c2d3e4f5")
	if since := time.Since(got.LastSeen); since < 0 || since > time.Minute {
		t.Errorf("a connected robot was last here %s ago", since)
	}
	want.LastSeen = got.LastSeen
	if !reflect.DeepEqual(got, want) {
		t.Errorf("adopted and thinking: %+v, want %+v", got, want)
	}
	if _, body := h.ask(http.MethodGet, "/api/v1/devices", ""); strings.Contains(body, token) || strings.Contains(body, "epoch") {
		t.Errorf("the list shows a secret: %s", body)
	}
	h.visit(t, robotA, "erased")
	if got := get[admin.Device](t, h, "/api/v1/devices/a0b1c2d3e4f5"); !strings.Contains(got.Waiting,
		"another client uses the MAC address of this robot, from 192.168.1.40") || !got.Adopted || got.Code != "" {
		t.Errorf("with another flash: %+v", got)
	}
}

// request is a request to an appliance with one robot, robotA, and its expected results.
type request struct {
	method, path, body string
	status             int
	answer             string // text that the response contains
	asked              string // what the robot is asked to do (see talk.asked), with @ for its ID
}

// try sends the request to a new appliance and checks the results.
func (c request) try(t *testing.T, prefix string) {
	t.Helper()
	h := newAppliance(t)
	h.visit(t, robotA, "one")
	status, body := h.ask(c.method, prefix+c.path, c.body)
	if status != c.status || !strings.Contains(body, c.answer) || len(body) > 1000 {
		t.Errorf("%s %.20s %.60s: %d %.300s, want %d %s", c.method, c.path, c.body, status, body, c.status, c.answer)
	}
	if status >= 400 && !strings.HasPrefix(body, `{"error":{"code":"`) {
		t.Errorf("%s %s: the error is %s", c.method, c.path, body)
	}
	asked, want := strings.Join(h.talk.asked, ";"), strings.Replace(c.asked, "@", string(robotA), 1)
	if asked != want {
		t.Errorf("%s %.20s %.60s: the robot is asked %.200q, want %.200q", c.method, c.path, c.body, asked, want)
	}
}

// TestRoutes checks valid and invalid requests for routes that no other test covers.
func TestRoutes(t *testing.T) {
	long, huge := strings.Repeat("x", 4001), strings.Repeat(" ", 64<<10)+`{"text":"x"}`
	for _, c := range []request{
		{"GET", "devices/robot", "", 400, `"bad_robot_id"`, ""},
		{"GET", "devices/ffffffffffff", "", 400, `"bad_robot_id"`, ""},
		{"GET", "devices/020000000001", "", 404, `"unknown_robot"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `{"text":"hello"}`, 202, `{"ok":true,"queued":false}`, "say a0b1c2d3e4f5 hello"},
		{"POST", "devices/A0:B1:C2:D3:E4:F5/say", `{"text":"` + long[1:] + `"}`, 202, `{"ok":true,"queued":false}`,
			"say a0b1c2d3e4f5 " + long[1:]},
		{"POST", "devices/a0b1c2d3e4f5/say", `{"text":"` + long + `"}`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `{"text":""}`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `{}`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `{"text":7}`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `{"text":"hello"`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", ``, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", `["text"]`, 400, `"bad_body"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/say", huge, 413, `"body_too_large"`, ""},
		{"POST", "devices/020000000001/say", `{"text":"hello"}`, 404, `"unknown_robot"`, ""},
		{"POST", "devices/robot/say", `{"text":"hello"}`, 400, `"bad_robot_id"`, ""},
		{"POST", "devices/a0b1c2d3e4f5/abort", ``, 202, `{"ok":true}`, "abort a0b1c2d3e4f5"},
		{"POST", "devices/020000000001/abort", ``, 404, `"unknown_robot"`, ""},
		{"GET", "devices/a0b1c2d3e4f5/abort", ``, 405, `"wrong_method"`, ""},
		{"DELETE", "devices/020000000001", ``, 404, `"unknown_robot"`, ""},
		{"DELETE", "devices/robot", ``, 400, `"bad_robot_id"`, ""},
		{"POST", "adopt", `{"robot":"020000000001"}`, 404, `"nothing_to_adopt"`, ""},
		{"POST", "adopt", `{"code":"000000x"}`, 404, `"nothing_to_adopt"`, ""},
		{"POST", "adopt", `{}`, 400, `"bad_body"`, ""},
		{"POST", "adopt", `{"robot":`, 400, `"bad_body"`, ""},
		{"POST", "adopt", huge, 413, `"body_too_large"`, ""},
		{"DELETE", "memory/nothing", ``, 404, `"unknown_memory"`, ""},
		{"PUT", "memory/nothing", `{"text":"tea"}`, 404, `"unknown_memory"`, ""},
		{"POST", "memory", `{"text":" \n\t "}`, 400, `the text is empty`, ""},
		{"POST", "memory", `{"text":"` + long[:1001] + `"}`, 400, `"bad_body"`, ""},
		{"POST", "memory", `{"text":7}`, 400, `"bad_body"`, ""},
		{"POST", "memory", ``, 400, `"bad_body"`, ""},
		{"POST", "memory", huge, 413, `"body_too_large"`, ""},
		{"POST", "notifications/nothing/ack", ``, 404, `"unknown_notification"`, ""},
		{"GET", "turns", ``, 200, `["a turn"]`, ""},
		{"GET", "turns?limit=0", ``, 400, `"bad_limit"`, ""},
		{"GET", "turns?limit=1001", ``, 400, `"bad_limit"`, ""},
		{"GET", "turns?limit=many", ``, 400, `"bad_limit"`, ""},
		{"GET", "nothing", ``, 404, `"not_found"`, ""},
		{"PUT", "status", ``, 405, `"wrong_method"`, ""},
	} {
		c.try(t, "/api/v1/")
	}
}

// TestErrorsOfRobots checks that the text of an error is hidden if the error has no code.
func TestErrorsOfRobots(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		answer string
	}{
		{&httpserver.Fault{Word: "robot_offline", Sentence: "its channel is closed", HTTP: 409}, 409,
			`{"error":{"code":"robot_offline","message":"its channel is closed"}}`},
		{errors.New("secret: /dev/mmcblk0"), 500, `{"error":{"code":"internal","message":"internal error; the log says more"}}`},
		{fmt.Errorf("say: %w", device.ErrUnknownRobot), 404,
			`{"error":{"code":"unknown_robot","message":"say: unknown robot: it has never checked in, or was forgotten; perch robot list lists the robots"}}`},
		{fmt.Errorf("%w: it takes volume", device.ErrArguments), 400,
			`{"error":{"code":"bad_arguments","message":"` + device.ErrArguments.Error() + `: it takes volume"}}`},
	} {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.err = c.err
		h.wants(t, "POST", "/api/v1/devices/a0b1c2d3e4f5/say", `{"text":"hello"}`, c.status, "="+c.answer)
	}
}

func TestAdopt(t *testing.T) {
	for name, body := range map[string]func(code string) string{
		"by id":           func(string) string { return `{"robot":"a0b1c2d3e4f5"}` },
		"by MAC":          func(string) string { return `{"robot":"A0:B1:C2:D3:E4:F5"}` },
		"by code":         func(code string) string { return `{"code":"` + code + `"}` },
		"by code, spaced": func(code string) string { return `{"code":" ` + code + `\n"}` },
		"code as robot":   func(code string) string { return `{"robot":"` + code + `"}` },
	} {
		h := newAppliance(t)
		a := h.visit(t, robotA, "one")
		status, answer := h.ask(http.MethodPost, "/api/v1/adopt", body(a.Code))
		if status != 200 || !strings.Contains(answer, `"id":"a0b1c2d3e4f5"`) || !strings.Contains(answer, `"adopted":true`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		if a := h.visit(t, robotA, "one"); a.Token == "" {
			t.Errorf("%s: it gets no token", name)
		}
		again := 200 // adopting by ID works again; a code works once
		if strings.Contains(body(a.Code), a.Code) {
			again = 404
		}
		h.wants(t, http.MethodPost, "/api/v1/adopt", body(a.Code), again, "")
	}
}

// TestAdoptClaimedRobot checks that adopting a robot by its ID does not admit another client that claims its MAC
// address, unless replace is set.
func TestAdoptClaimedRobot(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	h.visit(t, robotA, "planted")
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"a0b1c2d3e4f5"}`, http.StatusConflict, `"claimed"`)
	if a := h.visit(t, robotA, "one"); a.Token == "" {
		t.Error("the robot itself gets no token")
	}
	h.visit(t, robotA, "planted")
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"A0:B1:C2:D3:E4:F5","replace":true}`, 200, `"adopted":false`)
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"A0:B1:C2:D3:E4:F5","replace":true}`, http.StatusNotFound, "")
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"123456","replace":true}`, http.StatusBadRequest, "")
	if a := h.visit(t, robotA, "planted"); a.Token == "" || h.robots.Trusts(robotA) {
		t.Errorf("who was let in gets %+v, trusted %t", a, h.robots.Trusts(robotA))
	}
}

// TestContestedCodeIsHidden checks that no code is shown if two clients use the same MAC address, so that the owner
// has to read the code from the robot's screen.
func TestContestedCodeIsHidden(t *testing.T) {
	h := newAppliance(t)
	a := h.visit(t, robotA, "one")
	if got := get[admin.Device](t, h, "/api/v1/devices/a0b1c2d3e4f5"); got.Code != a.Code {
		t.Errorf("a robot alone is shown with the code %q, not %q", got.Code, a.Code)
	}
	h.visit(t, robotA, "planted")
	if got := get[admin.Device](t, h, "/api/v1/devices/a0b1c2d3e4f5"); got.Code != "" || !strings.Contains(got.Waiting,
		"by the code on its screen") {
		t.Errorf("two are shown as %+v", got)
	}
}

// TestForgetStrangers checks that only robots that were not adopted are deleted.
func TestForgetStrangers(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	h.visit(t, robotB, "two")
	h.wants(t, http.MethodDelete, "/api/v1/strangers", "", 200, `={"forgotten":1}`)
	if list := h.robots.List(); len(list) != 1 || list[0].ID != robotA {
		t.Errorf("left are %+v", list)
	}
}

// TestAdoptionCodeTriesAreBounded checks that codes are refused after ten tries, with a sentence that says what to do.
func TestAdoptionCodeTriesAreBounded(t *testing.T) {
	h := newAppliance(t)
	a := h.visit(t, robotA, "one")
	for n := range 10 {
		wrong := fmt.Sprintf("%06d", n)
		if status, answer := h.ask(http.MethodPost, "/api/v1/adopt", `{"code":"`+wrong+`"}`); wrong != a.Code && (status != 404 ||
			!strings.Contains(answer, "nothing_to_adopt")) {
			t.Errorf("%d %s", status, answer)
		}
	}
	status, answer := h.ask(http.MethodPost, "/api/v1/adopt", `{"code":"`+a.Code+`"}`)
	if status != http.StatusTooManyRequests || !strings.Contains(answer, `"too_many_tries"`) || !strings.Contains(answer, "by its id") {
		t.Errorf("%d %s", status, answer)
	}
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"a0b1c2d3e4f5"}`, 200, "")
}

func TestForgetHangsUp(t *testing.T) {
	for _, offline := range []error{nil, errors.New("its channel is closed")} {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		h.talk.err = offline
		h.wants(t, http.MethodDelete, "/api/v1/devices/a0b1c2d3e4f5", "", 202, `={"ok":true}`)
		if got := strings.Join(h.talk.asked, ";"); got != "hangup a0b1c2d3e4f5 forgotten" {
			t.Errorf("asked %q", got)
		}
		h.wants(t, http.MethodGet, "/api/v1/devices/a0b1c2d3e4f5", "", 404, "")
	}
}

func TestDays(t *testing.T) {
	h := newAppliance(t)
	for query, want := range map[string]string{"": "a day of ", "?robot=A0:B1:C2:D3:E4:F5": "a day of " + string(robotA)} {
		if got := get[[]string](t, h, "/api/v1/days"+query); !slices.Equal(got, []string{want}) {
			t.Errorf("days%s: %q", query, got)
		}
	}
	h.wants(t, http.MethodGet, "/api/v1/days?robot=nobody", "", 400, "bad_robot_id")
}

func TestTurnsLimit(t *testing.T) {
	h := newAppliance(t)
	for query, want := range map[string]int{"": 50, "?limit=1": 1, "?limit=1000": 1000} {
		get[[]string](t, h, "/api/v1/turns"+query)
		if h.most != want {
			t.Errorf("turns%s asks for %d, want %d", query, h.most, want)
		}
	}
}
