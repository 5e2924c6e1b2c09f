package robot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// turn is a turn under way. It begins with an utterance, a text or an announcement, and ends when the
// robot has played its speech. One goroutine runs it. When the turn is cancelled, the goroutine may
// stay in a C function for a while.
type turn struct {
	session    *session
	number     int // see loop.number
	start      dialogue.TurnStart
	speech     *playback.Speech
	utterances chan *voice.Utterance // spoken answers to the turn's question
	answers    chan agent.Answer     // answers to the turn's question that the loop has found, such as a touch
	decisions  chan agent.Answer     // answers to the turn's question that the owner has given elsewhere
	ctx        context.Context       // of run
	cancel     context.CancelFunc

	draft atomic.Pointer[draft] // begun by the loop; nil if there is none
	taken *draft                // the draft of the words that were recognized; may be nil

	clock      stages
	details    turnDetails
	end        agent.End   // how the turn ends, as the agent has decided
	gestures   int         // gestures queued so far
	face       string      // name of the face that the robot shows; "" if the turn has set none
	audible    bool        // some sound of the turn's text was synthesized
	unread     error       // why a sentence was only shown; nil if all sentences were spoken
	reboot     atomic.Bool // the robot restarts after the turn
	transcript string      // words that the turn answers; only the loop uses it
	heard      string      // words that a brain has understood without a recognizer
	captions   captions    // sentences that the brain speaks itself
	sounded    atomic.Bool // the brain has spoken itself, perhaps before the words that it answers are known

	options   *Options    // options when the turn began
	release   func()      // releases the engines of the options; see Options.Hold
	character Character   // the robot's character when the turn began
	trusted   atomic.Bool // the robot was adopted when the turn began
}

// newTurn returns a turn with the current options. The loop's goroutine calls newTurn, and then calls run in
// another goroutine.
func newTurn(ctx context.Context, s *session, number int, start dialogue.TurnStart, speech *playback.Speech, cancel context.CancelFunc) *turn {
	o, release := s.shared.acquire()
	return &turn{
		session: s, number: number, start: start, ctx: ctx, cancel: cancel, options: o, release: sync.OnceFunc(release), character: o.Character(s.robot.ID), speech: speech,
		utterances: make(chan *voice.Utterance, 1), answers: make(chan agent.Answer, 1),
		decisions: make(chan agent.Answer, 1), end: agent.Continue,
	}
}

// draftAnswer begins to answer a text in another goroutine, unless the options have changed since the turn began. The
// loop calls draftAnswer before the end of the utterance.
func (t *turn) draftAnswer(text string) {
	o, release := t.session.shared.acquire()
	if o != t.options {
		release()
		return
	}
	synthesizer := o.Synthesizer
	if !o.SpeaksAhead {
		synthesizer = nil
	}
	d := newDraft(t.ctx, t.input(strings.TrimSpace(text), nil), synthesizer, t.character.Speech)
	t.keepDraft(d)
	t.session.turns.Go(func() {
		defer release()
		t.session.toolbox.AwaitList(d.ctx)
		d.write(t.session.Mind)
	})
}

// keepDraft replaces the turn's draft by d, which may be nil, and discards the one before.
func (t *turn) keepDraft(d *draft) {
	if before := t.draft.Swap(d); before != nil {
		before.cancel()
	}
}

// takeDraft sets t.taken to the draft of the answer to a text, if there is one, and discards a draft for another text.
func (t *turn) takeDraft(text string) {
	d := t.draft.Swap(nil)
	switch {
	case d == nil:
	case d.text == text:
		t.taken = d
	default:
		d.cancel()
	}
}

// run runs the turn until its speech is queued. u is nil if the turn does not begin with an utterance.
func (t *turn) run(ctx context.Context, u *voice.Utterance) {
	defer t.release()
	t.trusted.Store(t.session.unsaved.save())
	end, reason := t.perform(ctx, u)
	if ctx.Err() != nil {
		return // the loop has cancelled the turn, and has published that already
	}
	if err := t.speech.Flush(ctx); err != nil {
		end, reason = event.EndFailed, err.Error()
	}
	// The loop may learn of the end of the speech before or after TurnFinished.
	if t.speech.Finish(ctx) == nil {
		t.post(ctx, dialogue.TurnFinished{End: end, Reason: reason})
	}
}

