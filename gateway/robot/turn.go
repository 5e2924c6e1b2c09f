package robot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/language"
	"perch/voice"
)

// turn is one turn under way: from an utterance, a text or a sentence to say, to the last sound of
// its speech. One goroutine runs it, and lives as long as its context and the C call it may be in.
type turn struct {
	session    *session
	number     int
	start      dialogue.TurnStart
	speech     *playback.Speech
	utterances chan *voice.Utterance // of a question's answers
	answers    chan agent.Answer     // of a question, from the loop
	decided    chan agent.Answer     // the same, of the robot's owner
	cancel     context.CancelFunc

	clock      stages
	end        agent.End
	gestures   int         // so many were queued
	reboot     atomic.Bool // the robot, once the answer was spoken
	transcript string      // the loop's

	options *Options    // as the turn began
	done    func()      // is called when it has ended
	own     Character   // of the robot, as the turn began
	trusted atomic.Bool // its owner had adopted the robot as the turn began
}

// newTurn returns a turn; the loop calls it.
func newTurn(s *session, number int, start dialogue.TurnStart, speech *playback.Speech, cancel context.CancelFunc) *turn {
	o, done := s.shared.acquire()
	return &turn{
		session: s, number: number, start: start, cancel: cancel, options: o, done: done, own: o.Character(s.robot.ID), speech: speech,
		utterances: make(chan *voice.Utterance, 1), answers: make(chan agent.Answer, 1),
		decided: make(chan agent.Answer, 1), end: agent.Continue,
	}
}

// run runs the turn. An utterance may be nil.
func (t *turn) run(ctx context.Context, u *voice.Utterance) {
	defer t.done()
	t.trusted.Store(t.session.unsaved.save())
	end, reason := t.perform(ctx, u)
	if ctx.Err() != nil {
		return // cancelled: the loop has published that already
	}
	if err := t.speech.Flush(ctx); err != nil {
		end, reason = event.EndFailed, err.Error()
	}
	// The end of the speech is queued before the loop hears of the turn's end, so the loop sees both
	// in either order.
	if t.speech.Finish(ctx) == nil {
		t.post(ctx, dialogue.TurnFinished{End: end, Reason: reason})
	}
}

// post gives the loop an input, and waits until it has dealt with it: the order stays the same. It
// ignores errors: the turn is over then, too.
func (t *turn) post(ctx context.Context, in dialogue.Input) { _ = t.session.post(ctx, t.number, in) }

// perform does the turn and returns how it ended; end is empty if nothing came of it.
func (t *turn) perform(ctx context.Context, u *voice.Utterance) (end, reason string) {
	text, err := t.start.Text, error(nil)
	if t.start.Utterance {
		text, err = t.listen(ctx, u)
	}
	switch {
	case err != nil:
	case t.start.Announcement.Phrase != "":
		err = t.greet(ctx, t.start.Announcement.Phrase)
	case t.start.Announcement.Text != "":
		err = t.announce(ctx, t.start.Announcement.Text)
	case t.start.Announcement.Sound != nil:
		// On the empty sentence every build begins to speak.
		if err = t.speech.Sentence(ctx, ""); err == nil {
			err = t.speech.Sound(ctx, t.start.Announcement.Sound.PCM)
		}
	case t.start.Announcement.Question != nil:
		q := t.start.Announcement.Question.Question
		err = t.ask(ctx, q, time.Until(q.Until), func(agent.Answer) {}) // the loop answers it
	case text == "":
		return "", ""
	default:
		t.post(ctx, dialogue.Transcript{Text: text})
		err = t.think(ctx, text)
	}
	switch {
	case ctx.Err() != nil:
		return event.EndCancelled, ""
	case err != nil:
		return event.EndFailed, err.Error()
	}
	return string(t.end), ""
}

