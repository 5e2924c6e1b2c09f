package robot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/transcript"
	"perch/voice"
)

// How the firmware wants to be spoken to.
const (
	// startGap is between tts start and the first packet. The robot enters
	// its speaking state asynchronously and empties its queue on entry; what
	// arrives within those milliseconds is lost. restGap is the same for the
	// packets after it: a robot whose screen keeps it for longer loses the first
	// 60 ms, most of which no voice uses, and not all that is sent ahead.
	startGap = 14 * time.Millisecond
	restGap  = 60 * time.Millisecond
	// playTail is for what the robot still has in its codec when the clock
	// shows that the last packet was played. Up to v2.1.0 tts stop cuts it off.
	playTail = 120 * time.Millisecond
	// mostAtOnce packets leave within burstTime, however many are due: a robot's
	// mailbox for datagrams holds six, and what comes while it is full is lost. Over a
	// WebSocket, which loses nothing, the delay is too short to be noticed.
	mostAtOnce = 5
	burstTime  = 10 * time.Millisecond
)

// writer is the only one that sends on a channel, and the one that owns time.
// It has two lanes: now, which never waits, and the current playback, which
// leaves when it is due by the pacer.
type writer struct {
	transport transport
	session   string
	now       chan xiaozhi.ToRobot
	current   atomic.Pointer[playback]
	changed   chan struct{}              // poked when current was replaced
	echo      atomic.Pointer[voice.Echo] // gets what is played; nil where the robot cancels its echo
	board     string
	queue     int // packets that the robot holds
	tap       *transcript.Tap
	buf       []byte
	stamp     uint32                // of the latest packet, milliseconds
	left      [mostAtOnce]time.Time // when the latest packets were sent, the oldest first
	shown     agent.Emotion         // the face the robot wears, as far as we know; zero is unknown
	free      time.Time             // when speech that was cut off has run out in the robot
	audible   bool                  // the echo canceller does not know of that yet
	heard     bool                  // sound reaches the robot
	unheard   time.Time             // since when speech has waited for that; zero where it has not
	playing   playing
	loudness  *voice.Loudness
	robot     device.ID
	mouth     *voice.Mouth // while it runs
}

// playing is the playback that the writer plays, and how far it has come.
type playing struct {
	playback *playback
	pacer    voice.Pacer
	begun    bool   // between tts start and tts stop
	pending  string // the sentence whose first packet has not left
	waits    bool   // pending is set
	since    time.Time
	felt     agent.Emotion // the face that belongs to what is spoken; zero is none
}

// nowLane is how many messages may wait to be sent at once; more mean that
// the robot does not read, and end the session.
const nowLane = 64

