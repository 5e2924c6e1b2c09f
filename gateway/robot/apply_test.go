package robot

import (
	"context"
	"slices"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// noted is a synthesizer that writes down what it speaks.
type noted struct {
	beepSynthesizer
	texts []string
	users int // of its options
}

func (n *noted) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	n.texts = append(n.texts, text)
	return n.beepSynthesizer.Synthesize(ctx, text, o, out)
}

func (n *noted) use(o *Options) {
	o.Synthesizer, o.Voice = n, n
	o.Hold = func() func() {
		n.users++
		return func() { n.users-- }
	}
}

// TestApply between two turns: the one under way keeps its synthesizer, and holds it until
// it has ended. The channel that is open follows, too, and sentences spoken ahead are made anew.
func TestApply(t *testing.T) {
	before, after := &noted{}, &noted{}
	before.delay, after.delay = 500*time.Millisecond, 500*time.Millisecond
	var o Options
	talking(t, answer("One, and a little more.", "Two, and a little more.", "Three, and a little more."), func(k *talk) {
		k.hears(xiaozhi.Auto, "hello", "hello")
		k.pass(2 * time.Second)
		if before.users != 1 || len(before.texts) == 0 {
			t.Errorf("the turn has %d users of %q", before.users, before.texts)
		}
		after.use(&o)
		o.Idle = 20 * time.Second
		k.server.Apply(o)
		k.pass(10 * time.Second)
		if before.users != 0 || after.users != 0 || len(before.texts) != 3+1 || len(after.texts) != 0 {
			t.Errorf("after the turn: %d and %d users of %q and %q", before.users, after.users, before.texts, after.texts)
		}
		k.speak()
		k.pass(10 * time.Second)
		if len(before.texts) != 3+1 || len(after.texts) != 3 || after.users != 0 {
			t.Errorf("after the next: %q and %q", before.texts, after.texts)
		}
		k.server.Prepare()
		k.pass(time.Second)
		if !slices.Contains(after.texts, "Yes?") {
			t.Errorf("the new voice has said %q", after.texts)
		}
		k.pass(25 * time.Second)
		if len(k.server.List()) > 0 {
			t.Error("the channel stays open for as long as before")
		}
	}, before.use, func(p *Options) {
		p.Phrases = func(_, name string) string {
			if name == dialogue.PhraseAwake {
				return "Yes?"
			}
			return ""
		}
		o = *p
	})
}
