package agent

import (
	"context"
	"slices"
	"sync"
)

// Drafter is a Brain that may begin to answer before it is certain that the person has finished speaking.
type Drafter interface {
	Brain
	// Drafts reports whether Think may be called for a Draft now. Think must call Turn.Settle before everything that
	// has an effect, such as running a tool. It need not hold its replies back.
	Drafts() bool
}

// Draft is an answer that a brain begins before it is certain that the person has finished speaking. It has no
// effects, and its replies are held back, until Mind.AnswerDrafted takes it.
type Draft struct {
	ctx     context.Context // ends the brain's work
	cancel  context.CancelFunc
	replied func(Reply)
	settled chan struct{} // closed once the draft is taken, and the replies that were held back are passed on
	done    chan struct{} // closed once Mind.Write has returned
	err     error         // result of the brain; read after done is closed

	mu      sync.Mutex
	turn    Turn
	brain   Brain             // nil until Mind.Write has chosen it
	replies []Reply           // held back
	out     func(Reply) error // nil until the draft is taken
}

// NewDraft returns a draft of the answer to t, which Mind.Write writes and the end of ctx discards. replied is called
// for each reply that is held back. It must not block.
func NewDraft(ctx context.Context, t Turn, replied func(Reply)) *Draft {
	d := &Draft{turn: t, replied: replied, settled: make(chan struct{}), done: make(chan struct{})}
	d.turn.settled = d.settled
	d.ctx, d.cancel = context.WithCancel(ctx)
	return d
}

// write has the brain answer the turn.
func (d *Draft) write(brain Brain, t Turn) {
	d.mu.Lock()
	d.brain, d.turn = brain, t
	d.mu.Unlock()
	d.err = brain.Think(d.ctx, t, d.send)
}

// send is the function that the brain calls for each reply. A question waits until the draft is taken, because the brain
// waits for its answer.
func (d *Draft) send(r Reply) error {
	if _, asks := r.(Ask); !asks && d.hold(r) {
		return nil
	}
	if err := d.turn.Settle(d.ctx); err != nil {
		return err
	}
	return d.out(r)
}

// hold holds a reply back. It returns false if the draft is taken.
func (d *Draft) hold(r Reply) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out != nil {
		return false
	}
	d.replies = append(d.replies, r)
	d.replied(r)
	return true
}

// take passes the draft's replies to out from now on. ok is false if the draft is not brain's answer to t. held are the
// replies so far, which the caller passes to out before it closes settled.
func (d *Draft) take(brain Brain, t Turn, out func(Reply) error) (held []Reply, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	drafted := d.turn
	if d.brain != brain || drafted.Text != t.Text || drafted.Language != t.Language || drafted.Untrusted != t.Untrusted ||
		!slices.Equal(drafted.History, t.History) {
		return nil, false
	}
	d.out = out
	return d.replies, true
}

// answer has brain answer t. If the draft is brain's answer to t, it becomes the answer; if not, it is discarded. d may
// be nil.
func (d *Draft) answer(ctx context.Context, brain Brain, t Turn, out func(Reply) error) error {
	if d == nil {
		return brain.Think(ctx, t, out)
	}
	held, ok := d.take(brain, t, out)
	if !ok {
		d.cancel()
		return brain.Think(ctx, t, out)
	}
	stop := context.AfterFunc(ctx, d.cancel)
	defer stop()
	for _, r := range held {
		if err := out(r); err != nil {
			d.cancel()
			<-d.done
			return err
		}
	}
	close(d.settled)
	<-d.done
	return d.err
}
