package playback

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/gateway/robot/transport"
	"perch/voice"
)

// tap records messages and packets for a transcript.
type tap interface {
	ToRobot(text []byte)
	PacketToRobot()
}

// Times and limits that the firmware requires.
const (
	// startGap is the minimum time between tts start and the first packet. The robot enters its speaking state
	// asynchronously and then empties its decode queue, so a packet that arrives earlier is lost.
	startGap = 14 * time.Millisecond
	// restGap is the minimum time between tts start and the second packet. If drawing on its screen delays a
	// robot for longer than startGap, only the first packet is lost, which is mostly silent.
	restGap = 60 * time.Millisecond
	// playTail is how long a robot still plays the sound in its audio hardware after the pacer (see
	// voice.Pacer) has counted the last packet as played. Firmware up to 2.1.0 cuts that sound off when tts
	// stop arrives.
	playTail = 120 * time.Millisecond
	// maxBurst is how many packets are sent within burstTime: a robot stores six datagrams, and loses further
	// datagrams that arrive while it has no room. Over a WebSocket, which loses nothing, the delay is too
	// short to notice.
	maxBurst  = 5
	burstTime = 10 * time.Millisecond
)

// handover is what the session's loop passes to the sender: messages, which are sent at once, and the speech,
// which is sent at the times of the pacer.
type handover struct {
	orders  chan order
	current atomic.Pointer[queue]      // speech to send; nil if no speech is under way
	changed chan struct{}              // has one slot, filled when current is replaced
	echo    atomic.Pointer[voice.Echo] // receives the packets sent; nil if the appliance does not cancel the robot's echo
}

// order is a message to send at once, or a speech whose tts start is sent again. Both fields are nil if there
// was no speech to restart.
type order struct {
	message xiaozhi.ToRobot
	restart *queue
}

// maxOrders is how many orders may wait. There are more only if the robot does not read.
const maxOrders = 64

// setSpeech replaces the speech. nil removes it.
func (h *handover) setSpeech(q *queue) {
	h.current.Store(q)
	notify(h.changed)
}

// send queues an order. It returns false if too many wait.
func (h *handover) send(o order) bool {
	select {
	case h.orders <- o:
		return true
	default:
		return false
	}
}

// sender sends messages and speech on a channel. Only the goroutine of run uses the fields besides handover.
type sender struct {
	handover
	out     transport.Transport
	session string
	board   string
	depth   int // length of the robot's decode queue, in packets
	tap     tap
	mouth   *voice.Mouth

	buf          []byte
	timestamp    uint32              // timestamp of the latest packet, in milliseconds
	sentAt       [maxBurst]time.Time // when the latest packets were sent, oldest first
	face         agent.Emotion       // face that the robot shows; zero if unknown
	silentAt     time.Time           // when the robot will have played speech that was cut off; zero if none was cut off yet
	silenceDue   bool                // the echo canceller must be notified at silentAt
	reachable    bool                // sound can reach the robot
	waitingSince time.Time           // when the session's first speech began to wait for reachable; zero if none has waited
	playing      playing
}

// playing is the speech being sent, and its progress.
type playing struct {
	queue      *queue
	pacer      voice.Pacer
	begun      bool          // tts start was sent, and tts stop was not
	startedAt  time.Time     // when tts start was last sent
	pending    string        // sentence shown last; see hasPending
	hasPending bool          // no packet of pending was sent yet
	face       agent.Emotion // face that goes with the speech; zero means that the speech sets no face
}

