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
	"perch/store"
	"perch/voice"
)

// sampleQuestion is the question for brains other than the reflex brain.
const sampleQuestion = "Please say hello to me in one short sentence."

// trialTimeout is the maximum duration of the trial of an engine. It includes the start of a coding
// agent.
const trialTimeout = time.Minute

// checkSpeech reports what perch-speech on this machine offers, except what the running appliance has reported.
func (d *Examination) checkSpeech() {
	if d.Speech == nil {
		return
	}
	for _, p := range d.Speech.Conditions(d.Config) {
		if !d.reports(p.Name) {
			d.add(p.Name, nil, p.Note)
		}
	}
}

// checkEngines tries each engine once, as in a turn, and adds a finding about the time until a robot replies.
func (d *Examination) checkEngines(ctx context.Context) {
	find := func(ctx context.Context) ([]string, error) {
		return mdns.Search{Type: mdns.Wyoming, Interfaces: d.Config.MDNS.Interfaces}.Targets(ctx)
	}
	// Timers make a brain offer tools to its model, as in a turn.
	options := drivers.Brain{BrainSetup: thinker.BrainSetup{Options: thinker.Options{Timers: notice.NewTimers(noTimers{}, nil)}}}
	e, err := engines.New(nil, d.Config, options, find, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		d.Findings = append(d.Findings, d.reported...)
		d.addIfReadable("engines", err, "")
		return
	}
	defer e.Close()
	speech, err := config.Speech(d.Config)
	if err != nil {
		d.add("persona", err, "")
		return
	}
	t := trial{Examination: d, speech: speech, working: map[string]stage{}}
	t.sample = t.words.In(speech.Language).Message("engines.sample")
	for _, list := range engineLists {
		for _, n := range e.All {
			if n.List == list {
				t.run(ctx, n)
			}
		}
	}
	t.addBudget()
	for _, f := range d.reported { // engines of the running appliance that the configuration no longer contains
		if !slices.ContainsFunc(e.All, func(n *engines.Engine) bool { return n.Part == f.Part }) {
			d.Findings = append(d.Findings, f)
		}
	}
}

// engineLists names the lists of engines in the order of their trials. Synthesizers come first because
// recognizers are tried with the speech of a synthesizer.
var engineLists = []string{"synthesizer", "recognizer", "brain", "deep", "tools"}

// addTrial adds the result of a trial: err if the trial failed, or else note. limits describes what a working
// engine cannot do; it may be nil. If the trial works although the running appliance reports that the engine
// has failed, the finding contains both.
func (d *Examination) addTrial(part string, err, limits error, note string) {
	if err != nil {
		d.add(part, err, "")
		return
	}
	if limits != nil {
		note = fmt.Sprintf("%s; but %v", note, limits)
	}
	i := slices.IndexFunc(d.reported, func(f finding) bool { return f.Part == part && !f.Ok })
	if i >= 0 {
		note = fmt.Sprintf("the running appliance reports: %s; a trial just now worked: %s", d.reported[i].Note, note)
	}
	d.Findings = append(d.Findings, finding{Ok: true, warn: limits != nil || i >= 0, Part: part, Note: note})
}

// noTimers is an empty table of timers. Methods other than All panic.
type noTimers struct{ store.Records[agent.Timer] }

func (noTimers) All() iter.Seq2[string, agent.Timer] { return func(func(string, agent.Timer) bool) {} }

type trial struct {
	*Examination
	speech  voice.Options
	words   language.Catalogue
	sample  string           // a question that recognizers with a fixed set of sentences understand, too
	spoken  []int16          // the sample as the first working synthesizer speaks it, at 16 kHz; nil if none works
	working map[string]stage // the first working engine of each list
}

// stage is an engine's part of the time until a robot replies.
type stage struct {
	part string
	took time.Duration
}

// run tries an engine and adds a finding.
func (t *trial) run(ctx context.Context, n *engines.Engine) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	began, limits := time.Now(), error(nil)
	if n.Check != nil {
		switch err := n.Check(ctx); {
		case engines.IsWarning(err):
			limits = err
		case err != nil:
			t.addTrial(n.Part, err, nil, "")
			return
		}
	}
	checkTook := time.Since(began)
	var took time.Duration
	var note string
	var err error
	switch {
	case n.Recognizer != nil:
		if took, note, err = t.tryRecognizer(ctx, n); errors.Is(err, voice.ErrLanguage) {
			if t.Config.Hears(t.speech.Language) { // otherwise CheckSecrets has added the configuration's warning
				t.addTrial(n.Part, nil, nil, fmt.Sprintf("is not used for %s: %v", t.speech.Language, err))
			}
			return
		}
		if errors.Is(err, errMisheard) {
			limits, err = err, nil
		}
	case n.Synthesizer != nil:
		if took, note, err = t.trySynthesizer(ctx, n, t.speech, t.sample); errors.Is(err, voice.ErrLanguage) {
			if note, speaks := t.otherLanguage(ctx, n); speaks {
				t.addTrial(n.Part, nil, nil, note)
				return
			}
		}
	case n.Brain != nil:
		took, note, err = t.tryBrain(ctx, n)
	default:
		note = fmt.Sprintf("%s answers in %d ms", n.Where, checkTook.Milliseconds())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s", trialTimeout)
	}
	if limited, ok := n.Brain.(interface{ Limits() error }); ok && limits == nil {
		limits = limited.Limits() // limits that the brain has found in this turn
	}
	if err == nil && limits == nil && n.CheckContext != nil {
		limits = n.CheckContext(ctx)
	}
	t.addTrial(n.Part, err, limits, note)
	if _, found := t.working[n.List]; err == nil && !found {
		t.working[n.List] = stage{n.Part, took}
	}
}

