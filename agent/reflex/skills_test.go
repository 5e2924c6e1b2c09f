package reflex_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/reflex"
	"perch/must"
)

// known implements the skills of a brain. It records the latest call of Answer.
type known struct {
	name, args string
	said       string
	has        bool
	fails      error
}

func (a *known) Answer(_ context.Context, _ agent.Turn, name string, args json.RawMessage) (string, bool, error) {
	a.name, a.args = name, string(args)
	return a.said, a.has, a.fails
}

func (a *known) Has(_ agent.Turn, name string) bool { return a.has && name == "tide" }

// TestPerform checks that Perform performs a skill that the character has, and reports found = false
// for every other text.
func TestPerform(t *testing.T) {
	b := book(t)
	must.Succeed(t, b.AddSkill("tide", []string{"when is high water"}))
	for text, c := range map[string]struct {
		has, found bool
	}{"When is high water?": {true, true}, "when is high water": {false, false}, "what time is it": {true, false}, "hum": {true, false}} {
		said := ""
		skills := &known{said: "At six.", has: c.has}
		found, err := reflex.New([]*reflex.Book{b}, "Chan", nil, nil, skills).Perform(t.Context(), agent.Turn{Text: text}, func(r agent.Reply) error {
			if say, ok := r.(agent.Say); ok {
				said += say.Text
			}
			return nil
		})
		if err != nil || found != c.found || (said == "At six.") != c.found || (skills.name != "") != c.found {
			t.Errorf("%q, has: %t: found %t, said %q, asked for %q; %v", text, c.has, found, said, skills.name, err)
		}
	}
}

func TestASentenceOfASkillPerformsIt(t *testing.T) {
	b := book(t)
	must.Succeed(t, b.AddSkill("tide", []string{"when is high water [in the {place}]", "high water in {number} (minutes|hours)"}))
	for name, c := range map[string]struct {
		skills    known
		text      string
		args      string
		said, how string
	}{
		"plain":               {known{said: "High water is at six.", has: true}, "When is high water?", `{}`, "High water is at six.", "done"},
		"with a slot":         {known{said: "At six.", has: true}, "when is high water in the garden", `{"place":"garden"}`, "At six.", "done"},
		"a number":            {known{said: "Soon.", has: true}, "high water in twenty one minutes", `{"number":21}`, "Soon.", "done"},
		"digits":              {known{said: "Soon.", has: true}, "high water in 21 minutes", `{"number":21}`, "Soon.", "done"},
		"nothing to say":      {known{has: true}, "when is high water", `{}`, b.Phrase("done"), "done"},
		"braces":              {known{said: "It is {time}.", has: true}, "when is high water", `{}`, "It is {time}.", "done"},
		"a failure":           {known{has: true, fails: errors.New("the sea is away")}, "when is high water", `{}`, b.Phrase("tool_failed"), "failed"},
		"another character's": {known{}, "when is high water", `{}`, b.Phrase("unknown"), "done"},
	} {
		t.Run(name, func(t *testing.T) {
			a := think(t, reflex.New([]*reflex.Book{b}, "Chan", nil, nil, &c.skills), agent.Turn{Text: c.text, Session: "s"})
			if _, want := agent.SplitEmotion(c.said); a.said != want || a.face == "" {
				t.Errorf("it says %q with the face %q, not %q", a.said, a.face, want)
			}
			if c.skills.name != "tide" || c.skills.args != c.args {
				t.Errorf("asked for is %s%s", c.skills.name, c.skills.args)
			}
			if !slices.Equal(a.tools, []string{"tide running", "tide " + c.how}) {
				t.Errorf("reported is %v", a.tools)
			}
		})
	}
	none := reflex.New([]*reflex.Book{b}, "Chan", nil, nil, nil)
	if a := think(t, none, agent.Turn{Text: "when is high water"}); !strings.Contains(a.said, "I do not know") {
		t.Errorf("without skills it says %q", a.said)
	}
}

// TestSentencesThatCollideAreLeftOut checks that AddSkill omits invalid sentences and those that share
// an utterance with a sentence of the book or of another skill, and adds the skill's other sentences.
func TestSentencesThatCollideAreLeftOut(t *testing.T) {
	for text, want := range map[string]string{
		"what time is it":                        "one utterance could match both it and a sentence of en.yaml:",
		"[tell me] what (day|time) is it":        "one utterance could match both it and a sentence of en.yaml:",
		"volume forty percent":                   "one utterance could match both it and a sentence of en.yaml:", // that sentence has a slot for the number
		"volume {number} [percent|points]":       "one utterance could match both it and a sentence of en.yaml:",
		"(when|how soon) is high water":          "one utterance could match both it and a sentence of the skill tide",
		"when is {tide}":                         "there is no list {tide}",
		"when is (high water":                    `")" is missing`,
		"wann ist Hochwasser, bitte über Husum?": "is not a word",
	} {
		b := book(t)
		must.Succeed(t, b.AddSkill("tide", []string{"when is high water", "is it when is high water"}))
		must.Succeed(t, b.AddSkill("tide", []string{"when is high water now"}))
		err := b.AddSkill("sea", []string{text, "how is the sea"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "of the skill sea is left out") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if !b.Understands("how is the sea") || !b.Understands("what time is it") {
			t.Errorf("with %q other sentences are not understood", text)
		}
	}
	b, many := book(t), strings.Repeat("[{number}|{number} {number}] ", 6)
	must.Succeed(t, b.AddSkill("tide", []string{"deep " + many + "metres"}))
	if err := b.AddSkill("sea", []string{"deep " + many + "feet"}); err == nil {
		t.Error("two sentences with too many ways to look at count as different")
	}
	for _, text := range []string{"volume please", "what time", "what time is it in tokyo", "set the volume"} {
		if err := b.AddSkill("sea", []string{text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestARecognizerMayDoWithoutASkill(t *testing.T) {
	b := book(t)
	before := len(b.Rules())
	must.Succeed(t, b.AddSkill("tide", []string{"when is high water in the {place}"}))
	rules := b.Rules()
	var optional []string
	for _, r := range rules {
		if r.Optional {
			optional = append(optional, r.Body+" of "+r.Source)
		}
	}
	if len(rules) != before+1 || !slices.Equal(optional, []string{"when is high water in the <list_place> of the skill tide"}) {
		t.Errorf("optional are %q", optional)
	}
}
