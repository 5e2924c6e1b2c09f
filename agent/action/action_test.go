package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/must"
)

func number(f float64) *float64 { return &f }

// TestEventsAndActionsMapBothWays tests the conversion of each event to an action, and of the action
// to an event.
func TestEventsAndActionsMapBothWays(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_123)
	seen := map[Type]bool{}
	for _, c := range []struct {
		event   event.Event
		kind    Type
		payload string
		skill   string
		back    event.Event // event for the action; nil means equal to event
	}{
		{event.Said{Text: "Hello!", By: event.ByViewer}, Speak, `{"text":"Hello!","sentiment":0.5,"by":"viewer"}`, "", nil},
		{event.Thought{Text: "hm", By: event.ByViewer}, Think, `{"thought":"hm","by":"viewer"}`, "", nil},
		{event.Gesture{Name: "wave", Duration: 1500, By: event.ByViewer}, Gesture, `{"name":"wave","duration":1500,"by":"viewer"}`, "", nil},
		{event.Gesture{Name: "nod", By: event.ByViewer, Skill: "greet"}, Gesture, `{"name":"nod","by":"viewer"}`, "greet", nil},
		{event.Emote{Trigger: "curiosity", Weight: .4}, Emote, `{"trigger":"curiosity","weight":0.4,"by":"viewer"}`, "", nil},
		{event.LookAt{Target: "user", By: event.ByViewer}, LookAt, `{"target":"user","by":"viewer"}`, "", nil},
		{event.LookAt{Target: "center", By: event.ByViewer}, LookAt, `{"target":"model","by":"viewer"}`, "",
			event.LookAt{Target: "model", By: event.ByViewer}},
		{event.SkillStarted{Skill: "greet", Args: json.RawMessage(`{"a":1}`), Gesture: "wave", By: event.ByViewer}, PerformSkill,
			`{"skill":"greet","args":{"a":1},"animationHint":"wave","by":"viewer"}`, "greet", nil},
		{event.SkillDone{Skill: "greet", Output: "Hi", Sentiment: number(.6), Data: json.RawMessage(`[1]`), By: event.ByViewer}, SkillDone,
			`{"skill":"greet","result":{"success":true,"output":"Hi","sentiment":0.6,"data":[1]},"by":"viewer"}`, "greet", nil},
		{event.SkillFailed{Skill: "greet", Error: "no voice", By: event.ByViewer}, SkillError,
			`{"skill":"greet","error":"no voice","by":"viewer"}`, "greet", nil},
		{event.Remembered{ID: "7", Type: "user", Name: "tea", Body: "likes tea", By: event.ByViewer}, Remember,
			`{"type":"user","content":"likes tea","name":"tea","id":"7","by":"viewer"}`, "",
			event.Remembered{Type: "user", Name: "tea", Body: "likes tea", By: event.ByViewer}},
		{event.Signed{Message: "m", Address: "0xab", Signature: "s", By: event.ByViewer}, Sign,
			`{"message":"m","address":"0xab","signature":"s","by":"viewer"}`, "", nil},
		{event.LoadStarted{URI: "a.glb"}, LoadStart, `{"uri":"a.glb","by":"viewer"}`, "", nil},
		{event.LoadEnded{URI: "a.glb", Error: "404"}, LoadEnd, `{"uri":"a.glb","error":"404","by":"viewer"}`, "", nil},
		{event.Validated{Errors: 2, Warnings: 1}, Validate, `{"errors":2,"warnings":1,"by":"viewer"}`, "", nil},
		{event.Presence{State: "online", By: event.ByViewer}, Presence, `{"state":"online","by":"viewer"}`, "", nil},
	} {
		a, ok := Of(event.Envelope{At: at, Event: c.event}, "cook", func(string) float64 { return .5 })
		if !ok || a.Type != c.kind || string(a.Payload) != c.payload || a.Agent != "cook" || a.Timestamp != 1_790_000_000_123 ||
			(a.Skill == nil) != (c.skill == "") || a.Skill != nil && *a.Skill != c.skill {
			t.Errorf("%#v is %s %s", c.event, a.Type, a.Payload)
			continue
		}
		seen[a.Type] = true
		want := c.back
		if want == nil {
			want = c.event
		}
		if back, err := a.Event(); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%s %s comes back as %#v, %v", a.Type, a.Payload, back, err)
		}
	}
	for _, kind := range Types() {
		if !seen[kind] {
			t.Errorf("%s has no row", kind)
		}
	}
	thinks, ok := Of(event.Envelope{Event: event.ThinkingStarted{Brain: "openai"}}, "", nil)
	if !ok || string(thinks.Payload) != `{"thought":"","brain":"openai"}` {
		t.Errorf("a brain that thinks is %s", thinks.Payload)
	}
	if own, ok := Of(event.Envelope{Event: event.Thought{Text: "hm"}}, "", nil); !ok || string(own.Payload) != `{"thought":"hm"}` {
		t.Errorf("the agent's own thought is %s", own.Payload)
	}
	if _, ok := Of(event.Envelope{Event: event.Heard{Text: "hi"}}, "", nil); ok {
		t.Error("what somebody else says is an action of the agent")
	}
}

