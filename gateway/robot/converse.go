package robot

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/plain"
	"perch/voice"
)

// errNobodySpoke ends the answer of a brain that has heard no words.
var errNobodySpoke = errors.New("the utterance has no words")

// converse has a brain that understands speech answer an utterance while it is spoken. answered is false if there is no
// such brain, or if it has failed before it has spoken; the words must then be recognized, unless t.heard has them.
// A stranger's words are always recognized, because people would otherwise use up the owner's account.
func (t *turn) converse(ctx context.Context, u *voice.Utterance) (answered bool, err error) {
	if !t.trusted.Load() || t.character.Speech.Deaf || t.character.Speech.Mute || !t.session.Mind.Hears(t.character.Brain) {
		return false, nil
	}
	t.session.toolbox.AwaitList(ctx)
	err = t.ask(ctx, func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		return t.session.Mind.Hear(ctx, turn, func(r agent.Reply) error {
			h, is := r.(agent.Heard)
			if !is || h.Text == agent.Unwritten {
				return out(r)
			}
			words := voice.FilterTranscript(voice.Transcript{Text: plain.Clip(h.Text, voice.MaxTranscript)}, u)
			switch {
			case words.Refused && !t.audible:
				return errNobodySpoke
			case words.Refused:
				return out(agent.Heard{Text: agent.Unwritten})
			}
			return out(agent.Heard{Text: words.Text})
		})
	}, "", u)
	switch {
	case errors.Is(err, errNobodySpoke):
		t.end = "" // as after a noise
		t.session.tap.Recognized(nil)
		t.post(ctx, dialogue.Misheard{Silence: true})
		return true, nil
	case errors.Is(err, agent.ErrUnheard):
		return false, nil // the engine's condition tells why
	}
	return true, err
}

// handleSpeech handles a reply of a brain that hears and speaks itself.
func (t *turn) handleSpeech(ctx context.Context, r agent.Reply) error {
	switch r := r.(type) {
	case agent.Heard:
		t.clock.endStage(event.StageRecognize)
		t.session.tap.Recognized(r.Text)
		if r.Text != agent.Unwritten { // if the brain fails, a recognizer may still find the words
			t.heard = r.Text
		}
		t.post(ctx, dialogue.Transcript{Text: r.Text})
	case agent.Sound:
		if t.character.Speech.Mute {
			break
		}
		t.clock.endStage(event.StageFirstAudio)
		t.audible = true
		t.sounded.Store(true)
		return t.captions.sound(ctx, t.speech, r.PCM)
	case agent.Used:
		t.details.addTokens(r.Tokens)
	}
	return ctx.Err()
}

// captions shows the sentences that a brain speaks itself. Their texts come in a stream apart from the sound, usually
// earlier. A sentence is shown when the sound has probably reached it: the sentence before it has sounded for
// as long as such a sentence takes.
type captions struct {
	waiting []string
	shown   bool // whether the sound has a sentence
	silent  bool // whether the sentence that is shown has no sound yet
	left    int  // samples until the next sentence is due
}

// Lengths of speech. They need not be exact, because all sound is played either way.
const (
	perLetter  = 55 * time.Millisecond
	perWide    = 150 * time.Millisecond // for Chinese, Japanese and Korean letters
	captionEnd = voice.SpeakerFrame     // samples of silence that carry a sentence whose sound has passed
)

// spokenFor returns about how long speaking a text takes, in samples.
func spokenFor(text string) int {
	wide := 0
	for _, r := range text {
		if r > 0x2E80 {
			wide++
		}
	}
	d := time.Duration(utf8.RuneCountInString(text)-wide)*perLetter + time.Duration(wide)*perWide
	return int(d * voice.SpeakerRate / time.Second)
}

// add adds a sentence.
func (c *captions) add(ctx context.Context, s *playback.Speech, text string) error {
	c.waiting = append(c.waiting, text)
	return c.show(ctx, s)
}

// show shows the next sentence if it is due.
func (c *captions) show(ctx context.Context, s *playback.Speech) error {
	if c.left > 0 || len(c.waiting) == 0 {
		return nil
	}
	text := c.waiting[0]
	c.waiting, c.shown, c.silent, c.left = c.waiting[1:], true, true, spokenFor(text)
	return s.Sentence(ctx, text)
}

// sound adds a piece of the sound.
func (c *captions) sound(ctx context.Context, s *playback.Speech, pcm []int16) error {
	if err := c.show(ctx, s); err != nil {
		return err
	}
	if !c.shown { // sound before its text
		c.shown = true
		if err := s.Sentence(ctx, ""); err != nil {
			return err
		}
	}
	c.silent = false
	c.left -= len(pcm)
	return s.Sound(ctx, pcm)
}

// flush shows the sentences that are left, when their sound has ended.
func (c *captions) flush(ctx context.Context, s *playback.Speech) error {
	for c.silent || len(c.waiting) > 0 {
		c.left = 0
		if err := c.sound(ctx, s, make([]int16, captionEnd)); err != nil {
			return err
		}
	}
	c.shown, c.left = false, 0
	return nil
}
