package playback

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/voice"
)

// Output is a robot's channel. One goroutine calls the methods.
type Output interface {
	SendText(text []byte) error
	SendAudio(a xiaozhi.Audio) error
	// Audible is closed once sound reaches the robot; it is nil if it always does.
	Audible() <-chan struct{}
}

// tap records what is sent, for a transcript.
type tap interface {
	ToRobot(text []byte)
	PacketToRobot()
}

// How the firmware wants to be spoken to.
const (
	// startGap is between tts start and the first packet. The robot enters its speaking state
	// asynchronously and empties its queue on entry; what arrives within those milliseconds is
	// lost. restGap is the same for the packets after it: a robot whose screen delays it for longer
	// loses the first 60 ms, which are mostly silent, and not all that is sent ahead.
	startGap = 14 * time.Millisecond
	restGap  = 60 * time.Millisecond
	// playTail is for what the robot still has in its codec when the clock shows that the last
	// packet was played. Up to v2.1.0 tts stop cuts it off.
	playTail = 120 * time.Millisecond
	// mostAtOnce packets leave within burstTime, however many are due: a robot's mailbox for
	// datagrams holds six, and what comes while it is full is lost. Over a WebSocket, which loses
	// nothing, the delay is too short to be noticed.
	mostAtOnce = 5
	burstTime  = 10 * time.Millisecond
)

// lanes are what the session's loop gives the sender: messages that leave at once, and the speech
// that leaves when the pacer says so.
type lanes struct {
	now     chan order
	current atomic.Pointer[queue]
	changed chan struct{}              // has one slot, filled when current was replaced
	echo    atomic.Pointer[voice.Echo] // is given what is played; nil if the robot cancels its echo
}

// order is a message that leaves at once, or else makes a robot speak again.
type order struct {
	message xiaozhi.ToRobot
	restart *queue
}

// nowLane is how many messages may wait to be sent at once. If more do, the robot does not read.
const nowLane = 64

// play replaces the speech; nil means none.
func (l *lanes) play(q *queue) {
	l.current.Store(q)
	poke(l.changed)
}

// send queues an order. It returns false if the lane is full.
func (l *lanes) send(o order) bool {
	select {
	case l.now <- o:
		return true
	default:
		return false
	}
}

// sender sends on a channel, and decides when. One goroutine runs it.
type sender struct {
	lanes
	out     Output
	session string
	board   string
	depth   int // packets that the robot holds
	tap     tap
	mouth   *voice.Mouth

	buf     []byte
	stamp   uint32                // of the latest packet, milliseconds
	left    [mostAtOnce]time.Time // when the latest packets were sent, the oldest first
	shown   agent.Emotion         // the robot's face, as far as we know; zero is unknown
	free    time.Time             // when speech that was cut off has run out in the robot
	audible bool                  // the echo canceller does not know of that yet
	heard   bool                  // sound reaches the robot
	unheard time.Time             // since when speech has waited for that; zero if it has not
	playing playing
}

// playing is the speech that is being sent, and how far it has come.
type playing struct {
	queue   *queue
	pacer   voice.Pacer
	begun   bool   // between tts start and tts stop
	pending string // the sentence whose first packet has not left
	waits   bool   // pending is set
	since   time.Time
	felt    agent.Emotion // the face that belongs to what is spoken; zero means none
}

// run sends until ctx ends or the channel fails. Messages that wait when ctx ends still leave: the
// last tts stop, say.
func (s *sender) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := s.sendOrders(); err != nil {
			return err
		}
		wait, changed, err := s.sendDue()
		if err != nil {
			return err
		}
		now := time.Now()
		timer.Reset(min(wait, s.runOut(now), s.mouth.Update(now)))
		select {
		case o := <-s.now:
			if err := s.carryOut(o); err != nil {
				return err
			}
		case <-s.changed:
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return s.sendOrders()
		}
	}
}