// otherLanguage tries a synthesizer that does not support the configured language in other languages. It
// returns a note about the first language that works; speaks is false if no language works.
func (t *trial) otherLanguage(ctx context.Context, n *engines.Engine) (note string, speaks bool) {
	for _, tag := range language.All() {
		spoken := t.spoken // restored below, because recognizers need a sample in the configured language
		_, note, err := t.trySynthesizer(ctx, n, voice.Options{Language: string(tag)}, t.words.In(string(tag)).Message("engines.sample"))
		if t.spoken = spoken; err == nil {
			return fmt.Sprintf("speaks %s, not %s; %s", tag, t.speech.Language, note), true
		}
	}
	return "", false
}

// trySynthesizer lets a synthesizer speak a text, and sets t.spoken if it is nil. It returns the time until
// the first sound, and a note.
func (t *trial) trySynthesizer(ctx context.Context, n *engines.Engine, o voice.Options, text string) (
	took time.Duration, note string, err error) {
	var pcm []int16
	began := time.Now()
	err = n.Synthesizer.Synthesize(ctx, text, o, func(piece []int16) error {
		if pcm == nil {
			took = time.Since(began)
		}
		pcm = append(pcm, piece...)
		return nil
	})
	if err == nil && len(pcm) < voice.SpeakerRate/10 { // less than a tenth of a second
		err = fmt.Errorf("it made no sound of %q; is it the voice for that language?", text)
	}
	if err != nil {
		return 0, "", err
	}
	if t.spoken == nil {
		resampled := voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(pcm)
		t.spoken = append(resampled, make([]int16, voice.MicRate/2)...) // half a second of silence
	}
	length := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
	return took, fmt.Sprintf("begins to speak after %s, and makes a second of speech in %s", millis(took),
		millis(time.Duration(float64(time.Since(began))/length.Seconds()))), nil
}

// errMisheard is the limitation of a recognizer that works but transcribes the sample wrongly.
var errMisheard = errors.New("those are other words; if it misunderstands people too, choose a larger model or another recognizer " +
	"(docs/how-to/nothing-is-heard.md)")

// tryRecognizer sends the spoken sample to a recognizer in real time. It returns the time from the end of
// the sample to the transcript, and a note. The error is errMisheard if the transcript has other words.
func (t *trial) tryRecognizer(ctx context.Context, n *engines.Engine) (took time.Duration, note string, err error) {
	if t.spoken == nil {
		return 0, "works as far as known; it was not tried because no synthesizer works", nil
	}
	if err := t.prepareEngine(ctx, n); err != nil {
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
	if !slices.Equal(language.Split(words), language.Split(t.sample)) {
		err = errMisheard
	}
	return took, fmt.Sprintf("understands %q as %q after %s", t.sample, words, millis(took)), err
}

// prepareEngine checks the sentences of the embedded recognizer and loads it, or warms another engine.
func (t *trial) prepareEngine(ctx context.Context, n *engines.Engine) error {
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

// errFirstSentence ends the trial of a brain after its first sentence.
var errFirstSentence = errors.New("the brain has said its first sentence")

// tryBrain asks a brain a question and waits for its first sentence. It returns the time until then, and
// a note.
func (t *trial) tryBrain(ctx context.Context, n *engines.Engine) (took time.Duration, note string, err error) {
	if err := t.prepareEngine(ctx, n); err != nil {
		return 0, "", err
	}
	zone, err := t.Config.Zone()
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sentence := ""
	began := time.Now()
	question := sampleQuestion
	if n.Brain.Name() == "reflex" {
		question = t.sample // the reflex brain understands only its own sentences
	}
	turn := agent.Turn{Conversation: "doctor", Text: question, Now: began.In(zone), Language: t.speech.Language}
	err = n.Brain.Think(ctx, turn, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Say:
			took, sentence = time.Since(began), r.Text
			return errFirstSentence
		case agent.Ask:
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed})
		}
		return nil
	})
	switch {
	case sentence == "" && err != nil:
		return 0, "", err
	case sentence == "" && n.Brain.Name() == "none":
		return 0, "replies nothing, as configured", nil
	case sentence == "":
		return 0, "", fmt.Errorf("it replied nothing to %q", question)
	}
	return took, fmt.Sprintf("says its first sentence after %s: %q", millis(took), sentence), nil
}

// addBudget adds a finding about the time between a person's last word and the first sound of the reply. It
// adds none if no recognizer, no brain or no synthesizer works.
func (t *trial) addBudget() {
	sum := time.Duration(t.Config.Speech.Silence)
	var parts []string
	for _, list := range []string{"recognizer", "brain", "synthesizer"} {
		s, ok := t.working[list]
		if !ok {
			return // the engines' findings contain the cause
		}
		sum += s.took
		parts = append(parts, millis(s.took)+" "+s.part)
	}
	t.add("budget", nil, fmt.Sprintf("a robot replies %s after the last word: %s of silence that ends an utterance, %s", millis(sum),
		millis(time.Duration(t.Config.Speech.Silence)), strings.Join(parts, ", ")))
}

// millis formats a duration in milliseconds.
func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
