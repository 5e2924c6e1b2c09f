package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/must"
)

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// toolsListed is the event for a new list of tools.
var toolsListed = event.ToolsListed{Count: 1}

func TestRobotAsCharacter(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Face = func(preset string) (agent.Emotion, bool) {
			if preset == "joy" {
				preset = "happy"
			}
			return named(preset)
		}
	})
	m := h.model(t)
	if text, failed := m.call("register-agent", object{"robot": "a0b1c2d3e4f7"}); !failed || !strings.Contains(text, "a0b1c2d3e4f5 a0b1c2d3e4f6") {
		t.Errorf("a robot that is not here: %t %s", failed, text)
	}
	m.must("register-agent", object{"robot": "A0:B1:C2:D3:E4:F5"})
	var can struct {
		Actions []message `json:"actions"`
	}
	must.Succeed(t, json.Unmarshal([]byte(m.must("get-capability", nil)), &can))
	var categories []string
	for _, a := range can.Actions {
		categories = append(categories, a.Category)
		if text, failed := m.call("play-action", object{"action": a}); failed {
			t.Errorf("its own example %s: %s", a.Category, text)
		}
	}
	if !slices.Equal(categories, []string{"expression", "say", "lookAt", "led"}) {
		t.Errorf("it can %q", categories)
	}
	h.robots.take()
	for _, c := range []struct{ category, data, asked, failed string }{
		{"lookAt", `{"target":{"type":"position","value":{"x":1,"y":0,"z":1}}}`,
			`call a0b1c2d3e4f5 self.robot.set_head_angles {"pitch":0,"speed":250,"yaw":-45}`, ""},
		{"lookAt", `{"target":{"type":"object","value":{"x":-1,"y":1,"z":0}}}`,
			`call a0b1c2d3e4f5 self.robot.set_head_angles {"pitch":45,"speed":250,"yaw":90}`, ""},
		{"lookAt", `{"target":{"type":"position","value":{"x":0,"y":0,"z":0}}}`, "", "inside the head"},
		{"lookAt", `{"target":{"type":"object","value":"cup"}}`, "", "lookAt needs"},
		{"lookAt", `{}`, "", "lookAt needs"},
		{"expression", `{"preset":"joy"}`, "feel a0b1c2d3e4f5 happy", ""},
		{"expression", `{"preset":"rage"}`, "", "the presets are: neutral, happy"},
		{"expression", `{}`, "", "expression needs"},
		{"say", `{"text":"Hi."}`, "say a0b1c2d3e4f5 Hi.", ""},
		{"say", `{"text":" "}`, "", "say needs"},
		{"say", `{"text":"` + strings.Repeat("x", 1001) + `"}`, "", "at most 1000 bytes"},
		{"led", `{"red":1,"green":2}`, `call a0b1c2d3e4f5 self.robot.set_led_color {"blue":0,"green":2,"red":1}`, ""},
		{"led", `{"red":"on"}`, "", "led needs"},
		{"movement", `{"target":{"x":1,"y":0,"z":0}}`, "", "cannot walk; its actions are expression, say, lookAt, led"},
		{"fly", `{}`, "", `no action "fly"; its actions are expression, say, lookAt, led`},
	} {
		text, failed := m.call("play-action", object{"action": object{"type": "action", "category": c.category, "data": json.RawMessage(c.data)}})
		asked := strings.Join(h.robots.take(), ";")
		if failed != (c.failed != "") || !strings.Contains(text, c.failed) || asked != c.asked || failed &&
			!strings.HasPrefix(text, "アクションの実行に失敗しました: ") {
			t.Errorf("%s %.60s: %t %s, asked %q", c.category, c.data, failed, text, asked)
		}
	}
	h.robots.err = errors.New("the robot's channel is closed")
	if text, failed := m.call("play-action", object{"action": object{"type": "action", "category": "expression",
		"data": object{"preset": "sad"}}}); !failed || !strings.HasSuffix(text, "the robot's channel is closed") {
		t.Errorf("one that is away: %t %s", failed, text)
	}
}

