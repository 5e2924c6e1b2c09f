package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/voice"
)

const (
	noise = 20  // amplitude of the noise in a quiet room (maximum: 32768)
	loud  = 300 // minimum amplitude that counts as speech
)

// mic is the robot's microphone. It records the person's speech, noise and the echo in packets
// of 60 ms.
type mic struct {
	encoder *voice.Encoder
	rand    *rand.Rand
	echo    *echo     // nil if the microphone hears no echo
	next    time.Time // end of the frame being recorded; zero while the microphone is closed

	speech   []int16   // the sentence being spoken
	at       int       // number of samples of speech that are already recorded
	lastLoud int       // index of the last loud sample in speech
	spokeAt  time.Time // end of the person's speech; zero until then
}

// newMic returns a closed microphone. The noise depends on the seed.
func newMic(seed uint64) (*mic, error) {
	e, err := voice.NewMicEncoder()
	if err != nil {
		return nil, err
	}
	return &mic{encoder: e, rand: rand.New(rand.NewPCG(seed, 1))}, nil
}

// start opens the microphone.
func (m *mic) start(now time.Time) { m.next = now.Add(voice.FrameDuration) }

// isOpen reports whether the microphone is open.
func (m *mic) isOpen() bool { return !m.next.IsZero() }

// startSpeech makes the person say a sentence. lead and tail are the durations of the silence before
// and after the sentence.
func (m *mic) startSpeech(pcm []int16, lead, tail time.Duration) {
	m.speech = make([]int16, samples(lead), samples(lead)+len(pcm)+samples(tail))
	m.speech = append(m.speech, pcm...)
	m.lastLoud = samples(lead)
	for i, v := range m.speech {
		if v > loud || v < -loud {
			m.lastLoud = i
		}
	}
	m.speech = append(m.speech, make([]int16, samples(tail))...)
	m.at, m.spokeAt = 0, time.Time{}
}

// samples returns the number of samples in a duration.
func samples(d time.Duration) int { return int(d * voice.MicRate / time.Second) }

// stopSpeech makes the person stop speaking.
func (m *mic) stopSpeech(now time.Time) {
	m.speech, m.at = nil, 0
	if m.spokeAt.IsZero() {
		m.spokeAt = now
	}
}

// advance records the sound until now, and passes the packets to out.
func (m *mic) advance(now time.Time, out func(packet []byte) error) error {
	for m.isOpen() && !now.Before(m.next) {
		frame := make([]int16, voice.MicFrame)
		for i := range frame {
			frame[i] = int16(m.rand.IntN(2*noise+1) - noise)
		}
		speech := m.speech[m.at:min(m.at+len(frame), len(m.speech))]
		for i, v := range speech {
			frame[i] = int16(max(math.MinInt16, min(int(frame[i])+int(v), math.MaxInt16)))
		}
		m.at += len(speech)
		if m.echo != nil {
			m.echo.mix(frame, m.next.Add(-voice.FrameDuration))
		}
		if m.spokeAt.IsZero() && m.at > m.lastLoud {
			m.spokeAt = m.next
		}
		if err := m.encoder.Encode(frame, out); err != nil {
			return err
		}
		m.next = m.next.Add(voice.FrameDuration)
	}
	return nil
}

// prerollPackets is the number of packets that the firmware sends when it detects a wake word: about
// 2 s of sound.
const prerollPackets = 33

// preroll passes to out the packets that the firmware sends when it detects a wake word: the last two
// seconds of pcm. If pcm is shorter, silence is added before pcm.
func preroll(pcm []int16, seed uint64, out func(packet []byte) error) error {
	m, err := newMic(seed)
	if err != nil {
		return err
	}
	const size = prerollPackets * voice.MicFrame // in samples
	if len(pcm) > size {
		pcm = pcm[len(pcm)-size:]
	}
	m.speech = append(make([]int16, size-len(pcm), size), pcm...)
	var start time.Time
	m.start(start)
	return m.advance(start.Add(prerollPackets*voice.FrameDuration), out)
}