func newWriter(t transport, session string, r device.Robot, tap *transcript.Tap, all *voice.Loudness) *writer {
	return &writer{transport: t, session: session, board: r.Board, queue: decodeQueueOf(r), tap: tap,
		now: make(chan xiaozhi.ToRobot, nowLane), changed: make(chan struct{}, 1), loudness: all, robot: r.ID}
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
	w.mouth = w.loudness.Mouth(string(w.robot))
	defer w.mouth.Close()
	for {
		if err := w.drainNow(); err != nil {
			return err
		}
		wait, news, err := w.advance()
		if err != nil {
			return err
		}
		now := time.Now()
		timer.Reset(min(wait, w.runOut(now), w.mouth.Follow(now)))
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
	switch m := m.(type) {
	case xiaozhi.LLM:
		w.shown = agent.Emotion{Name: m.Emotion, Emoji: m.Text}
		m.Emotion = agent.Emotion{Name: m.Emotion, Emoji: m.Text}.On(w.board).Name
		return w.send(m)
	case xiaozhi.STT, xiaozhi.Alert:
		w.shown = agent.Emotion{} // some builds change their face by themselves
	case xiaozhi.TTSStop:
		w.shown = agent.Neutral // which is how every build listens
	}
	return w.send(m)
}

func (w *writer) send(m xiaozhi.ToRobot) error {
	w.buf = xiaozhi.AppendToRobot(w.buf[:0], w.session, m)
	w.tap.ToRobot(w.buf)
	if err := w.transport.SendText(w.buf); err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

// face has the robot wear the face that belongs to what is spoken: one message
// for each change, before the sentence it belongs to.
func (w *writer) face() error {
	if w.playing.felt == (agent.Emotion{}) || w.playing.felt == w.shown {
		return nil
	}
	return w.text(xiaozhi.LLM{Emotion: w.playing.felt.Name, Text: w.playing.felt.Emoji})
}

const forever = time.Hour

// advance sends what of the playback is due, and returns how long there is
// nothing to do and a channel that may end that sooner.
func (w *writer) advance() (wait time.Duration, news <-chan struct{}, err error) {
	p := w.current.Load()
	if p != w.playing.playback {
		w.cutOff(time.Now())
		w.playing = playing{playback: p, pacer: voice.Pacer{Queue: w.queue}}
	}
	if len(w.now) > 0 {
		return 0, nil, nil // the tts stop of the playback before leaves first
	}
	if p == nil {
		return forever, nil, nil
	}
	if p.restart() {
		if err := w.restart(); err != nil {
			return 0, nil, err
		}
	}
	for {
		now := time.Now() // sending the item before may have taken a while
		it, atOnce, there := p.peek()
		if !there {
			return forever, p.news, nil
		}
		if wait, until := w.inaudible(it, now); wait > 0 {
			return wait, until, nil
		}
		if due := w.due(it); now.Before(due) && !atOnce {
			return due.Sub(now), p.news, nil
		}
		if err := w.perform(p, it, now); err != nil {
			return 0, nil, err
		}
		p.take(w.playing.pacer.Played())
		if len(w.now) > 0 || w.current.Load() != p {
			return 0, nil, nil // the other lane first
		}
	}
}

// cutOff notes how long the robot still plays what it was sent. Builds up to 2.3
// play their queue to the end after tts stop, and meanwhile drop what arrives.
func (w *writer) cutOff(now time.Time) {
	w.mouth.Shut()
	if played := w.playing.pacer.Played(); played.After(now) {
		w.free, w.audible = played.Add(playTail), true
	}
}

// runOut notifies the echo canceller when cut-off speech is over, and returns when.
func (w *writer) runOut(now time.Time) time.Duration {
	if !w.audible {
		return forever
	}
	if wait := w.free.Sub(now); wait > 0 {
		return wait
	}
	w.silence()
	return forever
}

// silence notifies the echo canceller that none of our sound will be heard.
func (w *writer) silence() {
	w.audible = false
	if echo := w.echo.Load(); echo != nil {
		echo.Silence()
	}
}

// due is when an item may leave.
func (w *writer) due(it item) time.Time {
	switch {
	case it.sentence != nil && !w.playing.begun:
		return w.free
	case it.packet != nil:
		due := w.playing.pacer.Due()
		least := w.playing.since.Add(restGap)
		if due.IsZero() {
			least = w.playing.since.Add(startGap)
		}
		if spread := w.left[0].Add(burstTime); least.Before(spread) {
			least = spread
		}
		if due.Before(least) {
			return least
		}
		return due
	case it.pause != nil || it.end:
		if played := w.playing.pacer.Played(); !played.IsZero() {
			return played.Add(playTail)
		}
	}
	return time.Time{}
}

// audibleWithin is how long speech waits for a robot whose sound has no way yet. It
// does not go on for ever: what is said is shown as well.
const audibleWithin = 2 * time.Second

// inaudible is how long an item has to wait until the robot can hear, and a channel
// that ends that sooner. A robot that is made to speak closes its microphone, and
// only what that sends shows where its sound goes.
func (w *writer) inaudible(it item, now time.Time) (wait time.Duration, until <-chan struct{}) {
	if it.sentence == nil || w.playing.begun || w.heard {
		return 0, nil
	}
	until = w.transport.Audible()
	select {
	case <-until:
		w.heard = true
	default:
		w.heard = until == nil
	}
	if w.heard {
		return 0, nil
	}
	if w.unheard.IsZero() {
		w.unheard = now
	}
	return w.unheard.Add(audibleWithin).Sub(now), until
}

// perform sends an item. The progress is noted before it leaves: a robot may
// answer at once, and the loop must know the progress by then.
func (w *writer) perform(p *playback, it item, now time.Time) error {
	switch {
	case it.face != nil:
		w.playing.felt = *it.face
		return w.face()
	case it.gesture != nil:
		p.note(func(r *playbackProgress) { r.gesture = *it.gesture })
		return nil
	case it.sentence != nil:
		return w.sentence(p, *it.sentence)
	case it.packet != nil:
		return w.packet(p, it, now)
	case it.pause != nil:
		p.note(func(r *playbackProgress) { r.paused, r.stopped, r.askFor = true, true, *it.pause })
		return w.stop(p)
	}
	p.note(func(r *playbackProgress) { r.drained = true })
	return w.stop(p)
}

// sentence shows a sentence, and makes the robot speak before the first.
// Every build enters its speaking state by then, whichever of the two messages
// it goes by; no sooner than the two have left.
func (w *writer) sentence(p *playback, text string) error {
	if err := w.face(); err != nil { // a question in between has taken it off
		return err
	}
	if !w.playing.begun && !p.speak() {
		return nil
	}
	w.playing.pending, w.playing.waits = text, true
	if w.playing.begun {
		return w.text(xiaozhi.SentenceStart{Text: text})
	}
	w.playing.begun = true
	// A pause the loop has not looked at yet is over.
	p.note(func(r *playbackProgress) { r.started, r.paused = true, false })
	return w.restart()
}

// restart makes a robot speak, and changes nothing for one that does already.
func (w *writer) restart() error {
	if err := w.text(xiaozhi.TTSStart{}); err != nil {
		return err
	}
	if err := w.text(xiaozhi.SentenceStart{Text: w.playing.pending}); err != nil {
		return err
	}
	w.playing.since = time.Now()
	return nil
}

func (w *writer) packet(p *playback, it item, now time.Time) error {
	first := w.playing.pacer.Played().IsZero()
	// Each packet's timestamp is its own: a robot that leaves echo cancellation
	// to us names by it which one its microphone heard.
	w.stamp += uint32(voice.FrameDuration / time.Millisecond)
	if echo := w.echo.Load(); echo != nil {
		echo.Sent(w.stamp, it.packet)
	}
	if first || w.playing.waits {
		text, waits := w.playing.pending, w.playing.waits
		w.playing.waits = false
		p.note(func(r *playbackProgress) {
			if first {
				r.began, r.first = true, now
			}
			if waits && text != "" { // else it is a sound
				r.spoken = append(r.spoken, text)
			}
		})
	}
	w.tap.PacketToRobot()
	if err := w.transport.SendAudio(xiaozhi.Audio{Timestamp: w.stamp, Opus: it.packet}); err != nil {
		return fmt.Errorf("send audio: %w", err)
	}
	copy(w.left[:], w.left[1:])
	w.left[mostAtOnce-1] = now
	w.playing.pacer.Sent(now)
	w.mouth.Will(it.levels[:], w.playing.pacer.Played())
	return nil
}

// stop ends speech, where there was any.
func (w *writer) stop(p *playback) error {
	w.playing.pacer = voice.Pacer{Queue: w.queue}
	if !w.playing.begun {
		return nil
	}
	w.playing.begun = false
	w.mouth.Shut()
	w.silence()
	p.silent()
	return w.text(xiaozhi.TTSStop{})
}

// What a robot's decode queue holds, in packets.
const (
	longQueue  = 40 // from xiaozhi 1.6.6 to 2.4.2
	shortQueue = 20 // since 2.5.0
)

// decodeQueueOf is how many packets fit into a robot's queue. The maker's versions
// for the Stack-chan are below 2: 1.2 is xiaozhi's 2.2.4, a later one may be any.
// An unknown one gets the short queue.
func decodeQueueOf(r device.Robot) int {
	major, minor, ok := versionOf(r.Firmware)
	switch {
	case !ok:
		return shortQueue
	case major == 1 && strings.Contains(r.Board, "stack-chan"):
		if minor <= 2 {
			return longQueue
		}
	case major < 2, major == 2 && minor < 5:
		return longQueue
	}
	return shortQueue
}

// versionOf reads the first two parts of a version, "2.4.2".
func versionOf(version string) (major, minor int, ok bool) {
	first, rest, dotted := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil || !dotted {
		return major, 0, err == nil
	}
	second, _, _ = strings.Cut(second, "-")
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