// announce speaks a text sentence by sentence, with the face it begins with.
func (t *turn) announce(ctx context.Context, text string) error {
	face, words := agent.SplitEmotion(text)
	if face != agent.Neutral {
		if err := t.speech.Face(ctx, face); err != nil {
			return err
		}
	}
	for _, sentence := range thinker.Sentences(words) {
		if err := t.speak(ctx, sentence); err != nil {
			return err
		}
	}
	return nil
}

// greet speaks a phrase, which is synthesized now if it was not before.
func (t *turn) greet(ctx context.Context, name string) error {
	if p, ready := t.session.shared.phrases.in(t.own.Speech).lookup(name); ready && len(p.packets) > 0 {
		t.sayPhrase(ctx, name)
		return ctx.Err()
	}
	return t.speakPhrase(ctx, name)
}

// speakPhrase speaks a phrase that is not synthesized ahead, as one sentence.
func (t *turn) speakPhrase(ctx context.Context, name string) error {
	face, text := agent.SplitEmotion(t.options.Phrases(t.own.Speech.Language, name))
	if text == "" {
		return nil
	}
	if err := t.speech.Face(ctx, face); err != nil {
		return err
	}
	if err := t.speak(ctx, text); err != nil {
		return err
	}
	return t.speech.Flush(ctx)
}

// listen recognizes an utterance while it is spoken. The text is empty if it was not understood;
// listen then says so if the dialogue wants that.
func (t *turn) listen(ctx context.Context, u *voice.Utterance) (string, error) {
	transcript, err := t.recognize(ctx, u, t.own.Speech)
	t.clock.mark(event.StageRecognize)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		// It may have failed at once. The person is not interrupted for that.
		if u.Wait(ctx) != nil {
			return "", ctx.Err()
		}
		name := phraseDeaf
		if errors.Is(err, errTooManyStrangerTurns) {
			name = phraseFailed
		}
		t.sayPhrase(ctx, name)
		return "", fmt.Errorf("recognize: %w", err)
	case transcript.Refused:
		t.session.tap.Recognized(nil)
		t.post(ctx, dialogue.Misheard{})
		if t.start.Aloud {
			t.sayPhrase(ctx, phraseMisheard)
		}
		return "", nil
	}
	text := strings.TrimSpace(transcript.Text)
	t.session.tap.Recognized(text)
	t.setLanguage(transcript.Language)
	return text, nil
}

// setLanguage continues the turn in the language that was heard, if it is one of the household's.
func (t *turn) setLanguage(heard string) {
	spoken, known := language.Among(t.options.Languages, heard)
	if known && t.own.Speech.Detect && spoken != t.own.Speech.Language {
		t.own.Speech.Language, t.own.Speech.Voice = spoken, "" // a voice is of one language
	}
}

var errTooManyStrangerTurns = errors.New("too many robots that nobody has adopted are spoken to at once")

// recognize recognizes an utterance, a stranger's if a slot is free.
func (t *turn) recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if !t.trusted.Load() {
		release, ok := t.session.shared.strangers.utterances.acquire()
		if !ok {
			u.Drop()
			return voice.Transcript{}, errTooManyStrangerTurns
		}
		defer release()
		o.Stranger = true
	}
	return t.options.Recognizer.Recognize(ctx, u, o)
}

var errSilent = errors.New("the mind has given nothing for too long")

