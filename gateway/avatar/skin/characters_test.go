package skin

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"perch/agent"
)

// troupe is a set of characters.
type troupe []string

func (c troupe) Names() []string { return c }

func (c troupe) Exists(name string) bool { return slices.Contains(c, name) }

func (c troupe) Play(t *agent.Turn, name, system string) {
	if name != "" || system != "" {
		t.Persona = &agent.Persona{ID: name, Text: system}
	}
}

// TestModelsAreCharacters tests that the name of a model selects the character and the words for faces,
// except in a robot's conversation.
func TestModelsAreCharacters(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Characters = troupe{"leo"} })
	h.brain.replies = said()
	if _, list := h.ask(t, http.MethodGet, "/v1/models", ""); !strings.Contains(list, `"id":"leo"`) {
		t.Errorf("models are %s", list)
	}
	for id, want := range map[string]int{"leo": 200, "leo/vrm": 200, "leo/none": 404, "mia/vrm": 404} {
		if answer, body := h.ask(t, http.MethodGet, "/v1/models/"+id, ""); answer.StatusCode != want {
			t.Errorf("%s: %d %s", id, answer.StatusCode, body)
		}
	}
	for i, one := range []struct{ model, session, who, conversation, begins string }{
		{"leo", "s", "leo", "as:leo/skin:s", "[happy]"},
		{"leo/vrm", "s", "leo", "as:leo/skin:s", "[happy]"},
		{"leo/chatdollkit", "s", "leo", "as:leo/skin:s", "[face:Joy]"},
		{"perch", "s", "", "skin:s", "[happy]"},
		{"gpt-4o", "s", "", "skin:s", "[happy]"},
		{"leo", "robot:" + string(robotA), "", string(robotA), "[happy]"},
	} {
		body := strings.Replace(chatOf(""), `"perch"`, `"`+one.model+`"`, 1)
		answer, text := h.ask(t, http.MethodPost, chatPath, body, "X-Session-Id", one.session)
		turn, who := h.brain.turns()[i], ""
		if turn.Persona != nil {
			who = turn.Persona.ID
		}
		if answer.StatusCode != 200 || !strings.Contains(text, `"content":"`+one.begins) || who != one.who || turn.Conversation != one.conversation {
			t.Errorf("%+v: %s of %q in %q", one, text, who, turn.Conversation)
		}
	}
	if answer, body := h.ask(t, http.MethodPost, chatPath, strings.Replace(chatOf(""), `"perch"`, `"leo/none"`, 1)); answer.StatusCode != 404 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// TestSystemMessages tests that system messages reach the agent only with Options.System.
func TestSystemMessages(t *testing.T) {
	const body = `{"messages":[{"role":"system","content":"Be a cat."},{"role":"user","content":"hello"}]}`
	for _, on := range []bool{false, true} {
		h := newHarness(t, func(o *Options) { o.Characters, o.System = troupe{}, on })
		h.brain.replies = said()
		h.ask(t, http.MethodPost, chatPath, body)
		if p := h.brain.turns()[0].Persona; on != (p != nil) || on && p.Text != "Be a cat." {
			t.Errorf("system %v: %+v", on, p)
		}
		h.stop()
	}
}
