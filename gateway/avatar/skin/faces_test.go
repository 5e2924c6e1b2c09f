package skin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/thinker"
)

// writes returns a function for brain.think that replies with the text of a model.
func writes(text string) func(context.Context, agent.Turn, func(agent.Reply) error) error {
	return func(_ context.Context, t agent.Turn, out func(agent.Reply) error) error {
		s := thinker.NewSpeech(t.Language)
		for _, r := range append(append(s.Write(text), s.Flush()...), agent.Done{End: agent.Continue}) {
			if err := out(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// chats returns the text of the reply to a request for a model.
func (h *harness) chats(t *testing.T, model string) string {
	t.Helper()
	_, body := h.ask(t, http.MethodPost, chatPath, strings.Replace(chatOf(""), `"perch"`, `"`+model+`"`, 1))
	_, content, _ := strings.Cut(body, `"content":"`)
	content, _, _ = strings.Cut(content, `"`)
	return content
}

// TestAll21FacesReachSkins tests that skins get all 21 faces, which a model writes as an emoji or as a tag.
func TestAll21FacesReachSkins(t *testing.T) {
	h := newHarness(t)
	c := h.connect(t)
	c.send(`{"type":"subscribe","events":["emotion"],"vocabulary":"xiaozhi"}`)
	c.answered()
	for _, e := range agent.Emotions() {
		for _, text := range []string{e.Emoji + " Hi.", "[" + e.Name + "] Hi.", "[face:" + e.Name + "] Hi."} {
			h.brain.think = writes(text)
			want := "[" + e.Name + "] Hi."
			if e == agent.Neutral {
				want = "Hi."
			}
			if got := h.chats(t, "perch/xiaozhi"); got != want {
				t.Errorf("of %q a chat is given %q", text, got)
			}
			if got := c.next(); !strings.Contains(got, fmt.Sprintf(`"tag":%q`, e.Name)) {
				t.Errorf("of %q a skin is sent %s", text, got)
			}
		}
	}
}

// TestVerbatimTags tests that skins that select the vocabulary "verbatim" get the tags as the model has written
// them, and that the other skins get the nearest face.
func TestVerbatimTags(t *testing.T) {
	h := newHarness(t)
	own, usual := h.connect(t), h.connect(t)
	own.send(`{"type":"subscribe","events":["emotion","notification"],"vocabulary":"verbatim"}`)
	usual.send(`{"type":"subscribe","events":["emotion","notification"]}`)
	for _, c := range []struct{ text, own, rfc string }{
		{"[Excited:0.8] Hi.", "[Excited] Hi.", "[excited] Hi."},
		{"[face:Joy] Hi.", "[Joy] Hi.", "[happy] Hi."},
		{"[blush] Hi.", "[blush] Hi.", "[shy] Hi."},
		{"[笑顔] Hi.", "[笑顔] Hi.", "[happy] Hi."},
		{"[face:tsundere_2] Hi.", "[tsundere_2] Hi.", "Hi."},
		{"😏 Hi.", "[confident] Hi.", "[smirk] Hi."},
		{"[joy] Hi. [happy] You.", "[joy] Hi. [happy] You.", "[happy] Hi. You."},
		{"[face:<b>] Hi.", "Hi.", "Hi."},
		{"[face:" + strings.Repeat("x", 100) + "] Hi.", "Hi.", "Hi."},
		{"Hi.", "Hi.", "Hi."},
	} {
		h.brain.think = writes(c.text)
		if got := h.chats(t, "perch/verbatim"); got != c.own {
			t.Errorf("of %q who asks for the model's own is given %q", c.text, got)
		}
		if got := h.chats(t, "perch"); got != c.rfc {
			t.Errorf("of %q the others are given %q", c.text, got)
		}
	}
	h.brain.think = writes("[joy] Hi. [happy] You. [tsundere] No face of its own.")
	own.until()
	usual.until()
	h.chats(t, "perch")
	tags := func(c *client) (tags []string) {
		for _, f := range c.until() {
			_, tag, _ := strings.Cut(f, `"tag":"`)
			tag, _, _ = strings.Cut(tag, `"`)
			tags = append(tags, tag)
		}
		return tags
	}
	if got := fmt.Sprint(tags(own), tags(usual)); got != "[joy happy] [happy]" {
		t.Errorf("sent are %s", got)
	}
}
