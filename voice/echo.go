package voice

import "sync"

// Constants of Echo, whose comment explains the terms. A step is echoStep samples, a frame
// MicFrame samples.
const (
	referenceAdvance = 40 * MicRate / 1000  // how many samples too early the canceller gets the loudspeaker's sound, to cover errors of the lag
	reverbSteps      = 8                    // steps of reverberation that the judge expects
	reverbDecay      = 0.5                  // power of each step of reverberation, relative to the step before
	alignmentSlack   = 100 * MicRate / 1000 // how many samples the alignment may be off without misleading the judge
	maxPending       = 24                   // maximum number of packets decoded for one frame; older packets were played long ago

	// How long our voice may be heard, in frames. Robots without stamps need longer limits,
	// since nothing shows what their loudspeakers play.
	tailFrames             = 6  // after our speech: some sound is still in the room or the network
	unstampedTailFrames    = 7  // after our speech, for a robot without stamps
	maxIdleFrames          = 20 // during our speech, since the last sent packet, while the stamps show nothing playing
	maxUnstampedIdleFrames = 60 // during our speech, since the last sent packet, for a robot without stamps
)

// Echo removes a robot's own voice from the sound of its microphone, for a robot that leaves
// this to the server. Each of the server's packets has a stamp, and each of the robot's
// packets repeats the stamp of the server's packet that the loudspeaker was playing at the
// time. Sent and Silence may be called from one goroutine while Process is called from
// another.
//
// "Our speech" and "our voice" are the sound that the server sent to the robot. For each frame
// of the microphone, the aligner finds which part of our speech is heard in it. The canceller
// subtracts the echo of that part; the result is the clean sound. The judge compares both with
// our speech, and decides whether a person is heard too.
type Echo struct {
	sentSpeech
	canceller    *canceller
	ref          *reference
	aligner      aligner
	judge        *judge
	packet       []byte // copy of the sent packet that is being decoded
	micPosition  int64  // number of the microphone's samples processed so far
	lastEnd      int64  // value of sentSpeech.end at the latest call of Process
	latestPlayed int64  // position in ref of the latest packet that the robot has played
	stamped      bool   // whether the robot has ever sent a known stamp
	idleFrames   int    // frames since the last time that a packet was sent, our speech ended, or the robot began to play a packet

	micStep, refStep, cleanStep [echoStep]int16 // the canceller's input and output
	clean                       []int16         // returned by Process
}

// sentSpeech is our speech as it was sent.
type sentSpeech struct {
	mu          sync.Mutex
	packets     [echoPackets]sentPacket // ring of the latest packets; packet n is at n%echoPackets
	sentPackets int64                   // number of packets sent so far
	talking     bool                    // whether our speech goes on: a packet was sent after the latest call of Silence
	end         int64                   // sentPackets when Silence last ended our speech
}

// sentPacket is a packet that was sent to the robot.
type sentPacket struct {
	stamp uint32
	data  []byte // empty if the packet was larger than MaxPacket
}

// NewEcho returns an Echo for one stream. The caller must call Close after use.
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

// Close frees the canceller. Process must not be running. After Close, Process returns all sound
// unchanged.
func (e *Echo) Close() { e.canceller.close() }

// Sent records that a packet of 60 ms of our speech was sent with this stamp, which is not 0.
// It copies the packet; Process decodes it.
func (e *Echo) Sent(stamp uint32, packet []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.packets[e.sentPackets%echoPackets]
	p.stamp, p.data = stamp, p.data[:0]
	if len(packet) <= MaxPacket {
		p.data = append(p.data, packet...)
	}
	e.sentPackets++
	e.talking = true
}

// Silence records that our speech has ended or was stopped. The robot discards the sound that
// it has not played yet; only sound in the network or in the room is still heard.
func (e *Echo) Silence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.talking {
		e.talking, e.end = false, e.sentPackets
	}
}

// Process processes the next 60 ms of the microphone's sound at 16 kHz, with the stamp of its
// packet, or 0 if it had none. It returns the sound without our voice, valid until the next
// call, and whether our voice is all that was heard. If our voice cannot be heard, the sound
// is pcm itself. If the stamps do not show what is playing, all sound during our speech and
// shortly after it counts as ours, and the sound is pcm itself.
func (e *Echo) Process(stamp uint32, pcm []int16) (clean []int16, ours bool) {
	talking := e.decodeSent()
	e.recordStamp(stamp)
	from := e.micPosition
	e.micPosition += int64(len(pcm))
	switch {
	case !e.mayBeHeard(talking) || e.canceller.state == nil:
		e.processQuiet(pcm)
		return pcm, false
	case !e.aligner.baseKnown:
		return pcm, true
	}
	if len(pcm) == MicFrame {
		e.aligner.searchLag((*[MicFrame]int16)(pcm), from, e.ref)
	}
	steps := 0
	e.clean = e.clean[:0]
	for ; steps*echoStep < len(pcm); steps++ {
		e.processStep(pcm[steps*echoStep:], from+int64(steps*echoStep))
	}
	person, diverged := e.judge.endFrame(steps, e.aligner.isIrregular())
	if diverged {
		e.aligner.doubtLag()
	}
	return e.clean[:len(pcm)], !person
}

