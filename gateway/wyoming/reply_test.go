package wyoming

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	wire "perch/voice/wyoming"
)

// TestHomeAssistant sends the bytes of the conversation entity of Home Assistant 2026.11, which waits for a
// handled event and ignores the other events of the reply.
func TestHomeAssistant(t *testing.T) {
	m := answering("It is three.", "Good night.")
	zone := time.FixedZone("home", 3600)
	g := dial(t, serve(t, Options{Mind: m, Zone: zone, Languages: []string{"en"}}))
	data := `{"text": "what time is it", "language": "en-GB", "context": {"conversation_id": "01JB8SG4NJW0MH3GNPQT4J9H6X", "device_id": "abc", "satellite_id": "assist_satellite.kitchen"}}`
	g.raw(`{"type": "transcript", "version": "1.9.0", "data_length": ` + fmt.Sprint(len(data)) + "}\n" + data)
	const end = `"context":{"conversation_id":"01JB8SG4NJW0MH3GNPQT4J9H6X"}}`
	g.expect(typeHandledStart, `{`+end,
		typeHandledChunk, `{"text":"It is three."}`, typeHandledChunk, `{"text":" Good night."}`,
		typeHandled, `{"text":"It is three. Good night.",`+end, typeHandledStop, "")
	turn := m.turns[0]
	if turn.Now.Location() != zone || time.Since(turn.Now) > time.Minute {
		t.Errorf("it is %s", turn.Now)
	}
	turn.Now = time.Time{}
	want := agent.Turn{Conversation: "wyoming:01JB8SG4NJW0MH3GNPQT4J9H6X", Untrusted: true, Text: "what time is it", Language: "en-GB"}
	if !reflect.DeepEqual(turn, want) {
		t.Errorf("%+v, want %+v", turn, want)
	}
	exchange := []agent.Exchange{{Heard: "what time is it", Said: "It is three. Good night."}}
	if got := m.remembered[want.Conversation]; !reflect.DeepEqual(got, exchange) {
		t.Errorf("remembered %+v", got)
	}
}

func TestConversations(t *testing.T) {
	m := answering("Yes.")
	address := serve(t, Options{Mind: m})
	ask := func(g *client, context string) {
		g.raw(`{"type":"transcript","data":{"text":"hello","language":null,"context":` + context + `}}` + "\n")
		for _, name := range []string{typeHandledStart, typeHandledChunk, typeHandled, typeHandledStop} {
			g.next(name)
		}
	}
	one, two := dial(t, address), dial(t, address)
	for _, g := range []*client{one, one, two} {
		ask(g, `null`)
	}
	for _, context := range []string{`[]`, `{"conversation_id":7}`, `{"conversation_id":""}`, `"x"`} {
		ask(two, context)
	}
	name := func(n int) string { return m.turns[n].Conversation }
	if name(0) != name(1) || name(0) == name(2) || len(name(0)) != len("wyoming:")+26 {
		t.Errorf("connections talk as %s, %s and %s", name(0), name(1), name(2))
	}
	for n := 3; n < 7; n++ {
		if name(n) != name(2) {
			t.Errorf("context %d talks as %s, not %s", n, name(n), name(2))
		}
	}
	// A long ID is replaced by its hash, which is always the same.
	for _, g := range []*client{one, two} {
		ask(g, `{"conversation_id":"`+strings.Repeat("ü ", 500)+`"}`)
	}
	if name(7) != name(8) || len(name(7)) != len("wyoming:")+32 {
		t.Errorf("a long name is %s, and then %s", name(7), name(8))
	}
}

// TestQuestionsAreDenied checks that requests for consent are denied at once, because a client must not be able
// to consent.
func TestQuestionsAreDenied(t *testing.T) {
	m := &scriptedAgent{think: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		answers := 0
		var got agent.Answer
		err := out(agent.Ask{ID: "1", Text: "May I?", Within: time.Minute, Answer: func(a agent.Answer) { answers++; got = a }})
		if err != nil || answers != 1 {
			return fmt.Errorf("%d answers (%v)", answers, err)
		}
		for _, r := range []agent.Reply{agent.Felt{Emotion: agent.Neutral}, agent.Cue{Kind: "pause", Value: "1"}, agent.ToolStatus{}} {
			if err := out(r); err != nil {
				return err
			}
		}
		return out(agent.Say{Text: string(got.Outcome) + got.Text})
	}}
	g := dial(t, serve(t, Options{Mind: m}))
	g.event(wire.TypeTranscript, map[string]any{"text": "delete it", "context": conversation{"x"}}, nil)
	g.expect(typeHandledStart, `{"context":{"conversation_id":"x"}}`, typeHandledChunk, `{"text":"closed"}`)
}

