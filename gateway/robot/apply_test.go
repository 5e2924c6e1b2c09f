package robot

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// noted is a synthesizer that records the texts that it is given.
type noted struct {
	beepSynthesizer
	mu    sync.Mutex
	texts []string
	users atomic.Int32 // number of calls of Hold that are not done
}

// spoken returns the texts so far.
func (n *noted) spoken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.texts)
}

func (n *noted) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	n.mu.Lock()
	n.texts = append(n.texts, text)
	n.mu.Unlock()
	return n.beepSynthesizer.Synthesize(ctx, text, o, out)
}

func (n *noted) use(o *Options) {
	o.Synthesizer, o.Voice = n, n
	o.Hold = func() func() {
		n.users.Add(1)
		return func() { n.users.Add(-1) }
	}
}

// TestApply checks that a turn under way keeps its synthesizer and holds it open until the turn ends, that the open
// session gets the new options, and that phrases are synthesized again.
func TestApply(t *testing.T) {
	before, after := &noted{}, &noted{}
	before.delay, after.delay = 500*time.Millisecond, 500*time.Millisecond
	var o Options
	talking(t, answer("One, and a little more.", "Two, and a little more.", "Three, and a little more."), func(k *talk) {
		k.hears(xiaozhi.Auto, "hello", "hello")
		k.pass(2 * time.Second)
		if before.users.Load() != 1 || len(before.spoken()) == 0 {
			t.Errorf("the turn has %d users of %q", before.users.Load(), before.spoken())
		}
		after.use(&o)
		o.Idle = 20 * time.Second
		k.server.Apply(o)
		k.pass(10 * time.Second)
		if before.users.Load() != 0 || after.users.Load() != 0 || len(before.spoken()) != 3+1 || len(after.spoken()) != 0 {
			t.Errorf("after the turn: %d and %d users of %q and %q", before.users.Load(), after.users.Load(), before.spoken(), after.spoken())
		}
		k.speak()
		k.pass(10 * time.Second)
		if len(before.spoken()) != 3+1 || len(after.spoken()) != 3 || after.users.Load() != 0 {
			t.Errorf("after the next: %q and %q", before.spoken(), after.spoken())
		}
		k.server.Prepare()
		k.pass(time.Second)
		if !slices.Contains(after.spoken(), "Yes?") {
			t.Errorf("the new voice has said %q", after.spoken())
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
