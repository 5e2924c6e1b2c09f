package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/agent"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// fakeNizima is a fake of nizima LIVE as its documentation describes the program.
type fakeNizima struct {
	*fake
	eager       bool // whether the user switches every plugin on at once
	mu          sync.Mutex
	tokens      []string
	known       bool
	enabled     bool
	expressions map[string]bool // whether each expression is active; key: path
	parameters  map[string]float64
}

func newFakeNizima(t testing.TB) *fakeNizima {
	f := &fakeNizima{expressions: map[string]bool{"e/happy.exp3.json": false, "e/Thinking.exp3.json": false},
		parameters: map[string]float64{"MouthOpen": 0, "MouthSmile": 0.5, "FaceAngleY": 0}}
	f.fake = newFake(t, "", f.reply)
	return f
}

// again starts the program again, with the same plugins and without active expressions.
func (f *fakeNizima) again() {
	f.known = false
	for path := range f.expressions {
		f.expressions[path] = false
	}
	f.fake.again()
}

func (f *fakeNizima) reply(message []byte) []any {
	var m struct {
		Version      string `json:"nLPlugin"`
		ID           string `json:"Id"`
		Type, Method string
		Data         struct {
			Name, Developer, Token, ModelID, ExpressionPath, MotionPath string
			LiveParameterValues                                         []value
			LiveParameters                                              []nizimaParameter
		}
	}
	if json.Unmarshal(message, &m) != nil || m.Version != "1.0.0" || m.Type != "Request" {
		return []any{map[string]any{"nLPlugin": "1.0.0", "Type": "Error", "Data": map[string]string{"ErrorType": "InvalidApi"}}}
	}
	d := m.Data
	data, refusal := f.does(m.Method, d.Name, d.Token, d.ExpressionPath+d.MotionPath, d.LiveParameterValues, d.LiveParameters)
	kind := "Response"
	if refusal != "" {
		kind, data = "Error", map[string]string{"ErrorType": refusal}
	} else if m.Method == "EstablishConnection" {
		kind = "Request" // as in the documentation
	}
	answers := []any{map[string]any{"nLPlugin": "1.0.0", "Timestamp": 1, "Id": m.ID, "Type": kind, "Method": m.Method, "Data": data}}
	if m.Method == "RegisterPlugin" && f.eager {
		answers = append(answers, f.switched(true))
	}
	return answers
}

// switched returns the event of the switch in the plugin manager.
func (f *fakeNizima) switched(on bool) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enabled = on
	return map[string]any{"nLPlugin": "1.0.0", "Type": "Event", "Method": "NotifyEnabledChanged", "Data": map[string]bool{"Enabled": on}}
}

func (f *fakeNizima) does(method, name, token, path string, values []value, made []nizimaParameter) (data any, refusal string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case method == "RegisterPlugin" && name == "":
		return nil, "InvalidPluginName"
	case method == "RegisterPlugin":
		token := fmt.Sprintf("token-%d", len(f.tokens))
		f.tokens, f.known = append(f.tokens, token), true
		return map[string]string{"Token": token}, ""
	case method == "EstablishConnection":
		if f.known = slices.Contains(f.tokens, token); !f.known {
			return nil, "InvalidToken"
		}
		return map[string]bool{"Enabled": f.enabled}, ""
	case !f.known || !f.enabled:
		return nil, "PluginDisabled"
	}
	_, expression := f.expressions[path]
	switch method {
	case "NotifyCurrentModelChanged":
		return struct{}{}, ""
	case "GetCurrentModelId":
		return map[string]string{"SceneId": "1", "ModelId": "7"}, ""
	case "GetExpressions":
		all := []any{}
		for path, active := range f.expressions {
			name := strings.TrimSuffix(strings.TrimPrefix(path, "e/"), ".exp3.json")
			all = append(all, map[string]any{"Name": name, "ExpressionPath": path, "Active": active})
		}
		return map[string]any{"Expressions": all}, ""
	case "GetMotions":
		return map[string]any{"Motions": []any{map[string]string{"Name": "Wave", "MotionPath": "m/wave.motion3.json"}}}, ""
	case "GetLiveParameters":
		all := []any{}
		for id := range f.parameters {
			p := map[string]any{"Id": id, "Group": "Face", "Base": 0, "Max": 1, "Min": 0, "Repeat": false, "CreatedBy": "nizima LIVE"}
			switch id {
			case "MouthSmile":
				p["Base"] = .5
			case "FaceAngleY":
				p["Max"], p["Min"] = 30, -30
			}
			all = append(all, p)
		}
		return map[string]any{"LiveParameters": all}, ""
	case "InsertLiveParameters":
		for _, p := range made {
			if _, is := f.parameters[p.ID]; is || p.Min >= p.Max || p.Base < p.Min || p.Base > p.Max {
				return nil, "InvalidData"
			}
			f.parameters[p.ID] = p.Base
		}
		return struct{}{}, ""
	case "StartExpression", "StopExpression":
		if !expression {
			return nil, "InvalidExpressionPath"
		}
		f.expressions[path] = method == "StartExpression"
		return struct{}{}, ""
	case "StartMotion":
		return struct{}{}, ""
	case "SetLiveParameterValues":
		for _, v := range values {
			f.parameters[v.ID] = v.Value
		}
		return struct{}{}, ""
	}
	return nil, "InvalidMethod"
}