// decodeSent decodes the packets that were sent since the last frame, at most the latest
// maxPending packets, and reports whether our speech goes on.
func (e *Echo) decodeSent() (talking bool) {
	for {
		e.mu.Lock()
		talking = e.talking
		end := e.end
		if e.ref.packets == e.sentPackets {
			e.mu.Unlock()
			if end != e.lastEnd {
				e.lastEnd, e.idleFrames = end, 0
			}
			return talking
		}
		e.idleFrames = 0
		if old := e.sentPackets - e.ref.packets - maxPending; old > 0 {
			e.ref.skipPackets(old)
		}
		p := &e.packets[e.ref.packets%echoPackets]
		stamp := p.stamp
		e.packet = append(e.packet[:0], p.data...)
		e.mu.Unlock()
		e.ref.addPacket(stamp, e.packet)
	}
}

// recordStamp records the stamp of the next frame, or 0 if it has none.
func (e *Echo) recordStamp(stamp uint32) {
	e.idleFrames++
	at, known := int64(0), false
	if stamp != 0 {
		at, known = e.ref.positionOf(stamp)
	}
	if !known {
		e.aligner.addMissingStamp()
		return
	}
	e.stamped = true
	e.aligner.addStamp(at - e.micPosition)
	if at > e.latestPlayed {
		e.latestPlayed, e.idleFrames = at, 0
	}
}

// mayBeHeard reports whether our voice may be heard in the next frame.
func (e *Echo) mayBeHeard(talking bool) bool {
	switch {
	case e.ref.packets == 0:
		return false
	case !e.stamped && talking:
		return e.idleFrames < maxUnstampedIdleFrames
	case !e.stamped:
		return e.idleFrames < unstampedTailFrames
	case talking:
		return e.aligner.baseKnown || e.idleFrames < maxIdleFrames
	}
	return e.aligner.baseKnown && e.idleFrames < tailFrames
}

// processQuiet passes a frame without our voice to the judge.
func (e *Echo) processQuiet(pcm []int16) {
	for ; len(pcm) >= echoStep; pcm = pcm[echoStep:] {
		e.judge.processQuiet((*[echoStep]int16)(pcm))
	}
}

// processStep removes our voice from the first step of pcm, and appends the result to e.clean.
// at is the position of the step in the microphone's sound. Both the original and the result
// go to the judge.
func (e *Echo) processStep(pcm []int16, at int64) {
	clear(e.micStep[copy(e.micStep[:], pcm):])
	if !e.aligner.isLagSure() {
		levels := e.levelsAtAnyLag(at + e.aligner.base)
		e.judge.processStep(&e.micStep, &e.micStep, &levels, nil)
		e.clean = append(e.clean, e.micStep[:]...)
		return
	}
	from := e.aligner.heardPosition(at)
	e.ref.copySound(from+referenceAdvance, e.refStep[:])
	e.canceller.cancel(&e.micStep, &e.refStep, &e.cleanStep)
	e.clean = append(e.clean, e.cleanStep[:]...)
	around, aligned := e.levelsAt(from, -alignmentSlack, alignmentSlack), e.levelsAt(from, 0, echoStep)
	if e.aligner.isIrregular() {
		around = e.levelsAtAnyLag(at + e.aligner.base)
	}
	e.judge.processStep(&e.micStep, &e.cleanStep, &around, &aligned)
}

// levelsAtAnyLag returns the maximum levels of our voice, over all possible lags, for a step of
// the microphone. at is the position in the sent sound that the stamps give.
func (e *Echo) levelsAtAnyLag(at int64) (l bandLevels) {
	e.ref.raiseLevels(&l, at-lagLate*decimation, at+echoStep+lagEarly*decimation, 1)
	return l
}

// levelsAt returns the levels of our voice for a step of the microphone. They cover the
// sent sound from position at+early to one step after at+late, and the reverberation of the
// sound before that.
func (e *Echo) levelsAt(at, early, late int64) (l bandLevels) {
	e.ref.raiseLevels(&l, at+early, at+echoStep+late, 1)
	factor := float32(1)
	for past := at + early - echoStep; past >= at+early-reverbSteps*echoStep; past -= echoStep {
		factor *= reverbDecay
		e.ref.raiseLevels(&l, past, past, factor)
	}
	return l
}