// post hands an input to the loop, and waits until the loop has handled it, so that inputs stay in
// order. It ignores errors: each of them means that the turn is over too.
func (t *turn) post(ctx context.Context, in dialogue.Input) { _ = t.session.post(ctx, t.number, in) }

// perform does the work of the turn. It returns how the turn ended, as in event.TurnEnded, and the
// reason for a failure. end is empty if there was nothing to answer, as after a noise.
func (t *turn) perform(ctx context.Context, u *voice.Utterance) (end, reason string) {
	text, answered, err := t.start.Text, false, error(nil)
	if t.start.Utterance {
		answered, err = t.converse(ctx, u)
	}
	if text = cmp.Or(text, t.heard); t.start.Utterance && !answered && text == "" {
		text, err = t.listen(ctx, u)
	}
	switch {
	case err != nil || answered:
	case t.start.Announcement.Phrase != "":
		err = t.speakPhrase(ctx, t.start.Announcement.Phrase)
	case t.start.Announcement.Text != "":
		err = t.speakText(ctx, t.start.Announcement.Text)
	case t.start.Announcement.Sound != nil && t.start.Announcement.Sound.Music != nil:
		err = t.playMusic(ctx, t.start.Announcement.Sound.Music)
	case t.start.Announcement.Sound != nil:
		// An empty sentence makes every firmware build enter its speaking state.
		if err = t.speech.Sentence(ctx, ""); err == nil {
			err = t.speech.Sound(ctx, t.start.Announcement.Sound.PCM)
		}
	case t.start.Announcement.Question != nil:
		q := t.start.Announcement.Question.Question
		err = t.askQuestion(ctx, q, time.Until(q.Until), func(agent.Answer) {}) // the loop reports the answer
	case text == "":
		return "", ""
	default:
		if text != t.heard {
			t.post(ctx, dialogue.Transcript{Text: text})
		}
		err = t.askAgent(ctx, text)
	}
	switch {
	case ctx.Err() != nil:
		return event.EndCancelled, ""
	case err != nil:
		return event.EndFailed, err.Error()
	case t.unread != nil && !t.audible:
		return event.EndFailed, t.unread.Error()
	}
	return string(t.end), ""
}

// speakText speaks a text sentence by sentence. An emoji at the beginning sets the face.
func (t *turn) speakText(ctx context.Context, text string) error {
	face, text := agent.SplitEmotion(text)
	if face != agent.Neutral {
		if err := t.setFace(ctx, face); err != nil {
			return err
		}
	}
	for _, sentence := range thinker.Sentences(text) {
		if err := t.speakSentence(ctx, sentence); err != nil {
			return err
		}
	}
	return nil
}

// speakPhrase speaks a phrase, and synthesizes it if it was not synthesized ahead.
func (t *turn) speakPhrase(ctx context.Context, name string) error {
	if t.character.Speech.Mute {
		return t.synthesizePhrase(ctx, name)
	}
	if p, ready := t.session.shared.phrases.forVoice(t.character.Speech).lookup(name); ready && len(p.packets) > 0 {
		t.playPhrase(ctx, name)
		return ctx.Err()
	}
	return t.synthesizePhrase(ctx, name)
}

// synthesizePhrase synthesizes a phrase and speaks it as one sentence.
func (t *turn) synthesizePhrase(ctx context.Context, name string) error {
	face, text := agent.SplitEmotion(t.options.Phrases(t.character.Speech.Language, name))
	if text == "" {
		return nil
	}
	if err := t.setFace(ctx, face); err != nil {
		return err
	}
	if err := t.speakSentence(ctx, text); err != nil {
		return err
	}
	return t.speech.Flush(ctx)
}

