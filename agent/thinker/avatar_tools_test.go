package thinker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// TestAvatarTools checks the effect, the result and the arguments of the five avatar tools and of remember.
func TestAvatarTools(t *testing.T) {
	const ok = `{"ok":true}`
	for _, c := range []struct{ name, args, answer, does string }{
		{"wave", `{}`, ok, "gesture wave 1500"},
		{"wave", `{"duration_ms":100}`, ok, "gesture wave 500"},
		{"wave", `{"duration_ms":1e300}`, ok, "gesture wave 5000"},
		{"wave", `{"duration_ms":"long"}`, "Error: the argument duration_ms may not be a JSON string", ""},
		{"lookAt", `{"target":"user"}`, ok, "look user"},
		{"lookAt", `{"target":"moon"}`, `Error: target is user, camera or center, not "moon"`, ""},
		{"play_clip", `{"name":"Nod","fade_ms":100}`, ok, "gesture nod 0"},
		{"play_clip", `{"name":"dance","loop":true}`, ok, "gesture dance 10000"},
		{"play_clip", `{"name":"bow"}`, ok, "gesture dance 0"},
		{"play_clip", `{"name":"celebrate"}`, ok, "gesture celebrate 0"},
		{"play_clip", `{"name":"finale"}`, ok, "gesture av-finale 0"},
		{"play_clip", `{"name":"av-finale"}`, ok, "gesture av-finale 0"},
		{"play_clip", `{"name":"encore"}`, ok, "gesture encore 0"},
		{"play_clip", `{"name":"somersault"}`, `Error: there is no clip "somersault"; there are: nod, dance, bow, celebrate, av-party, encore, finale, av-finale`, ""},
		{"setExpression", `{"preset":"sad","intensity":0.4}`, ok, "expression sad 0.4|sad 0.4"},
		{"setExpression", `{"preset":"focused"}`, ok, "expression focused 1|thinking 1"},
		{"setExpression", `{"preset":"happy","intensity":-3}`, ok, "expression happy 0"},
		{"setExpression", `{"preset":"evil"}`, `Error: preset is neutral, happy, sad, surprised, confused or focused, not "evil"`, ""},
		{"speak", `{"text":"😊 One. Two."}`, ok, "say One.|say Two."},
		{"speak", `{"text":" "}`, "Error: text has 1 to 2000 bytes", ""},
		{"remember", `{"key":"tea","name":"Tea","description":"what Ann drinks","type":"feedback","body":"Ann drinks green tea."}`, "Remembered.",
			"tea Tea feedback Ann drinks green tea."},
		{"remember", `{"fact":"The cat is Tom."}`, "Remembered.", " The cat is Tom. user The cat is Tom."},
		{"remember", `{"body":"x","type":"gossip"}`,
			"Error: cannot be remembered: type is one of user, feedback, project, reference, not \"gossip\"", ""},
	} {
		var did []string
		m := &model{script: []message{{calls: []thinker.ToolCall{call("1", c.name, c.args)}}, {texts: []string{"😊 There."}}}}
		memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
		gestures := func() []string { return []string{"nod", "dance", "bow", "celebrate"} }
		k := thinker.New(thinker.Options{Model: m, Memory: memory, Gestures: gestures, Publish: func(id device.ID, session string, e event.Event) {
			if id != "a0b1c2d3e4f5" || session != "s" {
				t.Errorf("%s of %s %s", event.Kind(e), id, session)
			}
			switch e := e.(type) {
			case event.Gesture:
				did = append(did, fmt.Sprint("gesture ", e.Name, " ", e.Duration))
			case event.LookAt:
				did = append(did, "look "+e.Target)
			case event.Expression:
				did = append(did, fmt.Sprint("expression ", e.Preset, " ", e.Intensity))
			}
		}})
		leo := agent.Persona{Clips: map[string]string{"bow": "dance", "celebrate": "av-party", "finale": "av-finale", "encore": ""}}
		turn := agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: "go", Now: noon, Persona: &leo}
		err := k.Think(t.Context(), turn, func(r agent.Reply) error {
			if len(m.asked) > 1 {
				return nil // ignore the reply after the tool call
			}
			switch r := r.(type) {
			case agent.Say:
				did = append(did, "say "+r.Text)
			case agent.Felt:
				did = append(did, fmt.Sprint(r.Emotion.Name, " ", r.Intensity))
			}
			return nil
		})
		must.Succeed(t, err)
		for _, e := range memory.Search("", turn.Now) {
			did = append(did, strings.Join([]string{e.Key, e.Name, e.Type, e.Body}, " "))
		}
		last := m.asked[1].Messages[len(m.asked[1].Messages)-1]
		if got := strings.Join(did, "|"); got != c.does || last.Text != c.answer {
			t.Errorf("%s %s: did %q, answered %q; want %q, %q", c.name, c.args, got, last.Text, c.does, c.answer)
		}
	}
}