// TestAViewerPassesForNobodyElse tests that the action of a viewer always has By "viewer",
// whatever the viewer sends as By, and that the agent's own actions never have it.
func TestAViewerPassesForNobodyElse(t *testing.T) {
	for kind, payload := range map[Type]string{Speak: `"text":"x"`, Think: `"thought":"x"`, Gesture: `"name":"wave"`, Emote: `"trigger":"empathy"`,
		LookAt: `"target":"user"`, PerformSkill: `"skill":"x"`, SkillDone: `"skill":"x"`, SkillError: `"skill":"x"`, Remember: `"content":"x"`,
		Sign: `"message":"x","address":"a"`, LoadStart: `"uri":"x"`, LoadEnd: `"uri":"x"`, Validate: `"errors":1`, Presence: `"state":"x"`} {
		for _, by := range []string{"", `,"by":"model"`, `,"by":"","By":""`} {
			e, err := Action{Type: kind, Payload: json.RawMessage("{" + payload + by + "}")}.Event()
			if err != nil {
				t.Fatal(kind, err)
			}
			if a, ok := Of(event.Envelope{Event: e}, "cook", nil); !ok || !strings.Contains(string(a.Payload), `"by":"viewer"`) {
				t.Errorf("%s%s is told as %s", kind, by, a.Payload)
			}
		}
	}
	for _, own := range []event.Event{event.Said{}, event.ThinkingStarted{}, event.SkillStarted{}, event.SkillDone{}, event.SkillFailed{},
		event.Remembered{}, event.Signed{}, event.Gesture{By: event.ByModel}, event.LookAt{By: event.BySkill}, event.LookAt{By: event.ByRobot}, event.Presence{}} {
		if a, ok := Of(event.Envelope{Event: own}, "cook", nil); !ok || strings.Contains(string(a.Payload), `viewer`) {
			t.Errorf("%#v is told as %s", own, a.Payload)
		}
	}
}