// listen recognizes an utterance while it is spoken. The text is empty if the recognizer did not
// understand it; listen then makes the robot say so if start.Aloud is set and somebody has spoken. If the recognizers are busy, the
// robot asks for a moment. If the recognizer fails, listen makes the robot say so, and returns the error.
func (t *turn) listen(ctx context.Context, u *voice.Utterance) (string, error) {
	promised := false // the robot has asked for a moment
	transcript, err := t.recognize(ctx, u, t.character.Speech, func() {
		promised = true
		t.playPhrase(ctx, phraseMoment)
	})
	t.clock.endStage(event.StageRecognize)
	text := strings.TrimSpace(transcript.Text)
	t.takeDraft(text)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		// The recognizer may have failed at once. The phrase waits until the person has finished speaking.
		if u.Wait(ctx) != nil {
			return "", ctx.Err()
		}
		name := phraseDeaf
		if errors.Is(err, errTooManyStrangerTurns) || errors.Is(err, voice.ErrBusy) {
			name = phraseFailed
		}
		t.playPhrase(ctx, name)
		return "", fmt.Errorf("recognize: %w", err)
	case transcript.Refused:
		t.session.tap.Recognized(nil)
		t.post(ctx, dialogue.Misheard{Silence: transcript.Silence})
		name := phraseMisheard
		if t.character.Speech.Deaf {
			name = phraseUnhearing
		}
		if t.start.Aloud && !transcript.Silence || promised {
			t.playPhrase(ctx, name)
		}
		return "", nil
	}
	t.session.tap.Recognized(text)
	t.setLanguage(transcript.Language)
	return text, nil
}

// setLanguage continues the turn in the detected language, if language detection is on for the robot and the
// language is one of Options.Languages.
func (t *turn) setLanguage(detected string) {
	spoken, ok := language.Among(t.options.Languages, detected)
	if ok && t.character.Speech.DetectLanguage && spoken != t.character.Speech.Language {
		t.character.Speech.Language, t.character.Speech.Voice = spoken, "" // the robot's voice is for its configured language
	}
}

// errTooManyStrangerTurns is the error of a stranger's turn that gets no slot.
var errTooManyStrangerTurns = errors.New("people are talking to too many robots that nobody has adopted")

// recognize recognizes an utterance. A stranger's utterance needs a free slot. busy is called if the
// utterance must wait for a recognizer.
func (t *turn) recognize(ctx context.Context, u *voice.Utterance, o voice.Options, busy func()) (voice.Transcript, error) {
	if !t.trusted.Load() {
		release, ok := t.session.shared.strangers.utterances.acquire()
		if !ok {
			u.Drop()
			return voice.Transcript{}, errTooManyStrangerTurns
		}
		defer release()
		o.Stranger = true
	}
	return voice.RecognizePatiently(ctx, t.options.Recognizer, u, o, busy)
}

// errSilent is the cause of a turn's failure if the agent has exceeded Options.Patience.
var errSilent = errors.New("the agent has sent nothing for too long")

// askAgent asks the agent to answer a text, and speaks a phrase if the agent fails. A stranger's turn needs
// a free slot.
func (t *turn) askAgent(ctx context.Context, text string) error {
	s := t.session
	s.toolbox.AwaitList(ctx) // before a stranger takes a slot, so that no slot is held during the wait
	if !t.trusted.Load() {
		release, ok := s.shared.strangers.turns.acquire()
		if !ok {
			t.playPhrase(ctx, phraseFailed)
			return errTooManyStrangerTurns
		}
		defer release()
	}
	return t.ask(ctx, func(ctx context.Context, in agent.Turn, out func(agent.Reply) error) error {
		var drafted *agent.Draft
		if t.taken != nil {
			drafted = t.taken.answer
		}
		return s.Mind.AnswerDrafted(ctx, drafted, in, out)
	}, text, nil)
}

// input returns the agent's input for a text or the speech in an utterance.
func (t *turn) input(text string, u *voice.Utterance) agent.Turn {
	s := t.session
	return agent.Turn{
		Conversation: string(s.robot.ID), Robot: s.robot.ID, Session: s.id, Untrusted: !t.trusted.Load(), Text: text, Speech: u,
		Now: time.Now().In(t.options.Zone), Language: t.character.Speech.Language, Name: t.character.Name, Persona: t.character.Persona, Brain: t.character.Brain, Body: body{t}, Music: t.music(),
		Publish: func(e event.Event) {
			t.details.add(e)
			s.publish(e)
		},
	}
}