// think lets the agent answer, and speaks a phrase if it fails. Strangers' turns have as many slots
// as their utterances: an answer costs more than recognition.
func (t *turn) think(ctx context.Context, text string) error {
	s := t.session
	s.toolbox.AwaitList(ctx) // before a stranger takes a slot of others
	if !t.trusted.Load() {
		release, ok := s.shared.strangers.turns.acquire()
		if !ok {
			t.sayPhrase(ctx, phraseFailed)
			return errTooManyStrangerTurns
		}
		defer release()
	}
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watch := time.AfterFunc(t.options.Patience, func() { giveUp(errSilent) })
	defer watch.Stop()
	err := s.Mind.Answer(within, agent.Turn{
		Conversation: string(s.robot.ID), Robot: s.robot.ID, Session: s.id, Untrusted: !t.trusted.Load(), Text: text,
		Now: time.Now().In(t.options.Zone), Language: t.own.Speech.Language, Name: t.own.Name, Persona: t.own.Persona, Brain: t.own.Brain, Body: body{t},
	}, func(r agent.Reply) error {
		watch.Stop() // to speak takes its time, and a question its own
		defer watch.Reset(t.options.Patience)
		return t.handleReply(within, r)
	})
	if err != nil && ctx.Err() == nil {
		if cause := context.Cause(within); errors.Is(cause, errSilent) {
			err = fmt.Errorf("%w: %s", cause, t.options.Patience)
		}
		switch {
		case errors.Is(err, agent.ErrStranger):
			_ = t.speakPhrase(ctx, phraseStranger) // the turn has failed already
		case errors.Is(err, agent.ErrAway):
			t.sayPhrase(ctx, phraseAway)
		default:
			t.sayPhrase(ctx, phraseFailed)
		}
	}
	return err
}

// handleReply carries out one reply.
func (t *turn) handleReply(ctx context.Context, r agent.Reply) error {
	t.clock.mark(event.StageFirstToken)
	t.session.tap.Reply(r)
	switch r := r.(type) {
	case agent.Felt:
		return t.speech.Face(ctx, r.Emotion)
	case agent.Cue:
		return t.gesture(ctx, r)
	case agent.Say:
		t.clock.mark(event.StageFirstSentence)
		return t.speak(ctx, r.Text)
	case agent.ToolStatus:
		t.clock.tool(r.Status)
	case agent.Ask:
		return t.ask(ctx, agent.Question{ID: r.ID, Text: r.Text}, r.Within, r.Answer)
	case agent.Done:
		t.end = r.End
	}
	return ctx.Err()
}

// mostGestures is how many gestures one turn makes: a model may write any number.
const mostGestures = 32

// gesture queues a cue's gesture. A stranger's answer makes none.
func (t *turn) gesture(ctx context.Context, cue agent.Cue) error {
	g, is := cue.Gesture()
	if !is || !t.trusted.Load() || t.gestures >= mostGestures {
		return ctx.Err()
	}
	t.gestures++
	return t.speech.Gesture(ctx, g.Name)
}