// TestRobotWithoutHead tests that a robot supports only the actions for which it has tools.
func TestRobotWithoutHead(t *testing.T) {
	h := newHarness(t)
	h.robots.tools = nil
	m := h.model(t)
	m.must("register-agent", object{"robot": string(robotA)})
	if got := m.must("get-capability", nil); strings.Contains(got, "lookAt") || strings.Contains(got, "led") || !strings.Contains(got, "happy") {
		t.Errorf("it can %s", got)
	}
	text, failed := m.call("play-action", object{"action": object{"type": "action", "category": "lookAt",
		"data": object{"target": object{"type": "position", "value": object{"z": 1}}}}})
	if !failed || !strings.Contains(text, "has no tool set_head_angles") {
		t.Errorf("%t %s", failed, text)
	}
}

// TestRobotsPerceptions tests that the perceptions are the latest event of each name, and the state.
func TestRobotsPerceptions(t *testing.T) {
	h := newHarness(t)
	seq := uint64(0)
	sense := func(robot string, name, data string) {
		seq++
		id := robotA
		if robot == "b" {
			id = robotB
		}
		h.senses.HandleEvent(event.Envelope{Seq: seq, At: time.Now(), Robot: id, Event: event.Perceived{Name: name, Data: json.RawMessage(data)}})
	}
	sense("a", "sound_event", `{"direction":"left"}`)
	sense("a", "face_detected", `{}`)
	sense("a", "sound_event", `{"direction":"right"}`)
	sense("b", "head_pet_started", `{}`)
	m := h.model(t)
	m.must("register-agent", object{"robot": string(robotA)})
	var all []message
	must.Succeed(t, json.Unmarshal([]byte(m.must("get-perception", nil)), &all))
	var received []string
	for _, p := range all {
		if p.Category != "state" {
			received = append(received, p.Type+" "+p.Category+" "+string(p.Data))
		}
	}
	if !slices.Equal(received, []string{`perception sound_event {"direction":"right"}`, "perception face_detected {}"}) {
		t.Errorf("perceived is %q", received)
	}
	if got := m.must("get-perception", object{"category": "state"}); !strings.Contains(got, `"face":{"present":true`) ||
		strings.Contains(got, "recent") {
		t.Errorf("the state is %s", got)
	}
}

// TestAngles tests that a head with the angles of a position looks at the position, within the range of the head.
func TestAngles(t *testing.T) {
	for _, c := range []struct {
		at         position
		yaw, pitch int
	}{
		{position{Z: 1}, 0, 0}, {position{X: 1}, -90, 0}, {position{X: -1}, 90, 0}, {position{Y: 1}, 0, 90}, {position{Y: -1}, 0, -90},
		{position{X: 0.001, Z: -1}, -128, 0}, {position{X: -0.001, Z: -1}, 128, 0}, {position{X: 1e300, Y: 1e300, Z: 1e300}, -45, 35},
		{position{Y: 1, Z: 1}, 0, 45},
	} {
		if yaw, pitch := c.at.angles(); yaw != c.yaw || pitch != c.pitch {
			t.Errorf("%+v: %d %d", c.at, yaw, pitch)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		axis := rapid.Float64Range(-10, 10)
		p := position{axis.Draw(t, "x"), axis.Draw(t, "y"), axis.Draw(t, "z")}
		far := math.Hypot(math.Hypot(p.X, p.Y), p.Z)
		if far < 0.1 {
			return
		}
		yaw, pitch := p.angles()
		if yaw < -maxYaw || yaw > maxYaw || pitch < -90 || pitch > 90 {
			t.Fatalf("%+v: %d %d", p, yaw, pitch)
		}
		if yaw == -maxYaw || yaw == maxYaw {
			return // the head cannot turn that far
		}
		y, up := float64(yaw)*math.Pi/180, float64(pitch)*math.Pi/180
		looks := position{-math.Sin(y) * math.Cos(up), math.Sin(up), math.Cos(y) * math.Cos(up)}
		if along := (looks.X*p.X + looks.Y*p.Y + looks.Z*p.Z) / far; along < 0.999 {
			t.Fatalf("%+v is looked for at %+v", p, looks)
		}
	})
}

