package voice

import "sync"

// Limits of what may be heard, and for how long.
const (
	echoAdvance = 40 * MicRate / 1000  // the canceller is given the loudspeaker's sound this much early
	echoPast    = 8                    // steps of reverberation that the judge expects,
	echoFade    = 0.5                  // each so much weaker than the one before
	echoAround  = 100 * MicRate / 1000 // how wrong the alignment may be without misleading the judge
	echoPending = 24                   // packets decoded at most per frame; older ones were played long ago

	echoDecay   = 6  // frames after our speech that may still hold some, in the room or the network
	echoUnknown = 7  // the same without stamps
	echoSilent  = 20 // frames without a stamp or a new packet: nothing can be playing
	echoForgot  = 60 // the same without stamps
)

// Echo removes a robot's own voice from what its microphone hears, for a robot that
// leaves this to the server: such a robot marks its microphone's packets with the stamp
// of the packet that its loudspeaker was playing. Sent and Silence may be called from one
// goroutine while Heard is called from another.
type Echo struct {
	sentSpeech
	canceller *canceller
	ref       *reference
	align     aligner
	judge     *judge
	packet    []byte
	at        int64 // position of the microphone
	ended     int64 // packets sent before our speech last ended
	latest    int64 // position of the latest packet that was played
	stamped   bool  // this robot marks its packets
	since     int   // frames since we sent or stopped, or it played

	mic, given, left [echoStep]int16
	clean            []int16
}

// sentSpeech is what was sent to the robot.
type sentSpeech struct {
	mu      sync.Mutex
	packets [echoPackets]sentPacket
	sent    int64 // packets
	talking bool
	end     int64 // packets sent when Silence was last called
}

type sentPacket struct {
	stamp uint32
	data  []byte
}

// NewEcho returns a canceller. Close frees it.
func NewEcho() (*Echo, error) {
	ref, err := newReference()
	if err != nil {
		return nil, err
	}
	c, err := newCanceller()
	if err != nil {
		return nil, err
	}
	return &Echo{canceller: c, ref: ref, judge: newJudge()}, nil
}

// Close frees the canceller. Heard must not be running, and passes sound through
// unchanged from then on.
func (e *Echo) Close() { e.canceller.close() }

// Sent records that a packet of 60 ms of our speech was sent with a stamp. It copies
// the packet and does no further work. Stamp 0 means no packet.
func (e *Echo) Sent(stamp uint32, packet []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.packets[e.sent%echoPackets]
	p.stamp, p.data = stamp, p.data[:0]
	if len(packet) <= MaxPacket {
		p.data = append(p.data, packet...)
	}
	e.sent++
	e.talking = true
}

// Silence records that our speech has ended or was stopped: sound sent but not yet
// played is not heard, except what is still on its way.
func (e *Echo) Silence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.talking {
		e.talking, e.end = false, e.sent
	}
}

// Process processes the next 60 ms of the microphone's sound at 16 kHz, with the stamp
// that came with it, or 0. It returns the sound without our voice, which is pcm itself
// or valid until the next call, and whether it contains only our voice. If nothing of
// ours can be heard it changes nothing. If a robot does not mark its packets, all sound
// counts as ours while we speak.
func (e *Echo) Process(stamp uint32, pcm []int16) (clean []int16, ours bool) {
	talking := e.receive()
	e.mark(stamp)
	from := e.at
	e.at += int64(len(pcm))
	switch {
	case !e.audible(talking) || e.canceller.state == nil:
		e.quiet(pcm)
		return pcm, false
	case !e.align.known:
		return pcm, true
	}
	if len(pcm) == MicFrame {
		e.align.frame((*[MicFrame]int16)(pcm), from, e.ref)
	}
	steps := 0
	e.clean = e.clean[:0]
	for ; steps*echoStep < len(pcm); steps++ {
		e.step(pcm[steps*echoStep:], from+int64(steps*echoStep))
	}
	somebody, astray := e.judge.verdict(steps, e.align.unruly())
	if astray {
		e.align.suspect()
	}
	return e.clean[:len(pcm)], !somebody
}

// receive decodes what was sent since the last frame, and returns whether we speak.
func (e *Echo) receive() (talking bool) {
	for {
		e.mu.Lock()
		talking = e.talking
		end := e.end
		if e.ref.packets == e.sent {
			e.mu.Unlock()
			if end != e.ended {
				e.ended, e.since = end, 0
			}
			return talking
		}
		e.since = 0
		if old := e.sent - e.ref.packets - echoPending; old > 0 {
			e.ref.skip(old)
		}
		p := &e.packets[e.ref.packets%echoPackets]
		stamp := p.stamp
		e.packet = append(e.packet[:0], p.data...)
		e.mu.Unlock()
		e.ref.add(stamp, e.packet)
	}
}

// mark records the stamp of a frame.
func (e *Echo) mark(stamp uint32) {
	e.since++
	at, known := int64(0), false
	if stamp != 0 {
		at, known = e.ref.positionOf(stamp)
	}
	if !known {
		e.align.missing()
		return
	}
	e.stamped = true
	e.align.stamp(at - e.at)
	if at > e.latest {
		e.latest, e.since = at, 0
	}
}

// audible reports whether our voice may be in the frame.
func (e *Echo) audible(talking bool) bool {
	switch {
	case e.ref.packets == 0:
		return false
	case !e.stamped && talking:
		return e.since < echoForgot
	case !e.stamped:
		return e.since < echoUnknown
	case talking:
		return e.align.known || e.since < echoSilent
	}
	return e.align.known && e.since < echoDecay
}

func (e *Echo) quiet(pcm []int16) {
	for ; len(pcm) >= echoStep; pcm = pcm[echoStep:] {
		e.judge.quiet((*[echoStep]int16)(pcm))
	}
}

// step removes our voice from the step at the start of pcm, and passes both to the
// judge.
func (e *Echo) step(pcm []int16, at int64) {
	clear(e.mic[copy(e.mic[:], pcm):])
	if !e.align.sure() {
		around := e.anywhere(at + e.align.base)
		e.judge.step(&e.mic, &e.mic, &around, nil)
		e.clean = append(e.clean, e.mic[:]...)
		return
	}
	from := e.align.position(at)
	e.ref.read(from+echoAdvance, e.given[:])
	e.canceller.cancel(&e.mic, &e.given, &e.left)
	e.clean = append(e.clean, e.left[:]...)
	around, aligned := e.fading(from, -echoAround, echoAround), e.fading(from, 0, echoStep)
	if e.align.unruly() {
		around = e.anywhere(at + e.align.base)
	}
	e.judge.step(&e.mic, &e.left, &around, &aligned)
}

// anywhere returns the most that may be heard of our voice in a step while the lag is
// unknown.
func (e *Echo) anywhere(at int64) (l levels) {
	e.ref.loudest(&l, at-lagLate*thin, at+echoStep+lagEarly*thin, 1)
	return l
}

// fading returns what may be heard of our voice in a step that begins at a position of
// the loudspeaker's sound, plus or minus some samples: what is played then, and the
// reverberation of what was played before.
func (e *Echo) fading(at, early, late int64) (l levels) {
	e.ref.loudest(&l, at+early, at+echoStep+late, 1)
	weaker := float32(1)
	for past := at + early - echoStep; past >= at+early-echoPast*echoStep; past -= echoStep {
		weaker *= echoFade
		e.ref.loudest(&l, past, past, weaker)
	}
	return l
}
