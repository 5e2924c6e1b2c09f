package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/cmd/perch/engines"
	"perch/gateway/mdns"
	"perch/language"
	"perch/voice"
)

// sampleQuestion is the question that brains are tried with.
const sampleQuestion = "Please say hello to me in one short sentence."

// tryWithin is how long the trial of an engine may take. A coding agent starts within it.
const tryWithin = time.Minute

// engines tries each engine once, as a turn does, and adds up their times.
func (d *Examination) engines(ctx context.Context) {
	find := func(ctx context.Context) ([]string, error) {
		return mdns.Search{Type: mdns.Wyoming, Interfaces: d.Config.MDNS.Interfaces}.Targets(ctx)
	}
	// With timers a model is offered tools, as in a turn.
	options := drivers.Brain{BrainSetup: thinker.BrainSetup{Options: thinker.Options{Timers: notice.NewTimers(noTimers{}, nil)}}}
	e, err := engines.New(nil, d.Config, options, find, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		d.Findings = append(d.Findings, d.reported...)
		d.addRead("engines", err, "")
		return
	}
	defer e.Close()
	speech, err := config.Speech(d.Config)
	if err != nil {
		d.add("persona", err, "")
		return
	}
	t := trial{Examination: d, speech: speech, fastest: map[string]stage{}}
	t.sample = t.words.In(speech.Language).Message("engines.sample")
	for _, list := range engineLists {
		for _, n := range e.All {
			if n.List == list {
				t.run(ctx, n)
			}
		}
	}
	t.budget()
	for _, f := range d.reported { // engines of the running appliance that the configuration no longer has
		if !slices.ContainsFunc(e.All, func(n *engines.Engine) bool { return n.Part == f.Part }) {
			d.Findings = append(d.Findings, f)
		}
	}
}

// engineLists names the lists of engines in the order of their trials: recognizers are given what a
// synthesizer has spoken.
var engineLists = []string{"synthesizer", "recognizer", "brain", "deep", "tools"}

// addTrial adds the result of a trial. If it differs from the condition that the running appliance
// reports for the engine, both are in the note.
func (d *Examination) addTrial(part string, err error, fine string) {
	at := slices.IndexFunc(d.reported, func(f finding) bool { return f.Part == part && !f.Ok })
	if err != nil || at < 0 {
		d.add(part, err, fine)
		return
	}
	d.Findings = append(d.Findings, finding{Ok: true, warn: true, Part: part,
		Note: fmt.Sprintf("the appliance that runs has found that %s; tried just now, it works: %s", d.reported[at].Note, fine)})
}

// noTimers is a table that stores no timer.
type noTimers struct{}

func (noTimers) Put(string, agent.Timer) error       { return nil }
func (noTimers) Delete(string) error                 { return nil }
func (noTimers) All() iter.Seq2[string, agent.Timer] { return func(func(string, agent.Timer) bool) {} }

// trial tries engines.
type trial struct {
	*Examination
	speech  voice.Options
	words   language.Catalogue
	sample  string           // a question that a recognizer of commands knows
	spoken  []int16          // the sample, by the first synthesizer that works; 16 kHz
	fastest map[string]stage // the first engine of each list that works
}

// stage is the time that an engine adds until a robot answers.
type stage struct {
	part string
	took time.Duration
}

func (t *trial) run(ctx context.Context, n *engines.Engine) {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	began, limits := time.Now(), error(nil)
	if n.Check != nil {
		switch err := n.Check(ctx); {
		case engines.IsWarning(err):
			limits = err
		case err != nil:
			t.addTrial(n.Part, err, "")
			return
		}
	}
	answered := time.Since(began)
	var took time.Duration
	var fine string
	var err error
	switch {
	case n.Recognizer != nil:
		if took, fine, err = t.tryRecognizer(ctx, n); errors.Is(err, voice.ErrLanguage) {
			if t.Config.Hears(t.speech.Language) { // else Secrets has added a warning with its cure
				t.addTrial(n.Part, nil, fmt.Sprintf("is left out where people speak %s: %v", t.speech.Language, err))
			}
			return
		}
	case n.Synthesizer != nil:
		if took, fine, err = t.trySynthesizer(ctx, n, t.speech, t.sample); errors.Is(err, voice.ErrLanguage) {
			if fine, speaks := t.otherLanguage(ctx, n); speaks {
				t.addTrial(n.Part, nil, fine)
				return
			}
		}
	case n.Brain != nil:
		took, fine, err = t.tryBrain(ctx, n)
	default:
		fine = fmt.Sprintf("%s answers in %d ms", n.Where, answered.Milliseconds())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s", tryWithin)
	}
	if limited, ok := n.Brain.(interface{ Limits() error }); ok && limits == nil {
		limits = limited.Limits() // that the turn has found
	}
	if err == nil && limits == nil && n.CheckContext != nil {
		limits = n.CheckContext(ctx)
	}
	if err == nil && limits != nil {
		fine = fmt.Sprintf("%s; but %v", fine, limits)
	}
	t.addTrial(n.Part, err, fine)
	if _, known := t.fastest[n.List]; err == nil && !known {
		t.fastest[n.List] = stage{n.Part, took}
	}
}