// ask has answer, a method of the mind, answer a text or the speech in an utterance, and speaks a phrase if the agent
// fails. An error that wraps agent.ErrUnheard is no such failure.
func (t *turn) ask(ctx context.Context, answer func(context.Context, agent.Turn, func(agent.Reply) error) error, text string, u *voice.Utterance) error {
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watch := time.AfterFunc(t.options.Patience, func() { giveUp(errSilent) })
	defer watch.Stop()
	err := answer(within, t.input(text, u), func(r agent.Reply) error {
		watch.Stop() // the time for speaking and asking does not count
		defer watch.Reset(t.options.Patience)
		return t.handleReply(within, r)
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, agent.ErrUnheard) && !errors.Is(err, errNobodySpoke) {
		if cause := context.Cause(within); errors.Is(cause, errSilent) {
			err = fmt.Errorf("%w: %s", cause, t.options.Patience)
		}
		switch {
		case errors.Is(err, agent.ErrStranger):
			_ = t.synthesizePhrase(ctx, phraseStranger) // the turn has failed already
		case errors.Is(err, agent.ErrAway):
			t.playPhrase(ctx, phraseAway)
		default:
			t.playPhrase(ctx, phraseFailed)
		}
	}
	return err
}

// handleReply carries out one reply of the agent.
func (t *turn) handleReply(ctx context.Context, r agent.Reply) error {
	t.session.tap.Reply(r)
	switch r.(type) {
	case agent.Heard, agent.Used:
	default:
		t.clock.endStage(event.StageFirstToken)
	}
	switch r := r.(type) {
	case agent.Felt:
		return t.setFace(ctx, r.Emotion)
	case agent.Cue:
		return t.queueGesture(ctx, r)
	case agent.Heard, agent.Sound, agent.Used:
		return t.handleSpeech(ctx, r)
	case agent.Say:
		t.clock.endStage(event.StageFirstSentence)
		if r.Sounds && !t.character.Speech.Mute {
			return t.captions.add(ctx, t.speech, r.Text)
		}
		if err := t.captions.flush(ctx, t.speech); err != nil {
			return err
		}
		return t.speakSentence(ctx, r.Text)
	case agent.ToolStatus:
		t.clock.setToolStatus(r.Status)
	case agent.Ask:
		if err := t.captions.flush(ctx, t.speech); err != nil {
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed})
			return err
		}
		return t.askQuestion(ctx, agent.Question{ID: r.ID, Text: r.Text}, r.Within, r.Answer)
	case agent.Done:
		t.end = r.End
		return t.captions.flush(ctx, t.speech)
	}
	return ctx.Err()
}

// setFace queues a face, which the sentences after it are spoken with.
func (t *turn) setFace(ctx context.Context, face agent.Emotion) error {
	t.face = face.Name
	return t.speech.Face(ctx, face)
}

// maxGestures is how many gestures a turn may make: a model may write any number of them.
const maxGestures = 32

// queueGesture queues the gesture of a cue, if the cue names a gesture. Strangers make no gestures.
func (t *turn) queueGesture(ctx context.Context, cue agent.Cue) error {
	g, ok := cue.Gesture()
	if !ok || !t.trusted.Load() || t.gestures >= maxGestures {
		return ctx.Err()
	}
	t.gestures++
	return t.speech.Gesture(ctx, g.Name)
}

// speakSentence queues a sentence, and its sound as it is synthesized. If the engine becomes unavailable
// after the sound has begun, the sentence is cut off, and speakSentence returns nil. A sentence that no engine
// can read is shown without sound, for as long as reading it takes.
func (t *turn) speakSentence(ctx context.Context, text string) error {
	if err := t.speech.Sentence(ctx, text); err != nil {
		return err
	}
	audible, options := false, t.character.Speech
	options.Emotion = t.face
	play := func(pcm []int16) error {
		t.clock.endStage(event.StageFirstAudio)
		audible, t.audible = true, true
		return t.speech.Sound(ctx, pcm)
	}
	var err error
	if ahead := t.taken.take(text, options); ahead != nil {
		err = ahead.play(ctx, play)
	} else {
		err = t.options.Synthesizer.Synthesize(ctx, text, options, play)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case audible && errors.Is(err, voice.ErrUnavailable):
		// Starting the sentence again would sound odd. Another engine may speak the next sentence.
		t.session.log.Warn("a sentence was cut off", "err", err)
		return nil
	case errors.Is(err, voice.ErrText):
		t.session.log.Warn("a sentence cannot be spoken, and is only shown", "err", err)
		t.unread = err
		return voice.Silence(ctx, text, func(pcm []int16) error { return t.speech.Sound(ctx, pcm) })
	}
	return fmt.Errorf("speak: %w", err)
}