func TestActionJSON(t *testing.T) {
	a, _ := Of(event.Envelope{At: time.UnixMilli(5), Event: event.Presence{State: "online"}}, "default", nil)
	text, err := json.Marshal(a)
	want := `{"type":"presence","payload":{"state":"online"},"timestamp":5,"agentId":"default","sourceSkill":null}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDefaultsOfViewersActions(t *testing.T) {
	for text, want := range map[string]event.Event{
		`{"type":"emote","payload":{"trigger":"empathy"}}`: event.Emote{Trigger: "empathy", Weight: .7},
		`{"type":"validate","payload":{"errors":[{},{}]}}`: event.Validated{Errors: 2},
		`{"type":"remember","payload":{"body":"tea"}}`:     event.Remembered{Type: "user", Body: "tea", By: event.ByViewer},
		`{"type":"load-end","payload":{"error":null}}`:     event.LoadEnded{},
		`{"type":"skill-done","payload":{"skill":"x","result":{"success":false,"output":"unknown","sentiment":-0.3}}}`: event.SkillFailed{
			Skill: "x", Error: "unknown", By: event.ByViewer},
	} {
		var a Action
		must.Succeed(t, json.Unmarshal([]byte(text), &a))
		if e, err := a.Event(); err != nil || !reflect.DeepEqual(e, want) {
			t.Errorf("%s: %#v, %v", text, e, err)
		}
	}
}

func TestBadActions(t *testing.T) {
	for text, says := range map[string]string{
		`{"type":"dance"}`:                                                                                          "there is no type",
		`{"type":"speak"}`:                                                                                          "payload is an object",
		`{"type":"speak","payload":[]}`:                                                                             "payload is an object",
		`{"type":"speak","payload":{"text":" "}}`:                                                                   "payload.text is needed",
		`{"type":"speak","payload":{"text":7}}`:                                                                     "payload.text may not be a JSON number",
		`{"type":"gesture","payload":{"name":"wave","duration":-1}}`:                                                "milliseconds",
		`{"type":"gesture","payload":{"name":"wave","duration":1e9}}`:                                               "milliseconds",
		`{"type":"emote","payload":{"trigger":"joy"}}`:                                                              "payload.trigger",
		`{"type":"emote","payload":{"trigger":"concern","weight":1.1}}`:                                             "payload.weight",
		`{"type":"look-at","payload":{"target":"moon"}}`:                                                            "payload.target",
		`{"type":"remember","payload":{"type":"diary","content":"x"}}`:                                              "payload.type",
		`{"type":"perform-skill","payload":{"skill":"x","args":[1]}}`:                                               "payload.args",
		`{"type":"skill-done","payload":{"skill":"x","result":{"sentiment":2}}}`:                                    "payload.result.sentiment",
		`{"type":"skill-done","payload":{"skill":"x","result":{"data":"` + strings.Repeat("x", limit.Said) + `"}}}`: "payload.result.data",
		`{"type":"sign","payload":{"message":"m","address":"ed25519:AAAA"}}`:                                        "the appliance's",
		`{"type":"sign","payload":{"message":"m","address":" ed25519:AAAA"}}`:                                       "one word",
		`{"type":"sign","payload":{"message":"m","address":"\u200bed25519:AAAA"}}`:                                  "one word",
		`{"type":"validate","payload":{"errors":-1}}`:                                                               "payload.errors",
		`{"type":"presence","payload":{}}`:                                                                          "payload.state is needed",
		`{"type":"speak","payload":{"text":"` + strings.Repeat("a", limit.Text+1) + `"}}`:                           "at most",
	} {
		var a Action
		must.Succeed(t, json.Unmarshal([]byte(text), &a))
		if _, err := a.Event(); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// TestTheLogIsBounded records more actions and characters than the limits of the log.
func TestTheLogIsBounded(t *testing.T) {
	l := NewLog(func(_ device.ID, session string) string { return session }, nil)
	for c := range maxCharacters + 3 {
		for n := range maxActions + 5 {
			l.Record(event.Envelope{Seq: uint64(n), At: time.UnixMilli(int64(c*1000 + n)), Session: fmt.Sprint(c),
				Event: event.Presence{State: fmt.Sprint(n)}})
		}
	}
	if len(l.actions) != maxCharacters || len(l.actions[fmt.Sprint(maxCharacters)]) != maxActions {
		t.Errorf("%d characters, %d actions", len(l.actions), len(l.actions[fmt.Sprint(maxCharacters)]))
	}
	if got := l.Recent("0", nil, 5); len(got) != 0 {
		t.Errorf("the quietest character is kept: %v", got)
	}
	got := l.Recent(fmt.Sprint(maxCharacters+2), []Type{Presence}, 2)
	if len(got) != 2 || string(got[1].Payload) != fmt.Sprintf(`{"state":"%d"}`, maxActions+4) {
		t.Errorf("the latest two are %v", got)
	}
	if got := l.Recent("", []Type{Speak}, 10); len(got) != 0 {
		t.Errorf("of another type: %v", got)
	}
	if got := l.Recent("", nil, 100_000); len(got) != maxActions*maxCharacters {
		t.Errorf("all are %d", len(got))
	}
}