func TestTextsWithoutAnAnswer(t *testing.T) {
	const end = `,"context":{"conversation_id":"x"}}`
	fails := func(_ context.Context, t agent.Turn, out func(agent.Reply) error) error {
		if t.Text == "half" {
			if err := out(agent.Say{Text: "Well."}); err != nil {
				return err
			}
		}
		if t.Text == "quiet" {
			return out(agent.Done{})
		}
		return errors.New("canary")
	}
	m := &scriptedAgent{think: fails}
	g := dial(t, serve(t, Options{Mind: m, Languages: []string{"en", "de"}}))
	for text, want := range map[string][]string{
		"hello": {typeNotHandled, `{"text":"Something went wrong. Please try again."` + end},
		"half": {typeHandledStart, `{"context":{"conversation_id":"x"}}`, typeHandledChunk, `{"text":"Well."}`, typeNotHandled,
			`{"text":"Something went wrong. Please try again."` + end, typeHandledStop, ""},
		"quiet":                               {typeHandled, `{"text":""` + end},
		"":                                    {typeNotHandled, `{"text":"I did not understand that. Say help to hear what I can do."` + end},
		" \n\x00 ":                            {typeNotHandled, `{"text":"I did not understand that. Say help to hear what I can do."` + end},
		strings.Repeat("a", limit.Said+1):     {typeNotHandled, `{"text":"That was too much at once."` + end},
		strings.Repeat("\x1b", limit.Said+1):  {typeNotHandled, `{"text":"That was too much at once."` + end},
		strings.Repeat("ü", limit.Said/2)[2:]: {typeNotHandled, `{"text":"Something went wrong. Please try again."` + end},
	} {
		g.event(wire.TypeTranscript, map[string]any{"text": text, "context": conversation{"x"}}, nil)
		g.expect(want...)
	}
	for text, want := range map[string]string{ // in the language of the request
		"hello": "Da ist etwas schiefgegangen. Versuch es bitte noch einmal.", strings.Repeat("a", limit.Said+1): "Das war zu viel auf einmal.",
	} {
		g.event(wire.TypeTranscript, map[string]any{"text": text, "language": "de_AT", "context": conversation{"x"}}, nil)
		g.expect(typeNotHandled, `{"text":"`+want+`"`+end)
	}
	if got := m.remembered["wyoming:x"]; len(got) != 1 || got[0] != (agent.Exchange{Heard: "quiet"}) {
		t.Errorf("remembered %+v", got)
	}
}

func TestAnAgentThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := piped(t, Options{Mind: hanging(nil)})
		began := time.Now()
		g.event(wire.TypeTranscript, map[string]any{"text": "hello", "context": conversation{"x"}}, nil)
		g.expect(typeNotHandled, `{"text":"Something went wrong. Please try again.","context":{"conversation_id":"x"}}`)
		if took := time.Since(began); took != turnTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

// hanging returns an agent that answers no turn. It sends a value to began for each turn, unless began is nil.
func hanging(began chan<- struct{}) *scriptedAgent {
	return &scriptedAgent{think: func(ctx context.Context, _ agent.Turn, _ func(agent.Reply) error) error {
		if began != nil {
			began <- struct{}{}
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

// echo is a brain that replies with the length of the history and the text of the turn.
type echo struct{}

func (echo) Name() string { return "echo" }

func (echo) Think(_ context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := out(agent.Say{Text: fmt.Sprintf("%d before: %s.", len(t.History), t.Text)}); err != nil {
		return err
	}
	return out(agent.Done{End: agent.Continue})
}

// silence is a bus that accepts no events of a robot or a session.
type silence struct{}

func (silence) Publish(robot device.ID, session string, _ event.Event) {
	if robot != "" || session != "" {
		panic("a turn without a robot shows as one")
	}
}

// TestARealAgent replies with an agent.Mind.
func TestARealAgent(t *testing.T) {
	m := agent.NewMind(agent.Always(echo{}), nil, silence{}, nil)
	g := dial(t, serve(t, Options{Mind: m}))
	for _, want := range []string{"0 before: one.", "1 before: two."} {
		g.event(wire.TypeTranscript, map[string]any{"text": strings.TrimSuffix(want[len("0 before: "):], "."), "context": conversation{"x"}}, nil)
		g.next(typeHandledStart)
		g.next(typeHandledChunk)
		g.expect(typeHandled, `{"text":"`+want+`","context":{"conversation_id":"x"}}`)
		g.next(typeHandledStop)
	}
}