// playPhrase plays a phrase, preferably a sound that was synthesized ahead, because the synthesizer may be
// unavailable. It ignores errors, because the turn has failed already or is about to end.
func (t *turn) playPhrase(ctx context.Context, name string) {
	if t.character.Speech.Mute { // no engine is needed
		_ = t.synthesizePhrase(ctx, name)
		return
	}
	p, ok := t.session.shared.phrases.forVoice(t.character.Speech).lookup(name)
	if len(p.packets) == 0 { // the phrase is not synthesized yet in the robot's voice, or could not be synthesized
		if !ok && t.character.Speech.Language != t.options.Speech.Language && t.synthesizePhrase(ctx, name) == nil {
			return // better than the phrase in the default voice, which is in another language
		}
		if inDefault, found := t.session.shared.phrases.inDefaultVoice().lookup(name); found {
			p, ok = inDefault, true
		}
	}
	if !ok { // the appliance has just started
		_ = t.synthesizePhrase(ctx, name)
		return
	}
	_ = t.speech.Face(ctx, p.face)
	_ = t.speech.Sentence(ctx, p.text)
	_ = t.speech.Packets(ctx, p.packets)
}

// askQuestion speaks a question, waits for the answer and calls reply with it. The answer is spoken words, a
// touch or the owner's decision. The answer is AnswerExpired if the time is over: at q.Until, or if q.Until
// is zero, when within has passed since the question was spoken. If the turn is cancelled, or the question
// cannot be spoken or an answer recognized, the answer is AnswerClosed, and askQuestion returns an error.
func (t *turn) askQuestion(ctx context.Context, q agent.Question, within time.Duration, reply func(agent.Answer)) error {
	answer := agent.Answer{Outcome: agent.AnswerClosed}
	defer func() { reply(answer) }()
	t.dropAnswers()
	if err := t.speakSentence(ctx, q.Text); err != nil {
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
	defer t.session.question.CompareAndSwap(open, nil) // does not remove the question of a later turn
	if err := t.speech.Pause(ctx, within); err != nil {
		return err
	}
	given, err := t.awaitAnswer(ctx)
	if err == nil && !t.session.question.CompareAndSwap(open, nil) {
		select { // the owner has answered first
		case given = <-t.decisions:
		case <-ctx.Done():
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // the answer stays AnswerClosed
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

// awaitAnswer waits for an answer from the people near the robot or from its owner. It leaves the owner's
// answer in decisions.
func (t *turn) awaitAnswer(ctx context.Context) (agent.Answer, error) {
	for {
		select {
		case a := <-t.decisions:
			t.decisions <- a // askQuestion receives it
			return a, nil
		case a := <-t.answers:
			return a, nil
		case u := <-t.utterances:
			options := t.character.Speech
			options.YesNo = true
			transcript, err := t.recognize(ctx, u, options, func() {})
			if err != nil {
				return agent.Answer{}, fmt.Errorf("recognize an answer: %w", err)
			}
			text := strings.TrimSpace(transcript.Text)
			t.session.tap.Recognized(text)
			select {
			case a := <-t.answers:
				if a.Outcome == agent.AnswerExpired {
					return a, nil // the time ended during the words and cut them off
				}
				select {
				case t.answers <- a: // handled after the words
				default: // a newer answer has arrived, which is used instead
				}
			default:
			}
			if transcript.Refused || text == "" {
				t.post(ctx, dialogue.Misheard{Silence: transcript.Silence})
				continue // the question still waits until its time is over
			}
			return agent.Answer{Outcome: agent.AnswerGiven, Text: text}, nil
		case <-ctx.Done():
			return agent.Answer{}, ctx.Err()
		}
	}
}

// dropAnswers drops late answers to an earlier question, which must not answer the next question.
func (t *turn) dropAnswers() {
	for {
		select {
		case <-t.answers:
		case <-t.utterances:
		default:
			return
		}
	}
}

// body implements agent.Body: it gives brains access to the robot during a turn.
type body struct{ *turn }

// Tools implements agent.Body. It leaves out the tools that are reserved for the robot's owner, unless
// the configuration allows them.
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
	if b.options.Moves != nil {
		b.options.Moves(b.session.robot.ID, name, arguments)
	}
	result, err := b.session.callTool(ctx, name, arguments)
	b.details.addCall(name, arguments, result, err)
	if lights, found := device.FindLights(b.session.toolbox.Tools()); err == nil && found && lights.Name == name {
		b.session.publish(event.RobotStatus{Lights: new(lights.Colour(arguments))})
	}
	return result, err
}

// Reboot implements agent.Body. The robot restarts once it has played the turn's speech.
func (b body) Reboot(context.Context) error {
	b.reboot.Store(true)
	return nil
}