// TestTooManyCalls tests that calls above maxCalls are refused.
func TestTooManyCalls(t *testing.T) {
	h := newHarness(t)
	for range maxCalls {
		h.server.calls <- struct{}{}
	}
	if _, err := h.server.call(t.Context(), robotA, "x", nil); err != errBusy {
		t.Errorf("one more: %v", err)
	}
	if got := h.robots.take(); len(got) > 0 {
		t.Errorf("asked is %q", got)
	}
}

// TestToolNames tests that the names of tools are valid for every client.
func TestToolNames(t *testing.T) {
	for tool, want := range map[string]string{
		"self.robot.set_head_angles": "a0b1c2d3e4f5_robot_set_head_angles", "otto walk/forward": "a0b1c2d3e4f5_otto_walk_forward",
		"照相":                     "a0b1c2d3e4f5___",
		strings.Repeat("x", 200): "a0b1c2d3e4f5_" + strings.Repeat("x", 51),
	} {
		if got := toolName(robotA, tool); got != want {
			t.Errorf("%s is called %s", tool, got)
		}
	}
}

// FuzzMessage tests that an accepted message is forwarded unchanged.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{`{"type":"action","category":"lookAt","timestamp":"2024-01-01T00:00:00Z","data":{"target":{"type":"position","value":{"x":1,"y":2,"z":3}}}}`,
		`{"type":"system","category":"capability","data":{"actions":[]}}`, `{"type":"perception","category":"\u0000","data":{}}`, `null`,
		`{"type":"action","category":"x","data":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMessage(text, noon)
		if err != nil {
			return
		}
		again, err := parseMessage(httpserver.Encode(m), noon)
		if err != nil && len(httpserver.Encode(m)) <= limit.Instructions || err == nil && (again.Type != m.Type || again.Category != m.Category ||
			again.Timestamp != m.Timestamp) {
			t.Fatalf("%s became %s: %v", text, httpserver.Encode(m), err)
		}
		if p, err := parseLookAt(m.Data); err == nil {
			if yaw, pitch := p.angles(); yaw < -maxYaw || yaw > maxYaw || pitch < -90 || pitch > 90 {
				t.Fatalf("%+v: %d %d", p, yaw, pitch)
			}
		}
	})
}

// TestRobotNames tests that register-agent accepts a robot's name.
func TestRobotNames(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Find = func(robot string) (device.ID, error) {
			if strings.EqualFold(robot, "kitchen") {
				return robotA, nil
			}
			return device.ParseID(robot)
		}
	})
	m := h.model(t)
	m.must("register-agent", object{"robot": "Kitchen"})
	if text := m.must("get-capability", nil); text == "null" {
		t.Errorf("it was given no robot: %s", text)
	}
}

// tides is a fake of skills with one valid skill.
type tides struct{}

func (tides) Exposed() []thinker.Tool {
	return []thinker.Tool{
		{Name: "skill_tide", Description: "High water.", Schema: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)},
		{Name: "skill_odd", Schema: json.RawMessage(`{"type":"array"}`)}, // the library would panic
	}
}

func (tides) CallExposed(_ context.Context, name string, args json.RawMessage, _ time.Time) (string, error) {
	return fmt.Sprint(name, " ", string(args)), nil
}

func TestSkills(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Skills = tides{} })
	m := h.model(t)
	list, err := m.ListTools(t.Context(), nil)
	must.Succeed(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "skill_tide") || slices.Contains(names, "skill_odd") {
		t.Errorf("the tools are %v", names)
	}
	if got := m.must("skill_tide", object{"place": "Dover"}); got != `skill_tide {"place":"Dover"}` {
		t.Errorf("it answers %s", got)
	}
}
