package robot

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// How the firmware wants to be spoken to.
const (
	// startGap is between tts start and the first packet. The robot enters
	// its speaking state asynchronously and empties its queue on entry; what
	// arrives within those milliseconds is lost.
	startGap = 60 * time.Millisecond
	// playTail is for what the robot still has in its codec when the clock
	// says that the last packet was played. Up to v2.1.0 tts stop cuts it off.
	playTail = 120 * time.Millisecond
)

// writer is the only one that sends on a channel, and the one that owns time.
// It has two lanes: now, which never waits, and the current playback, which
// leaves when the pacer says.
type writer struct {
	transport transport
	session   string
	now       chan xiaozhi.ToRobot
	current   atomic.Pointer[playback]
	changed   chan struct{} // poked when current was replaced
	buf       []byte

	// Of the playback being played.
	playing *playback
	pacer   voice.Pacer
	begun   bool   // between tts start and tts stop
	pending string // the sentence whose first packet has not left
	waits   bool   // pending is set
	since   time.Time
}

// nowLane is how many messages may wait to be sent at once; more mean that
// the robot does not read, and end the session.
const nowLane = 64

func newWriter(t transport, session string) *writer {
	return &writer{transport: t, session: session, now: make(chan xiaozhi.ToRobot, nowLane), changed: make(chan struct{}, 1)}
}

// play replaces what is being played; nil plays nothing.
func (w *writer) play(p *playback) {
	w.current.Store(p)
	poke(w.changed)
}

// run sends until ctx ends or the transport fails. What waits in the now lane
// when ctx ends still leaves: the last tts stop, say.
func (w *writer) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case m := <-w.now:
			if err := w.text(m); err != nil {
				return err
			}
			continue
		default:
		}
		wait, news, err := w.advance(time.Now())
		if err != nil {
			return err
		}
		timer.Reset(wait)
		select {
		case m := <-w.now:
			if err := w.text(m); err != nil {
				return err
			}
		case <-w.changed:
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			return w.drainNow()
		}
	}
}

func (w *writer) drainNow() error {
	for {
		select {
		case m := <-w.now:
			if err := w.text(m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (w *writer) text(m xiaozhi.ToRobot) error {
	w.buf = xiaozhi.AppendToRobot(w.buf[:0], w.session, m)
	if err := w.transport.SendText(w.buf); err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

const forever = time.Hour

// advance sends what of the playback is due, and returns how long there is
// nothing to do and a channel that may end that sooner.
func (w *writer) advance(now time.Time) (wait time.Duration, news <-chan struct{}, err error) {
	p := w.current.Load()
	if p != w.playing {
		w.playing, w.pacer, w.begun, w.waits = p, voice.Pacer{}, false, false
	}
	if len(w.now) > 0 {
		return 0, nil, nil // the tts stop of the playback before leaves first
	}
	if p == nil {
		return forever, nil, nil
	}
	for {
		it, there := p.peek()
		if !there {
			return forever, p.news, nil
		}
		if due := w.due(it); now.Before(due) {
			return due.Sub(now), nil, nil
		}
		if err := w.perform(p, it, now); err != nil {
			return 0, nil, err
		}
		p.take()
		if len(w.now) > 0 || w.current.Load() != p {
			return 0, nil, nil // the other lane first
		}
	}
}

// due is when an item may leave.
func (w *writer) due(it item) time.Time {
	switch {
	case it.packet != nil:
		if due := w.pacer.Due(); !due.IsZero() {
			return due
		}
		return w.since.Add(startGap)
	case it.pause != nil || it.end:
		if played := w.pacer.Played(); !played.IsZero() {
			return played.Add(playTail)
		}
	}
	return time.Time{}
}

func (w *writer) perform(p *playback, it item, now time.Time) error {
	switch {
	case it.face != nil:
		return w.text(xiaozhi.LLM{Emotion: it.face.Name, Text: it.face.Emoji})
	case it.sentence != nil:
		return w.sentence(p, *it.sentence, now)
	case it.packet != nil:
		return w.packet(p, it.packet, now)
	case it.pause != nil:
		if err := w.stop(p); err != nil {
			return err
		}
		p.note(func(r *progress) { r.paused, r.askFor = true, *it.pause })
	default:
		if err := w.stop(p); err != nil {
			return err
		}
		p.note(func(r *progress) { r.drained = true })
	}
	return nil
}

// sentence shows a sentence, and makes the robot speak before the first.
// Every build enters its speaking state by then, whichever of the two messages
// it goes by.
func (w *writer) sentence(p *playback, text string, now time.Time) error {
	if !w.begun {
		if !p.speak() {
			return nil
		}
		if err := w.text(xiaozhi.TTSStart{}); err != nil {
			return err
		}
		w.begun, w.since = true, now
		// A pause the loop has not looked at yet is over.
		p.note(func(r *progress) { r.started, r.paused = true, false })
	}
	w.pending, w.waits = text, true
	return w.text(xiaozhi.SentenceStart{Text: text})
}

func (w *writer) packet(p *playback, packet []byte, now time.Time) error {
	first := w.pacer.Played().IsZero()
	stamp := uint32(now.UnixMilli())
	if err := w.transport.SendAudio(xiaozhi.Audio{Timestamp: stamp, Opus: packet}); err != nil {
		return fmt.Errorf("send audio: %w", err)
	}
	w.pacer.Sent(now)
	if first || w.waits {
		text, waits := w.pending, w.waits
		w.waits = false
		p.note(func(r *progress) {
			if first {
				r.began, r.first = true, now
			}
			if waits {
				r.said = append(r.said, text)
			}
		})
	}
	return nil
}

// stop ends speech, where there was any.
func (w *writer) stop(p *playback) error {
	w.pacer = voice.Pacer{}
	if !w.begun {
		return nil
	}
	w.begun = false
	p.silent()
	return w.text(xiaozhi.TTSStop{})
}
