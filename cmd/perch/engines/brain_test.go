package engines

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/event"
	"perch/must"
	"perch/remote"
)

// TestTimeoutIncludesTheGreeting: the configured timeout of a coding agent also limits the start of the
// protocol, if the agent never responds.
func TestTimeoutIncludesTheGreeting(t *testing.T) {
	c := config.Default()
	c.Brains = []config.Engine{{Kind: "acp", Options: &acp.Options{Command: []string{"sleep", "60"}, Silence: 300 * time.Millisecond}}}
	e, err := New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	defer e.Close()
	err = e.Brains[0].(watchedBrain).Brain.(*acp.Brain).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not answer initialize in 300ms") {
		t.Error(err)
	}
}

// TestAPassedOverStrangerIsNoFailure: a brain that refuses turns of strangers with agent.ErrStranger has not
// failed.
func TestAPassedOverStrangerIsNoFailure(t *testing.T) {
	n := newCondition("brain acp", slog.New(slog.DiscardHandler), func(event.Event) {}, time.Now)
	b := watchedBrain{passing{}, n, false}
	for range 3 {
		if err := b.Think(t.Context(), agent.Turn{Robot: "a0b1c2d3e4f5", Untrusted: true}, nil); !errors.Is(err, agent.ErrStranger) {
			t.Fatal(err)
		}
	}
	if _, _, cause := n.Status(); cause != nil || n.Failures() > 0 || n.Resting() != nil {
		t.Errorf("it is reported: %v", cause)
	}
}

// passing is a brain that refuses every turn with agent.ErrStranger.
type passing struct{}

func (passing) Name() string { return "acp" }
func (passing) Think(context.Context, agent.Turn, func(agent.Reply) error) error {
	return agent.ErrStranger
}

// TestABrainIsWaitedForAsLongAsTheNextCanAnswer: the timeout of a brain is remote.Patience if another brain
// follows in the list, and that of its driver otherwise.
func TestABrainIsWaitedForAsLongAsTheNextCanAnswer(t *testing.T) {
	list := []config.Engine{{Kind: "reflex"}, {Kind: "openai"}, {Kind: "anthropic"}}
	for i, want := range []time.Duration{remote.Patience, remote.Patience, 0} {
		if got := responseTimeout(list, i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}
