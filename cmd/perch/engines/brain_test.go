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
	"perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/thinker"
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
	b := watchedBrain{Brain: passing{}, condition: n}
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

// TestWhichBrainsDraft: a brain begins to answer before people have certainly finished speaking only if its driver can
// hold back its effects, and nobody is billed for an answer that is thrown away.
func TestWhichBrainsDraft(t *testing.T) {
	model := func(url string) config.Engine {
		return config.Engine{Kind: "openai", Options: &thinker.BrainKeys[openai.Options]{Model: openai.Options{URL: url, Model: "m"}}}
	}
	for name, c := range map[string]struct {
		brain config.Engine
		want  bool
	}{
		"reflex":                  {config.Engine{Kind: "reflex", Options: &reflex.Keys{}}, true},
		"a model at home":         {model("http://192.168.1.9:11434/v1"), true},
		"a model on this machine": {model("http://127.0.0.1:8080/v1"), true},
		"a model on the internet": {model("https://api.openai.com/v1"), false},
		"a coding agent":          {config.Engine{Kind: "acp", Options: &acp.Options{Command: []string{"sleep", "60"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config.Default()
			conf.Brains = []config.Engine{c.brain}
			e, err := New(nil, &conf, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler))
			must.Succeed(t, err)
			defer e.Close()
			if got := e.Brains[0].(agent.Drafter).Drafts(); got != c.want {
				t.Errorf("drafts: %v", got)
			}
		})
	}
}

// TestWhichSynthesizersAreBilled checks BillsSpeech.
func TestWhichSynthesizersAreBilled(t *testing.T) {
	for kind, want := range map[string]bool{"espeak": false, "elevenlabs": true} {
		e := &Set{}
		n := e.addConfigured("synthesizer", config.Engine{Kind: kind}, nil, slog.New(slog.DiscardHandler))
		if got := e.BillsSpeech(); got != want {
			t.Errorf("%s: %v (%s)", kind, got, n.Cost)
		}
	}
}