// line returns the change of the avatar or its mouth that a message requests, or "".
func (f *fakeNizima) line(message string) string {
	var m struct {
		Method string
		Data   struct {
			ExpressionPath, MotionPath string
			LiveParameterValues        []value
		}
	}
	if json.Unmarshal([]byte(message), &m) != nil {
		return ""
	}
	switch m.Method {
	case "StartExpression", "StopExpression", "StartMotion":
		return m.Method + ":" + m.Data.ExpressionPath + m.Data.MotionPath
	}
	return mouthOf(m.Data.LiveParameterValues)
}

func (f *fakeNizima) is(what func() bool) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return what()
	}
}

// TestNizima tests that Perch waits until the user switches it on, shows a mood, and waits again when the user
// switches it off. TestSpokenTurn tests a turn.
func TestNizima(t *testing.T) {
	t.Parallel()
	f := newFakeNizima(t)
	h := newHarness(t, Target{Kind: "nizima", URL: "ws://" + f.address})
	h.eventually("it waits", func() bool { return strings.Contains(h.note(), "plugin manager") })
	f.send(f.switched(true))
	h.eventually("it is connected", func() bool { return h.relays.List()[0].OK })
	h.happens(robotA, "s", event.RobotOnline{}, moodFrame("celebration"))
	h.eventually("the mood", f.is(func() bool {
		return f.parameters["MouthSmile"] == 1 && f.parameters["StackchanCelebration"] == 1 && f.parameters["FaceAngleY"] == 5
	}))
	if mouth := `"Overwrite":true`; !strings.Contains(f.last("StackchanCelebration"), mouth) || strings.Contains(f.last("MouthSmile"), mouth) {
		t.Error("the mood does not leave a tracker its face, or what is Perch's own is combined with it")
	}
	told := func() int { return strings.Count(f.all(), "SetLiveParameterValues") }
	was := told()
	h.eventually("it is repeated", func() bool { return told() > was+2 })
	h.happens(robotA, "s", event.Mood{Dominant: "neutral", Face: "neutral"})
	h.eventually("it is handed back", f.is(func() bool {
		return f.parameters["MouthSmile"] == .5 && f.parameters["StackchanCelebration"] == 0
	}))
	f.send(f.switched(false))
	h.eventually("it waits again", func() bool { return strings.Contains(h.note(), "to switch Perch on") })
	f.send(f.switched(true))
	h.eventually("it is connected again", func() bool { return h.relays.List()[0].OK })
	if n := strings.Count(f.all(), "RegisterPlugin"); n != 1 {
		t.Errorf("it has registered %d times", n)
	}
}

// TestNizimaRemovesPlugin tests that Perch registers again if nizima LIVE no longer knows its token.
func TestNizimaRemovesPlugin(t *testing.T) {
	f := newFakeNizima(t)
	f.enabled, f.tokens = true, []string{"kept"}
	tokens := &storetest.Table[string]{}
	p := nizima{&programConfig{Target: Target{Name: "n", URL: "ws://" + f.address}, words: words{names: agent.StockWords()},
		appliance: "Perch", tokens: tokens}}
	for token, registered := range map[string]int{"kept": 0, "removed": 1} {
		must.Succeed(t, tokens.Put(p.tokenKey(p.URL), token))
		before := strings.Count(f.all(), "RegisterPlugin")
		ctx, cancel := context.WithCancel(t.Context())
		l, err := p.open(ctx, func(note error) {
			if strings.Contains(text(note), "to switch Perch on") {
				cancel() // in this test, no user switches the new plugin on
			}
		})
		cancel()
		if err == nil {
			l.close()
		}
		if got := strings.Count(f.all(), "RegisterPlugin") - before; got != registered || (err == nil) != (registered == 0) {
			t.Errorf("%s: registered %d times, %v", token, got, err)
		}
	}
}