// otherLanguage tries a synthesizer that does not know the household's language in others.
func (t *trial) otherLanguage(ctx context.Context, n *engines.Engine) (fine string, speaks bool) {
	for _, tag := range language.All() {
		before := t.spoken
		_, fine, err := t.trySynthesizer(ctx, n, voice.Options{Language: string(tag)}, t.words.In(string(tag)).Message("engines.sample"))
		if t.spoken = before; err == nil {
			return fmt.Sprintf("speaks %s, not %s; %s", tag, t.speech.Language, fine), true
		}
	}
	return "", false
}

// trySynthesizer has a synthesizer speak a text, which recognizers are then given.
func (t *trial) trySynthesizer(ctx context.Context, n *engines.Engine, o voice.Options, text string) (
	took time.Duration, fine string, err error) {
	var pcm []int16
	began := time.Now()
	err = n.Synthesizer.Synthesize(ctx, text, o, func(piece []int16) error {
		if pcm == nil {
			took = time.Since(began)
		}
		pcm = append(pcm, piece...)
		return nil
	})
	if err == nil && len(pcm) < voice.SpeakerRate/10 {
		err = fmt.Errorf("it made no sound of %q; is it the voice for that language?", text)
	}
	if err != nil {
		return 0, "", err
	}
	if t.spoken == nil {
		heard := voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(pcm)
		t.spoken = append(heard, make([]int16, voice.MicRate/2)...)
	}
	length := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
	return took, fmt.Sprintf("begins to speak after %s, and makes a second of speech in %s", millis(took),
		millis(time.Duration(float64(time.Since(began))/length.Seconds()))), nil
}

// tryRecognizer gives a recognizer the spoken sample at the speed of speech, and measures the time
// from its end.
func (t *trial) tryRecognizer(ctx context.Context, n *engines.Engine) (took time.Duration, fine string, err error) {
	if t.spoken == nil {
		return 0, "is there; no synthesizer works that could say something to it", nil
	}
	if err := t.prepare(ctx, n); err != nil {
		return 0, "", err
	}
	u := voice.NewUtterance()
	var ended time.Time
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(voice.FrameDuration)
		defer tick.Stop()
		for rest := t.spoken; len(rest) > 0 && ctx.Err() == nil; {
			frame := rest[:min(voice.MicFrame, len(rest))]
			u.Write(frame)
			rest = rest[len(frame):]
			<-tick.C
		}
		ended = time.Now()
		u.Finish()
	}()
	heard, err := n.Recognizer.Recognize(ctx, u, t.speech)
	u.Finish()
	<-finished
	if err != nil {
		return 0, "", err
	}
	took = max(0, time.Since(ended))
	words := strings.TrimSpace(heard.Text)
	if words == "" {
		return took, fmt.Sprintf("answers after %s, but did not understand %q as %s says it", millis(took), t.sample,
			t.fastest["synthesizer"].part), nil
	}
	return took, fmt.Sprintf("understands %q as %q after %s", t.sample, words, millis(took)), nil
}

// prepare checks the sentences of the embedded recognizer and loads it, or warms another engine.
func (t *trial) prepare(ctx context.Context, n *engines.Engine) error {
	if l, ok := n.Recognizer.(interface{ Load(context.Context) error }); ok {
		if err := engines.CheckRecognizers(t.Config); err != nil {
			return err
		}
		return l.Load(ctx)
	}
	if n.Warm != nil {
		return n.Warm(ctx)
	}
	return nil
}

// errEnough ends the trial of a brain after its first sentence.
var errEnough = errors.New("the first sentence has come")

// tryBrain asks a brain a question and waits for its first sentence.
func (t *trial) tryBrain(ctx context.Context, n *engines.Engine) (took time.Duration, fine string, err error) {
	if err := t.prepare(ctx, n); err != nil {
		return 0, "", err
	}
	zone, err := t.Config.Zone()
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := ""
	began := time.Now()
	question := sampleQuestion
	if n.Brain.Name() == "reflex" {
		question = t.sample // it knows only its own sentences
	}
	turn := agent.Turn{Conversation: "doctor", Text: question, Now: began.In(zone), Language: t.speech.Language}
	err = n.Brain.Think(ctx, turn, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Say:
			took, said = time.Since(began), r.Text
			return errEnough
		case agent.Ask:
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed})
		}
		return nil
	})
	switch {
	case said == "" && err != nil:
		return 0, "", err
	case said == "" && n.Brain.Name() == "none":
		return 0, "answers nothing, as it is meant to", nil
	case said == "":
		return 0, "", fmt.Errorf("it answered %q without a word", question)
	}
	return took, fmt.Sprintf("says its first sentence after %s: %q", millis(took), said), nil
}

// budget adds how long a person waits from the last word to the first sound of the answer.
func (t *trial) budget() {
	sum := time.Duration(t.Config.Speech.Silence)
	var parts []string
	for _, list := range []string{"recognizer", "brain", "synthesizer"} {
		s, works := t.fastest[list]
		if !works {
			return // the engine's own finding says why
		}
		sum += s.took
		parts = append(parts, millis(s.took)+" "+s.part)
	}
	t.add("budget", nil, fmt.Sprintf("a robot answers %s after the last word: %s of silence that ends an utterance, %s", millis(sum),
		millis(time.Duration(t.Config.Speech.Silence)), strings.Join(parts, ", ")))
}

func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