// TestToolsOfAJoinedTalk checks that a gesture in a text chat with a robot's agent is published for the
// chat and for the robot, and that an untrusted turn cannot make gestures.
func TestToolsOfAJoinedTalk(t *testing.T) {
	for untrusted, want := range map[bool]string{false: "/vtb_s a0b1c2d3e4f5/", true: ""} {
		var did []string
		m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "wave", "{}")}}, {texts: []string{"😊 There."}}}}
		k := thinker.New(thinker.Options{Model: m, Memory: agent.NewMemory(&storetest.Table[agent.Entry]{}),
			Publish: func(id device.ID, session string, _ event.Event) { did = append(did, string(id)+"/"+session) }})
		turn := agent.Turn{Robot: "a0b1c2d3e4f5", Session: "vtb_s", Untrusted: untrusted, Text: "go", Now: noon,
			Publish: func(event.Event) { did = append(did, "/vtb_s") }}
		must.Succeed(t, k.Think(t.Context(), turn, func(agent.Reply) error { return nil }))
		if got := strings.Join(did, " "); got != want {
			t.Errorf("untrusted %t: %q, not %q", untrusted, got, want)
		}
	}
}

// TestACharactersTools checks that a manifest can restrict the five avatar tools and remember, but no other
// tool, and that an untrusted turn has no avatar tools.
func TestACharactersTools(t *testing.T) {
	six := []string{"wave", "lookAt", "play_clip", "setExpression", "speak", "remember"}
	memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
	k := thinker.New(thinker.Options{Memory: memory, Publish: func(device.ID, string, event.Event) {}})
	for _, c := range []struct{ tools, want []string }{
		{nil, six}, {[]string{}, nil}, {[]string{"wave", "speak", "fly"}, []string{"wave", "speak"}},
	} {
		var got []string
		stranger := agent.Turn{Robot: "a0b1c2d3e4f6", Untrusted: true, Persona: &agent.Persona{Tools: c.tools}}
		for _, tool := range k.TurnTools(t.Context(), stranger, func(...agent.Reply) error { return nil }).Offered() {
			if slices.Contains(six, tool.Name) && tool.Name != "remember" { // a stranger has a separate memory
				t.Errorf("a stranger's turn has %s", tool.Name)
			}
		}
		turn := agent.Turn{Persona: &agent.Persona{Tools: c.tools}}
		set := k.TurnTools(t.Context(), turn, func(...agent.Reply) error { return nil })
		for _, tool := range set.Offered() {
			if slices.Contains(six, tool.Name) {
				got = append(got, tool.Name)
			}
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(c.want)); !slices.Equal(got, want) {
			t.Errorf("of %v: %v", c.tools, got)
		}
		if !slices.ContainsFunc(set.Offered(), func(o thinker.Tool) bool { return o.Name == "recall" }) {
			t.Error("a tool that is none of the six is gone")
		}
	}
}