// sendOrders empties the lane of now.
func (s *sender) sendOrders() error {
	for {
		select {
		case o := <-s.now:
			if err := s.carryOut(o); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (s *sender) carryOut(o order) error {
	switch {
	case o.message != nil:
		return s.message(o.message)
	case o.restart == s.playing.queue && o.restart == s.current.Load() && s.playing.begun:
		return s.start()
	}
	return nil
}

// message sends a message, and follows which face it makes the robot show.
func (s *sender) message(m xiaozhi.ToRobot) error {
	switch m := m.(type) {
	case xiaozhi.LLM:
		s.shown = agent.Emotion{Name: m.Emotion, Emoji: m.Text}
		m.Emotion = s.shown.On(s.board).Name
		return s.write(m)
	case xiaozhi.STT, xiaozhi.Alert:
		s.shown = agent.Emotion{} // some builds change their face by themselves
	case xiaozhi.TTSStop:
		s.shown = agent.Neutral // which is how every build listens
	}
	return s.write(m)
}

func (s *sender) write(m xiaozhi.ToRobot) error {
	s.buf = xiaozhi.AppendToRobot(s.buf[:0], s.session, m)
	s.tap.ToRobot(s.buf)
	if err := s.out.SendText(s.buf); err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

const forever = time.Hour

// sendDue sends what is due of the speech. It returns how long nothing else is, and a channel that
// may end that sooner.
func (s *sender) sendDue() (wait time.Duration, changed <-chan struct{}, err error) {
	q := s.current.Load()
	if q != s.playing.queue {
		s.cutOff(time.Now())
		s.playing = playing{queue: q, pacer: voice.Pacer{Queue: s.depth}}
	}
	if len(s.now) > 0 {
		return 0, nil, nil // the tts stop of the speech before leaves first
	}
	if q == nil {
		return forever, nil, nil
	}
	for {
		now := time.Now() // sending the item before may have taken a while
		it, atOnce, ok := q.first()
		if !ok {
			return forever, q.added, nil
		}
		if wait, until := s.inaudible(it, now); wait > 0 {
			return wait, until, nil
		}
		if due := s.dueAt(it); now.Before(due) && !atOnce {
			return due.Sub(now), q.added, nil
		}
		if err := s.perform(q, it, now); err != nil {
			return 0, nil, err
		}
		q.removeFirst(s.playing.pacer.Played())
		if len(s.now) > 0 || s.current.Load() != q {
			return 0, nil, nil // the other lane first
		}
	}
}

// cutOff records how long the robot still plays what it was sent. Builds up to 2.3 play their
// queue to the end after tts stop, and drop what arrives until then.
func (s *sender) cutOff(now time.Time) {
	s.mouth.Shut()
	if played := s.playing.pacer.Played(); played.After(now) {
		s.free, s.audible = played.Add(playTail), true
	}
}

// runOut notifies the echo canceller when cut-off speech is over, and returns in how long that is.
func (s *sender) runOut(now time.Time) time.Duration {
	if !s.audible {
		return forever
	}
	if wait := s.free.Sub(now); wait > 0 {
		return wait
	}
	s.silence()
	return forever
}

// silence notifies the echo canceller that none of our sound will be heard.
func (s *sender) silence() {
	s.audible = false
	if echo := s.echo.Load(); echo != nil {
		echo.Silence()
	}
}

// dueAt returns when an item may leave.
func (s *sender) dueAt(it item) time.Time {
	switch {
	case it.sentence != nil && !s.playing.begun:
		return s.free
	case it.packet != nil:
		due := s.playing.pacer.NextSend()
		least := s.playing.since.Add(restGap)
		if due.IsZero() {
			least = s.playing.since.Add(startGap)
		}
		if spread := s.left[0].Add(burstTime); least.Before(spread) {
			least = spread
		}
		if due.Before(least) {
			return least
		}
		return due
	case it.pause != nil || it.end:
		if played := s.playing.pacer.Played(); !played.IsZero() {
			return played.Add(playTail)
		}
	}
	return time.Time{}
}

// audibleWithin is how long speech waits for a robot that sound does not reach yet. It does not
// wait for ever: what is said is shown as well.
const audibleWithin = 2 * time.Second

// inaudible returns how long an item has to wait until the robot can hear, and a channel that ends
// that sooner. A robot that is made to speak closes its microphone, and only what that sends shows
// where its sound goes.
func (s *sender) inaudible(it item, now time.Time) (wait time.Duration, until <-chan struct{}) {
	if it.sentence == nil || s.playing.begun || s.heard {
		return 0, nil
	}
	until = s.out.Audible()
	select {
	case <-until:
		s.heard = true
	default:
		s.heard = until == nil
	}
	if s.heard {
		return 0, nil
	}
	if s.unheard.IsZero() {
		s.unheard = now
	}
	return s.unheard.Add(audibleWithin).Sub(now), until
}

// perform sends an item. It records the progress before the item leaves: a robot may answer at
// once, and the loop must know the progress by then.
func (s *sender) perform(q *queue, it item, now time.Time) error {
	switch {
	case it.face != nil:
		s.playing.felt = *it.face
		return s.face()
	case it.gesture != nil:
		q.record(func(r *Progress) { r.Gesture = *it.gesture })
		return nil
	case it.sentence != nil:
		return s.sentence(q, *it.sentence)
	case it.packet != nil:
		return s.packet(q, it, now)
	case it.pause != nil:
		q.record(func(r *Progress) { r.Paused, r.Stopped, r.AskFor = true, true, *it.pause })
		return s.stop(q)
	}
	q.record(func(r *Progress) { r.Drained = true })
	return s.stop(q)
}

// face shows the face that belongs to what is spoken: one message for each change, before the
// sentence it belongs to.
func (s *sender) face() error {
	if s.playing.felt == (agent.Emotion{}) || s.playing.felt == s.shown {
		return nil
	}
	return s.message(xiaozhi.LLM{Emotion: s.playing.felt.Name, Text: s.playing.felt.Emoji})
}

// sentence shows a sentence, and makes the robot speak before the first. Every build enters its
// speaking state by then, whichever of the two messages it goes by; no sooner than both have left.
func (s *sender) sentence(q *queue, text string) error {
	if err := s.face(); err != nil { // a question in between has changed it
		return err
	}
	if !s.playing.begun && !q.start() {
		return nil
	}
	s.playing.pending, s.playing.waits = text, true
	if s.playing.begun {
		return s.message(xiaozhi.SentenceStart{Text: text})
	}
	s.playing.begun = true
	// A pause that the loop has not seen yet is over.
	q.record(func(r *Progress) { r.Started, r.Paused = true, false })
	return s.start()
}

// start makes a robot speak, and changes nothing if it does already.
func (s *sender) start() error {
	if err := s.message(xiaozhi.TTSStart{}); err != nil {
		return err
	}
	if err := s.message(xiaozhi.SentenceStart{Text: s.playing.pending}); err != nil {
		return err
	}
	s.playing.since = time.Now()
	return nil
}

func (s *sender) packet(q *queue, it item, now time.Time) error {
	first := s.playing.pacer.Played().IsZero()
	// Each packet has its own timestamp: a robot that leaves echo cancellation to us names by
	// it which packet its microphone heard.
	s.stamp += uint32(voice.FrameDuration / time.Millisecond)
	if echo := s.echo.Load(); echo != nil {
		echo.Sent(s.stamp, it.packet)
	}
	if first || s.playing.waits {
		text, waits := s.playing.pending, s.playing.waits
		s.playing.waits = false
		q.record(func(r *Progress) {
			if first {
				r.Began, r.First = true, now
			}
			if waits && text != "" { // else it is a sound
				r.Spoken = append(r.Spoken, text)
			}
		})
	}
	s.tap.PacketToRobot()
	if err := s.out.SendAudio(xiaozhi.Audio{Timestamp: s.stamp, Opus: it.packet}); err != nil {
		return fmt.Errorf("send audio: %w", err)
	}
	copy(s.left[:], s.left[1:])
	s.left[mostAtOnce-1] = now
	s.playing.pacer.Sent(now)
	s.mouth.Queue(it.levels[:], s.playing.pacer.Played())
	return nil
}

// stop ends speech, if there was any.
func (s *sender) stop(q *queue) error {
	s.playing.pacer = voice.Pacer{Queue: s.depth}
	if !s.playing.begun {
		return nil
	}
	s.playing.begun = false
	s.mouth.Shut()
	s.silence()
	q.stop()
	return s.message(xiaozhi.TTSStop{})
}
