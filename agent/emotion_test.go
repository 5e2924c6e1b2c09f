package agent_test

import (
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/event"
)

// firmwareEmotions are the names in the firmware's table of faces.
const firmwareEmotions = "neutral happy laughing funny sad angry crying loving embarrassed surprised shocked thinking " +
	"winking cool relaxed delicious kissy confident sleepy silly confused"

func TestTheFirmwares21Emotions(t *testing.T) {
	var names, emoji []string
	for _, e := range agent.Emotions() {
		names, emoji = append(names, e.Name), append(emoji, e.Emoji)
		for _, reply := range []string{e.Emoji + " Hi.", "  " + e.Emoji + "Hi.", e.Emoji + "\uFE0F Hi.", e.Emoji + e.Emoji + " Hi."} {
			if felt, text := agent.SplitEmotion(reply); felt != e || text != "Hi." {
				t.Errorf("%q: %v, %q", reply, felt, text)
			}
		}
	}
	if want := strings.Fields(firmwareEmotions); !slices.Equal(names, want) {
		t.Errorf("names %v\nwant  %v", names, want)
	}
	if slices.Sort(emoji); len(slices.Compact(emoji)) != 21 {
		t.Error("two of them have one emoji")
	}
	var offered []string
	for _, e := range agent.OfferedEmotions() {
		if offered = append(offered, e.Emoji); !slices.Contains(agent.Emotions(), e) {
			t.Errorf("%v is offered and is none of the 21", e)
		}
	}
	if want := "😊 😆 😢 😮 🤔 😠 😐 😍 😴"; strings.Join(offered, " ") != want {
		t.Errorf("offered %v, want %s", offered, want)
	}
}

func TestSplitEmotion(t *testing.T) {
	for reply, want := range map[string]struct{ name, emoji, text string }{
		"😊 Hello.":        {"happy", "😊", "Hello."},
		"😴Good night. 🌙":  {"sleepy", "😴", "Good night."},
		"Hello.":          {"neutral", "😐", "Hello."},
		"🎉 Hooray ☀️ now": {"neutral", "😐", "Hooray now"},
		"😠":               {"angry", "😠", ""},
		"🙂 Yes.":          {"happy", "🙂", "Yes."},
		"😀 Yes.":          {"happy", "😀", "Yes."},
		"☺️ Yes.":         {"happy", "☺", "Yes."},
		"😲 Oh!":           {"surprised", "😲", "Oh!"},
		"❤️ You too.":     {"loving", "❤", "You too."},
		"":                {"neutral", "😐", ""},
	} {
		e, text := agent.SplitEmotion(reply)
		if e.Name != want.name || e.Emoji != want.emoji || text != want.text {
			t.Errorf("%q: %v %q", reply, e, text)
		}
	}
}

func TestWhatABoardCanShow(t *testing.T) {
	const stackChan, other = "m5stack-stack-chan", "esp-box-3"
	eight := strings.Fields("neutral happy laughing angry sad crying sleepy doubtful")
	for _, e := range agent.Emotions() {
		if on := e.On(other); on != e {
			t.Errorf("%v is %v on a board that knows all 21", e, on)
		}
		on := e.On(stackChan)
		if !slices.Contains(eight, on.Name) || on.Emoji != e.Emoji {
			t.Errorf("%v is %v on a Stack-chan", e, on)
		}
		if own := slices.Contains(eight, e.Name) && e != agent.Sleepy; own && on != e || on.Name == "neutral" && !own && e != agent.Sleepy {
			t.Errorf("%v is %v on a Stack-chan", e, on)
		}
	}
	for name, want := range map[string]string{"thinking": "doubtful", "confused": "doubtful", "embarrassed": "doubtful", "shocked": "doubtful",
		"loving": "happy", "relaxed": "happy", "funny": "laughing", "doubtful": "doubtful", "cloud_off": "neutral",
		"sleepy": "neutral"} { // see Emotion.On
		for _, board := range []string{stackChan, "StackChan", "M5Stack-Stack-Chan-v2"} {
			if on := (agent.Emotion{Name: name, Emoji: "x"}).On(board); on != (agent.Emotion{Name: want, Emoji: "x"}) {
				t.Errorf("%s is %v on %s, want %s", name, on, board, want)
			}
		}
	}
	if on := agent.Doubtful.On(other); on.Name != "thinking" {
		t.Errorf("doubtful is %v where it is unknown", on)
	}
	if icon := (agent.Emotion{Name: "cloud_off"}); icon.On(other) != icon {
		t.Error("an icon of the firmware's is no longer itself")
	}
}

func TestOneReplyForEachChangeOfFace(t *testing.T) {
	happy, grin := agent.Emotion{Name: "happy", Emoji: "😊"}, agent.Emotion{Name: "happy", Emoji: "😀"}
	away := &brain{name: "away", replies: []agent.Reply{agent.Felt{Emotion: happy}}, err: agent.ErrAway}
	b := &brain{name: "here", replies: []agent.Reply{agent.Felt{Emotion: happy}, agent.Felt{Emotion: grin},
		agent.Felt{Emotion: agent.Neutral}, agent.Felt{Emotion: happy}, agent.Felt{Emotion: agent.Neutral, Assumed: true}}}
	p := &published{}
	replies, _ := answers(t, newMind(p, nil, away, b), "hello")
	if faces := emotions(p, func(e event.Emotion) string { return e.Name }); faces != "happy neutral happy" || len(replies) != 3 {
		t.Errorf("published %v, replied %v", faces, replies)
	}
}

// emotions calls the function of for each published emotion, and returns the results
// separated by spaces.
func emotions(p *published, of func(event.Emotion) string) string {
	var all []string
	for _, e := range p.events {
		if e, ok := e.(event.Emotion); ok {
			all = append(all, of(e))
		}
	}
	return strings.Join(all, " ")
}

// TestAnotherTagForTheSameFace tests that a new tag for the current face is published, and
// passed on only in a turn without a robot.
func TestAnotherTagForTheSameFace(t *testing.T) {
	happy := agent.Emotion{Name: "happy", Emoji: "😊"}
	b := &brain{name: "here", replies: []agent.Reply{agent.Felt{Emotion: happy, Tag: "joy"}, agent.Felt{Emotion: happy, Tag: "joy"},
		agent.Felt{Emotion: happy, Tag: "glad"}}}
	for _, body := range []agent.Body{nil, struct{ agent.Body }{}} {
		p, given := &published{}, 0
		err := newMind(p, nil, b).Answer(t.Context(), agent.Turn{Conversation: "c", Text: "hello", Now: noon, Body: body}, func(agent.Reply) error {
			given++
			return nil
		})
		words := emotions(p, func(e event.Emotion) string { return e.Tag })
		if want := map[bool]int{true: 2, false: 1}[body == nil]; err != nil || given != want || words != "joy glad" {
			t.Errorf("with a robot %t: published %v, given %d, %v", body != nil, words, given, err)
		}
	}
}
