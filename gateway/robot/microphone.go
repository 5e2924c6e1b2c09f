package robot

import (
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// microphone decodes a robot's sound and finds utterances. A ring holds the last 2 s, so that the
// beginning of an utterance is not lost.
type microphone struct {
	decoder *voice.Decoder
	pointer *voice.EndPointer
	ring    []int16
	at      int // where the next sample goes
	filled  int
	speech  int         // samples since speech was found
	echo    *voice.Echo // nil if the robot cancels its echo itself
	nothing []int16     // silence
}

const ringSamples = 2 * voice.MicRate

// preRoll is how much of the ring belongs to an utterance: the 300 ms that show speech, and a little
// for its soft beginning.
const preRoll = 500 * time.Millisecond

func newMicrophone() (microphone, error) {
	decoder, err := voice.NewDecoder(voice.MicRate)
	if err != nil {
		return microphone{}, err
	}
	pointer, err := voice.NewEndPointer(voice.DefaultSilence)
	return microphone{decoder: decoder, pointer: pointer}, err
}

// reset drops the sound so far: it was before this listen start.
func (m *microphone) reset() {
	m.pointer.Reset()
	m.at, m.filled, m.speech = 0, 0, 0
}

// close releases what is not Go's.
func (m *microphone) close() {
	if m.echo != nil {
		m.echo.Close()
	}
}

// clean removes our own voice from the microphone's sound. If nothing else is left
// it is silence, because a remainder of us must not enter an utterance.
func (m *microphone) clean(stamp uint32, pcm []int16) (clean []int16, ours bool) {
	if m.echo == nil {
		return pcm, false
	}
	clean, ours = m.echo.Process(stamp, pcm)
	if !ours {
		return clean, false
	}
	if len(m.nothing) < len(pcm) {
		m.nothing = make([]int16, len(pcm))
	}
	return m.nothing[:len(pcm)], true
}

// buffer puts sound into the ring.
func (m *microphone) buffer(pcm []int16) {
	if m.ring == nil {
		m.ring = make([]int16, ringSamples)
	}
	for len(pcm) > 0 {
		n := copy(m.ring[m.at:], pcm)
		pcm = pcm[n:]
		m.at = (m.at + n) % len(m.ring)
		m.filled = min(m.filled+n, len(m.ring))
		if m.pointer.Speaking() {
			m.speech += n
		}
	}
}

// before gives write the sound just before now, oldest first: from a moment
// before speech was found, which in realtime may be while we still recognize.
func (m *microphone) before(write func([]int16) bool) {
	n := min(m.filled, m.speech+int(preRoll/time.Millisecond)*voice.MicRate/1000)
	m.speech = 0
	from := m.at - n
	if from < 0 {
		write(m.ring[len(m.ring)+from:])
		from = 0
	}
	if from < m.at {
		write(m.ring[from:m.at])
	}
}

// decode returns the sound of a packet, or a substitute for a lost packet.
func (m *microphone) decode(packet xiaozhi.Audio) ([]int16, error) {
	if packet.Lost {
		return m.decoder.Conceal()
	}
	return m.decoder.Decode(packet.Opus)
}
