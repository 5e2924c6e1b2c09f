package skin

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"perch/event"
	"perch/voice"
)

// playback publishes the events of a turn at the speed of speech, as the events of a robot's turn are
// published while the robot plays its speech. A sentence lasts until the client has played its sound. If the
// client plays no sound, the sentence lasts for the time that levelsOf assumes. Events after a sentence wait
// for its end. Without Options.Loudness, each event is published as soon as it is added.
type playback struct {
	server       *Server
	conversation conversation

	mu      sync.Mutex
	mouth   *voice.Mouth
	waiting []playedEvent
	until   time.Time   // end of the latest published sentence
	timer   *time.Timer // calls advance
	ended   bool        // whether the end of the turn was published
	began   time.Time
}

// maxPlaying is the maximum number of playbacks in progress. A program whose turns end faster than
// their playbacks could otherwise start any number of them.
const maxPlaying = 64

// playedEvent is an event of a turn.
type playedEvent struct {
	event.Event
	until time.Time // when the client will have played the sound of this sentence; zero if that is unknown
}

// startPlayback returns the playback of a new turn. It skips the rest of the conversation's previous
// playback. If the conversation has none, and maxPlaying playbacks are in progress, it skips the rest of
// the oldest.
func (s *Server) startPlayback(c conversation) *playback {
	p := &playback{server: s, conversation: c, began: time.Now(), mouth: cmp.Or(s.o.Loudness, &voice.Loudness{}).Mouth(c.session)}
	p.timer = time.AfterFunc(time.Hour, p.advance)
	s.mu.Lock()
	previous := s.playing[c.key]
	if previous == nil && len(s.playing) >= maxPlaying {
		previous = slices.MinFunc(slices.Collect(maps.Values(s.playing)), func(a, b *playback) int { return a.began.Compare(b.began) })
		delete(s.playing, previous.conversation.key)
	}
	s.playing[c.key] = p
	s.mu.Unlock()
	if previous != nil {
		previous.skip()
	}
	return p
}

// add publishes an event once the sentences before it have been spoken.
func (p *playback) add(e event.Event) {
	played := playedEvent{Event: e}
	if _, ok := e.(event.Said); ok && p.server.o.Loudness != nil {
		played.until = p.server.o.Loudness.End(p.conversation.session)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, played)
	p.publishDue()
}

// skip drops the events that dropSpeech drops, and publishes the other waiting events at once.
func (p *playback) skip() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
	p.dropSpeech()
	p.publishDue()
}

// dropSpeech drops all waiting events except the status of tools and the end of the turn. p.mu must be
// held.
func (p *playback) dropSpeech() {
	p.waiting = slices.DeleteFunc(p.waiting, func(e playedEvent) bool {
		switch e.Event.(type) {
		case event.ToolStatus, event.TurnEnded:
			return false
		}
		return true
	})
}

// advance publishes the events that are due.
func (p *playback) advance() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishDue()
}

// publishDue publishes the events that are due, and sets the timer. p.mu must be held.
func (p *playback) publishDue() {
	now := time.Now()
	if hasSound := func(e playedEvent) bool { return e.until.After(now) }; slices.ContainsFunc(p.waiting, hasSound) &&
		p.server.o.Loudness.End(p.conversation.session).IsZero() {
		p.dropSpeech() // the client no longer plays its sound, because somebody has interrupted it
	}
	for len(p.waiting) > 0 && !p.ended && !now.Before(p.until) {
		e := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.server.o.Bus.Publish("", p.conversation.session, e.Event)
		switch b := e.Event.(type) {
		case event.Said:
			p.beginSentence(b.Text, e.until, now)
		case event.TurnEnded:
			p.close()
		}
	}
	if p.ended {
		return
	}
	wait := p.mouth.Update(now)
	if len(p.waiting) > 0 {
		wait = min(wait, p.until.Sub(now))
	}
	p.timer.Reset(wait)
}

// beginSentence sets p.until to the end of a sentence that begins now, and moves the mouth if the client plays
// no sound. It does nothing without Options.Loudness. soundUntil is as in playedEvent.
func (p *playback) beginSentence(text string, soundUntil, now time.Time) {
	switch {
	case p.server.o.Loudness == nil:
	case soundUntil.After(now):
		p.until = soundUntil
	default:
		levels := levelsOf(text)
		p.until = now.Add(time.Duration(len(levels)) * voice.LevelDuration)
		p.mouth.Queue(levels, p.until)
	}
}

// close ends the playback. p.mu must be held.
func (p *playback) close() {
	p.ended = true
	p.timer.Stop()
	p.mouth.Shut()
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.playing[p.conversation.key] == p {
		delete(s.playing, p.conversation.key)
	}
}

// levelsOf returns how far a mouth is open while it says text, one level per voice.LevelDuration.
// It assumes 60 ms for a letter, digit or space, 120 ms for a Chinese, Japanese or Korean character, and
// 180 ms for a punctuation mark.
func levelsOf(text string) (levels []float64) {
	for _, r := range strings.ToLower(text) {
		switch {
		case strings.ContainsRune("aàáâäåæoòóôöø", r):
			levels = append(levels, 0.8, 0.7)
		case strings.ContainsRune("eèéêëiìíîïuùúûüy", r):
			levels = append(levels, 0.5, 0.4)
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			levels = append(levels, 0.4, 0.8, 0.6, 0.2)
		case unicode.IsLetter(r), unicode.IsDigit(r):
			levels = append(levels, 0.2, 0.2)
		case unicode.IsPunct(r):
			levels = append(levels, 0, 0, 0, 0, 0, 0)
		default:
			levels = append(levels, 0, 0)
		}
	}
	return levels
}
