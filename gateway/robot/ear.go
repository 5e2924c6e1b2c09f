package robot

import (
	"context"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// ear is a session's hearing: the decoder of its one stream, the end-pointer,
// and a ring of the last 2 s, so that the beginning of an utterance is not
// lost to finding out that it is one.
type ear struct {
	decoder  *voice.Decoder
	pointer  *voice.EndPointer
	ring     []int16
	at       int // where the next sample goes
	filled   int
	silenced time.Duration
}

const ringSamples = 2 * voice.MicRate

// preRoll is how much of the ring belongs to an utterance: the 300 ms in
// which speech was found, and a little for its soft beginning.
const preRoll = 500 * time.Millisecond

func newEar(silence time.Duration) (ear, error) {
	if silence == 0 {
		silence = voice.DefaultSilence
	}
	decoder, err := voice.NewDecoder(voice.MicRate)
	if err != nil {
		return ear{}, err
	}
	pointer, err := voice.NewEndPointer(silence)
	return ear{decoder: decoder, pointer: pointer, silenced: silence}, err
}

// silence is how long it was quiet when the end of speech is told.
func (e *ear) silence() time.Duration { return e.silenced }

// reset forgets what was heard so far: it was before this listening.
func (e *ear) reset() {
	e.pointer.Reset()
	e.at, e.filled = 0, 0
}

// keep puts sound into the ring.
func (e *ear) keep(pcm []int16) {
	if e.ring == nil {
		e.ring = make([]int16, ringSamples)
	}
	for len(pcm) > 0 {
		n := copy(e.ring[e.at:], pcm)
		pcm = pcm[n:]
		e.at = (e.at + n) % len(e.ring)
		e.filled = min(e.filled+n, len(e.ring))
	}
}

// before gives write the sound just before now, oldest first.
func (e *ear) before(write func([]int16) bool) {
	n := min(e.filled, int(preRoll/time.Millisecond)*voice.MicRate/1000)
	from := e.at - n
	if from < 0 {
		write(e.ring[len(e.ring)+from:])
		from = 0
	}
	if from < e.at {
		write(e.ring[from:e.at])
	}
}

// sound takes a packet from the robot: into the utterance under way, or into
// the ring while there is none.
func (s *session) sound(ctx context.Context, a xiaozhi.Audio) {
	if len(a.Opus) == 0 || s.muted.Load() {
		return
	}
	pcm, err := s.ear.decoder.Decode(a.Opus)
	if err != nil {
		s.badAudio++
		if s.badAudio == 1 { // once is enough to say so
			s.log.Warn("the robot sent sound that does not decode; such packets are dropped", "err", err)
		}
		return
	}
	s.state.packetAt = time.Now()
	if s.state.phase == hearing && s.utterance != nil {
		s.utterance.Write(pcm)
	} else {
		s.ear.keep(pcm)
	}
	if s.state.mode == xiaozhi.Manual || s.state.phase != ready && s.state.phase != hearing {
		return // the button says when, or nobody is to be listened to
	}
	switch s.ear.pointer.Feed(pcm) {
	case voice.SpeechBegan:
		s.input(ctx, speechBegan{})
	case voice.SpeechEnded:
		s.input(ctx, speechEnded{})
	}
}
