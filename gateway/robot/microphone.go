package robot

import (
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// microphone decodes a robot's sound and finds utterances in it. A ring buffer holds the latest 2 s, because
// an utterance is detected only some time after it has begun.
type microphone struct {
	decoder    *voice.Decoder
	endPointer *voice.EndPointer // finds where speech begins and ends
	ring       []int16           // latest samples; nil until the first sample
	at         int               // index in ring of the next sample
	filled     int               // samples in ring
	speech     int               // samples added to ring since the end-pointer found speech
	echo       *voice.Echo       // nil if the robot cancels its echo itself
	silence    []int16           // zeros, in place of sound that was only echo
}

// ringSamples is the size of the ring buffer: 2 s.
const ringSamples = 2 * voice.MicRate

// preRoll is how much sound before the detection belongs to an utterance: the 300 ms in which the
// end-pointer finds speech, and a little more for a soft beginning.
const preRoll = 500 * time.Millisecond

// newMicrophone returns a microphone. The caller must call close.
func newMicrophone() (microphone, error) {
	decoder, err := voice.NewDecoder(voice.MicRate)
	if err != nil {
		return microphone{}, err
	}
	endPointer, err := voice.NewEndPointer(voice.DefaultSilence)
	return microphone{decoder: decoder, endPointer: endPointer}, err
}

// reset drops the sound so far. It is called when the robot begins to listen.
func (m *microphone) reset() {
	m.endPointer.Reset()
	m.at, m.filled, m.speech = 0, 0, 0
}

// close frees the echo canceller's C memory.
func (m *microphone) close() {
	if m.echo != nil {
		m.echo.Close()
	}
}

// removeEcho removes the robot's own speech from the microphone's sound. If the sound was only echo, it
// returns silence and true: a remainder of the echo must not get into an utterance.
func (m *microphone) removeEcho(timestamp uint32, pcm []int16) (clean []int16, echoOnly bool) {
	if m.echo == nil {
		return pcm, false
	}
	clean, echoOnly = m.echo.Process(timestamp, pcm)
	if !echoOnly {
		return clean, false
	}
	if len(m.silence) < len(pcm) {
		m.silence = make([]int16, len(pcm))
	}
	return m.silence[:len(pcm)], true
}

// bufferSound adds samples to the ring buffer.
func (m *microphone) bufferSound(pcm []int16) {
	if m.ring == nil {
		m.ring = make([]int16, ringSamples)
	}
	for len(pcm) > 0 {
		n := copy(m.ring[m.at:], pcm)
		pcm = pcm[n:]
		m.at = (m.at + n) % len(m.ring)
		m.filled = min(m.filled+n, len(m.ring))
		if m.endPointer.Speaking() {
			m.speech += n
		}
	}
}

// writeBuffered calls write with the buffered samples that belong to an utterance which begins now, oldest
// first. They begin a preRoll before the end-pointer found speech. In realtime mode the end-pointer may have
// found it some time ago, while the previous utterance was still being recognized.
func (m *microphone) writeBuffered(write func([]int16) bool) {
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

// decode returns the samples of a packet, or substitute samples for a lost packet.
func (m *microphone) decode(packet xiaozhi.Audio) ([]int16, error) {
	if packet.Lost {
		return m.decoder.Conceal()
	}
	return m.decoder.Decode(packet.Opus)
}