// speak queues a sentence and its packets as they are synthesized.
func (t *turn) speak(ctx context.Context, text string) error {
	if err := t.speech.Sentence(ctx, text); err != nil {
		return err
	}
	sounded := false
	err := t.options.Synthesizer.Synthesize(ctx, text, t.own.Speech, func(pcm []int16) error {
		t.clock.mark(event.StageFirstAudio)
		sounded = true
		return t.speech.Sound(ctx, pcm)
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case sounded && errors.Is(err, voice.ErrUnavailable):
		// To begin again would be odd. The next sentence may have another engine.
		t.session.log.Warn("a sentence was cut off", "err", err)
		return nil
	}
	return fmt.Errorf("speak: %w", err)
}

// sayPhrase plays a sentence that was synthesized ahead, because an engine is away. It ignores
// errors: the turn has failed already.
func (t *turn) sayPhrase(ctx context.Context, name string) {
	p, ok := t.session.shared.phrases.in(t.own.Speech).lookup(name)
	if len(p.packets) == 0 { // in its own voice it is not made, or cannot be
		if !ok && t.own.Speech.Language != t.options.Speech.Language && t.speakPhrase(ctx, name) == nil {
			return // the usual one is in another language
		}
		if usual, made := t.session.shared.phrases.household().lookup(name); made {
			p, ok = usual, true
		}
	}
	if !ok { // the appliance has just started
		_ = t.speakPhrase(ctx, name) // the turn has failed already
		return
	}
	_ = t.speech.Face(ctx, p.face)
	_ = t.speech.Sentence(ctx, p.text)
	_ = t.speech.Packets(ctx, p.packets)
}

// ask puts a question and waits for a touch, words, the owner's decision elsewhere or the end of its
// time, which begins when the question was put, unless q.Until is set. A channel that closes is a
// no.
func (t *turn) ask(ctx context.Context, q agent.Question, within time.Duration, reply func(agent.Answer)) error {
	answer := agent.Answer{Outcome: agent.AnswerClosed}
	defer func() { reply(answer) }()
	t.forgetAnswers()
	if err := t.speak(ctx, q.Text); err != nil {
		return err
	}
	if err := t.speech.Flush(ctx); err != nil {
		return err
	}
	if q.Until.IsZero() {
		now := time.Now()
		q.Robot, q.Session, q.Asked, q.Until = t.session.robot.ID, t.session.id, now, now.Add(within)
	}
	open := &q
	t.post(ctx, dialogue.QuestionPut{Question: open})
	defer t.session.question.CompareAndSwap(open, nil) // the next turn may have put its own
	if err := t.speech.Pause(ctx, within); err != nil {
		return err
	}
	given, err := t.awaitAnswer(ctx)
	if err == nil && !t.session.question.CompareAndSwap(open, nil) {
		select { // the owner has come before it
		case given = <-t.decided:
		case <-ctx.Done():
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // a cancelled turn is no yes
	case err != nil:
		t.post(ctx, dialogue.QuestionAnswered{Answer: agent.Answer{Outcome: agent.AnswerClosed}})
		return err
	}
	answer = given
	if answer.Outcome == agent.AnswerGiven {
		t.post(ctx, dialogue.Transcript{Text: answer.Text})
	}
	t.post(ctx, dialogue.QuestionAnswered{Answer: answer})
	return nil
}

// awaitAnswer waits for an answer of the people near the robot, or the owner's.
func (t *turn) awaitAnswer(ctx context.Context) (agent.Answer, error) {
	for {
		select {
		case a := <-t.decided:
			t.decided <- a // for decision
			return a, nil
		case a := <-t.answers:
			return a, nil
		case u := <-t.utterances:
			answering := t.own.Speech
			answering.Answer = true
			transcript, err := t.recognize(ctx, u, answering)
			if err != nil {
				return agent.Answer{}, fmt.Errorf("recognize an answer: %w", err)
			}
			text := strings.TrimSpace(transcript.Text)
			t.session.tap.Recognized(text)
			select {
			case a := <-t.answers:
				if a.Outcome == agent.AnswerExpired {
					return a, nil // the words were cut off by the end of the time
				}
				select {
				case t.answers <- a:
				default: // a later one is the same
				}
			default:
			}
			if transcript.Refused || text == "" {
				t.post(ctx, dialogue.Misheard{})
				continue // the question still stands, until its time is over
			}
			return agent.Answer{Outcome: agent.AnswerGiven, Text: text}, nil
		case <-ctx.Done():
			return agent.Answer{}, ctx.Err()
		}
	}
}

// forgetAnswers drops late answers, which must not answer the next question.
func (t *turn) forgetAnswers() {
	for {
		select {
		case <-t.answers:
		case <-t.utterances:
		default:
			return
		}
	}
}

// body is the robot as a brain sees it.
type body struct{ *turn }

// Tools implements agent.Body. It leaves out the tools for the robot's owner, unless the owner allows
// them.
func (b body) Tools() []device.Tool {
	tools := b.session.toolbox.Tools()
	if b.options.UserTools {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t device.Tool) bool { return t.UserOnly })
}

// Call implements agent.Body.
func (b body) Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error) {
	b.session.tap.Called(name, arguments)
	if tool, ok := device.FindTool(b.session.toolbox.Tools(), name); ok && tool.UserOnly && !b.options.UserTools {
		return device.Result{}, tools.Failed(tools.ErrNoTool, "%s is for the robot's owner; robots.user_tools allows it", name)
	}
	return b.session.call(ctx, name, arguments)
}

// Reboot implements agent.Body. The robot restarts when the turn has been spoken.
func (b body) Reboot(context.Context) error {
	b.reboot.Store(true)
	return nil
}
