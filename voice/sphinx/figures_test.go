package sphinx

import (
	"testing"
	"time"

	"perch/voice"
)

// The figures a voice must reach, and the sentences it must be asked.
const (
	leastExact, leastCommands = 0.95, 40
	mostAccepted, leastOthers = 0.10, 30
)

// tally is what became of one voice's sentences.
type tally struct {
	commands, exact, wrong int
	others, accepted       int
	sound, took            time.Duration
}

// TestFigures speaks commands and other sentences in three voices through
// Opus. Every voice says two thirds of each, every sentence is said twice.
func TestFigures(t *testing.T) {
	e := New(Options{Grammar: homeGrammar})
	defer e.Close()
	before := residentMB(t)
	began := time.Now()
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v, %.0f MB", time.Since(began).Round(time.Millisecond), residentMB(t)-before)
	names := []string{"slt", "rms", "awb"}
	if testing.Short() {
		names = names[:1]
	}
	for i, name := range names {
		var got tally
		for _, sentence := range twoThirds(commands, i) {
			got.command(t, e, name, sentence)
		}
		for _, sentence := range twoThirds(others, i) {
			got.other(t, e, name, sentence)
		}
		got.judge(t, name)
	}
}

func twoThirds(all []string, skip int) (some []string) {
	for i, s := range all {
		if i%3 != skip {
			some = append(some, s)
		}
	}
	return some
}

func (c *tally) command(t *testing.T, e *Engine, voiceName, sentence string) {
	got := c.hear(t, e, speak(t, voiceName, sentence))
	c.commands++
	switch {
	case got.Text == sentence:
		c.exact++
	case got.Refused:
		t.Logf("%s: %q was refused", voiceName, sentence)
	default:
		c.wrong++
		t.Logf("%s: %q was taken for %q", voiceName, sentence, got.Text)
	}
}

func (c *tally) other(t *testing.T, e *Engine, voiceName, sentence string) {
	got := c.hear(t, e, speak(t, voiceName, sentence))
	c.others++
	if !got.Refused {
		c.accepted++
		t.Logf("%s: %q, no command, was taken for %q", voiceName, sentence, got.Text)
	}
}

func (c *tally) hear(t *testing.T, e *Engine, pcm []int16) voice.Transcript {
	began := time.Now()
	got := recognize(t, e, pcm)
	c.took += time.Since(began)
	c.sound += time.Duration(len(pcm)) * time.Second / voice.MicRate
	return got
}

func (c *tally) judge(t *testing.T, voiceName string) {
	exact := float64(c.exact) / float64(c.commands)
	accepted := float64(c.accepted) / float64(c.others)
	t.Logf("%s: %.1f %% of %d commands exact, %d wrong; %.1f %% of %d others accepted; %.2f x real time",
		voiceName, 100*exact, c.commands, c.wrong, 100*accepted, c.others, c.took.Seconds()/c.sound.Seconds())
	if c.commands < leastCommands || c.others < leastOthers {
		t.Errorf("%s: %d commands and %d others are too few to say anything", voiceName, c.commands, c.others)
	}
	if exact < leastExact {
		t.Errorf("%s: %.1f %% of commands exact, want %.0f %%", voiceName, 100*exact, 100*leastExact)
	}
	if accepted > mostAccepted {
		t.Errorf("%s: %.1f %% of others accepted, want at most %.0f %%", voiceName, 100*accepted, 100*mostAccepted)
	}
}