// run implements Player.Run.
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
		timer.Reset(min(wait, s.endCutOff(now), s.mouth.Update(now)))
		select {
		case o := <-s.orders:
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

// sendOrders carries out the orders that wait.
func (s *sender) sendOrders() error {
	for {
		select {
		case o := <-s.orders:
			if err := s.carryOut(o); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// carryOut carries out an order. It ignores the restart of a speech that is not the current one, or that is
// not between tts start and tts stop.
func (s *sender) carryOut(o order) error {
	switch {
	case o.message != nil:
		return s.sendMessage(o.message)
	case o.restart == s.playing.queue && o.restart == s.current.Load() && s.playing.begun:
		return s.start()
	}
	return nil
}

// sendMessage sends a message, and updates the robot's face.
func (s *sender) sendMessage(m xiaozhi.ToRobot) error {
	switch m := m.(type) {
	case xiaozhi.LLM:
		s.face = agent.Emotion{Name: m.Emotion, Emoji: m.Text}
		m.Emotion = s.face.On(s.board).Name
		return s.write(m)
	case xiaozhi.STT, xiaozhi.Alert:
		s.face = agent.Emotion{} // some firmware builds change the face for these messages
	case xiaozhi.TTSStop:
		s.face = agent.Neutral // the face with which every build listens
	}
	return s.write(m)
}

// write encodes a message and sends it.
func (s *sender) write(m xiaozhi.ToRobot) error {
	s.buf = xiaozhi.AppendToRobot(s.buf[:0], s.session, m)
	s.tap.ToRobot(s.buf)
	if err := s.out.SendText(s.buf); err != nil {
		return fmt.Errorf("send %T: %w", m, err)
	}
	return nil
}

// forever is the wait if only an event, and no time, requires the next call.
const forever = time.Hour

// sendDue performs the items of the speech that are due. It returns how long to wait before the next call,
// and a channel that ends the wait sooner.
func (s *sender) sendDue() (wait time.Duration, changed <-chan struct{}, err error) {
	q := s.current.Load()
	if q != s.playing.queue {
		s.cutOff(time.Now())
		s.playing = playing{queue: q, pacer: voice.Pacer{Queue: s.depth}}
	}
	if len(s.orders) > 0 {
		return 0, nil, nil // the tts stop of the previous speech must be sent first
	}
	if q == nil {
		return forever, nil, nil
	}
	for {
		now := time.Now() // sending the previous item may have taken a while
		it, atOnce, ok := q.peek()
		if !ok {
			return forever, q.added, nil
		}
		if wait, reachable := s.waitReachable(it, now); wait > 0 {
			return wait, reachable, nil
		}
		if due := s.dueAt(it); now.Before(due) && !atOnce {
			return due.Sub(now), q.added, nil
		}
		if err := s.perform(q, it, now); err != nil {
			return 0, nil, err
		}
		q.removeFirst(s.playing.pacer.PlayedUntil())
		if len(s.orders) > 0 || s.current.Load() != q {
			return 0, nil, nil // orders and new speech come first
		}
	}
}

// cutOff is called when another speech, or none, takes the place of the current one. It records how long the
// robot still plays packets it has received: firmware up to 2.3 plays its queue to the end after tts stop,
// and drops packets that arrive in the meantime.
func (s *sender) cutOff(now time.Time) {
	s.mouth.Shut()
	if played := s.playing.pacer.PlayedUntil(); played.After(now) {
		s.silentAt, s.silenceDue = played.Add(playTail), true
	}
}

// endCutOff notifies the echo canceller once the robot has played speech that was cut off. It returns how
// long the robot still plays such speech, or forever if it plays none.
func (s *sender) endCutOff(now time.Time) time.Duration {
	if !s.silenceDue {
		return forever
	}
	if wait := s.silentAt.Sub(now); wait > 0 {
		return wait
	}
	s.notifySilence()
	return forever
}

// notifySilence notifies the echo canceller that the robot plays nothing any more.
func (s *sender) notifySilence() {
	s.silenceDue = false
	if echo := s.echo.Load(); echo != nil {
		echo.Silence()
	}
}

// dueAt returns when an item may be performed. The zero time means at once.
func (s *sender) dueAt(it item) time.Time {
	switch {
	case it.sentence != nil && !s.playing.begun:
		return s.silentAt
	case it.packet != nil:
		due := s.playing.pacer.NextSend()
		earliest := s.playing.startedAt.Add(restGap)
		if due.IsZero() {
			earliest = s.playing.startedAt.Add(startGap)
		}
		if afterBurst := s.sentAt[0].Add(burstTime); earliest.Before(afterBurst) {
			earliest = afterBurst
		}
		if due.Before(earliest) {
			return earliest
		}
		return due
	case it.pause != nil || it.end:
		if played := s.playing.pacer.PlayedUntil(); !played.IsZero() {
			return played.Add(playTail)
		}
	}
	return time.Time{}
}

// reachTimeout is how long speech waits until sound can reach the robot. After that the speech is sent anyway,
// because its sentences also appear on the screen.
const reachTimeout = 2 * time.Second

// waitReachable returns how long an item must wait because sound cannot reach the robot yet, and a channel
// that ends the wait sooner. A wait of 0 or less means that the item need not wait. The robot's first datagram
// of sound shows its address; tts start must not be sent before that datagram, because tts start closes the
// microphone that sends the datagram.
func (s *sender) waitReachable(it item, now time.Time) (wait time.Duration, reachable <-chan struct{}) {
	if it.sentence == nil || s.playing.begun || s.reachable {
		return 0, nil
	}
	reachable = s.out.Audible()
	select {
	case <-reachable:
		s.reachable = true
	default:
		s.reachable = reachable == nil
	}
	if s.reachable {
		return 0, nil
	}
	if s.waitingSince.IsZero() {
		s.waitingSince = now
	}
	return s.waitingSince.Add(reachTimeout).Sub(now), reachable
}

// perform sends an item, or records its gesture for the session's loop. It records the progress before it
// sends, because the robot may respond at once, and by then the loop must know the progress.
func (s *sender) perform(q *queue, it item, now time.Time) error {
	switch {
	case it.face != nil:
		s.playing.face = *it.face
		return s.sendFace()
	case it.gesture != nil:
		q.record(func(r *Progress) { r.Gesture = *it.gesture })
		return nil
	case it.sentence != nil:
		return s.sendSentence(q, *it.sentence)
	case it.packet != nil:
		return s.sendPacket(q, it, now)
	case it.pause != nil:
		q.record(func(r *Progress) { r.Paused, r.Stopped, r.AskFor = true, true, *it.pause })
		return s.stop(q)
	}
	q.record(func(r *Progress) { r.Drained = true })
	return s.stop(q)
}

// sendFace makes the robot show the face of the speech, unless the robot shows it already.
func (s *sender) sendFace() error {
	if s.playing.face == (agent.Emotion{}) || s.playing.face == s.face {
		return nil
	}
	return s.sendMessage(xiaozhi.LLM{Emotion: s.playing.face.Name, Text: s.playing.face.Emoji})
}

// sendSentence shows a sentence. If the robot is not speaking yet, sendSentence first sends tts start, unless q was
// cancelled: then it does not show the sentence either.
func (s *sender) sendSentence(q *queue, text string) error {
	if err := s.sendFace(); err != nil { // a tts stop before the sentence has changed the robot's face
		return err
	}
	if !s.playing.begun && !q.start() {
		return nil
	}
	s.playing.pending, s.playing.hasPending = text, true
	if s.playing.begun {
		return s.sendMessage(xiaozhi.SentenceStart{Text: text})
	}
	s.playing.begun = true
	// Paused is false now, even if the loop has not read the report of the pause.
	q.record(func(r *Progress) { r.Started, r.Paused = true, false })
	return s.start()
}

// start makes the robot enter its speaking state, and shows the pending sentence. Some firmware builds enter
// the state at tts start, others at the start of a sentence. In a robot that is speaking already, both
// messages change nothing.
func (s *sender) start() error {
	if err := s.sendMessage(xiaozhi.TTSStart{}); err != nil {
		return err
	}
	if err := s.sendMessage(xiaozhi.SentenceStart{Text: s.playing.pending}); err != nil {
		return err
	}
	s.playing.startedAt = time.Now()
	return nil
}

// sendPacket sends a packet of sound.
func (s *sender) sendPacket(q *queue, it item, now time.Time) error {
	first := s.playing.pacer.PlayedUntil().IsZero()
	// Each packet has its own timestamp: if the appliance cancels a robot's echo, the robot returns the
	// timestamp of the packet that its microphone hears.
	s.timestamp += uint32(voice.FrameDuration / time.Millisecond)
	if echo := s.echo.Load(); echo != nil {
		echo.Sent(s.timestamp, it.packet)
	}
	if first || s.playing.hasPending {
		text, pending := s.playing.pending, s.playing.hasPending
		s.playing.hasPending = false
		q.record(func(r *Progress) {
			if first {
				r.Began, r.First = true, now
			}
			if pending && text != "" { // the text is empty for a sound that is not speech
				r.Spoken = append(r.Spoken, text)
			}
		})
	}
	s.tap.PacketToRobot()
	if err := s.out.SendAudio(xiaozhi.Audio{Timestamp: s.timestamp, Opus: it.packet}); err != nil {
		return fmt.Errorf("send audio: %w", err)
	}
	copy(s.sentAt[:], s.sentAt[1:])
	s.sentAt[maxBurst-1] = now
	s.playing.pacer.Sent(now)
	s.mouth.Queue(it.levels[:], s.playing.pacer.PlayedUntil())
	return nil
}

// stop makes the robot stop speaking, if it speaks.
func (s *sender) stop(q *queue) error {
	s.playing.pacer = voice.Pacer{Queue: s.depth}
	if !s.playing.begun {
		return nil
	}
	s.playing.begun = false
	s.mouth.Shut()
	s.notifySilence()
	q.stop()
	return s.sendMessage(xiaozhi.TTSStop{})
}
