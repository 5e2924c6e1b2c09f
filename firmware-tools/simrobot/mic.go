package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/voice"
)

const (
	noise = 20  // amplitude of a quiet room, of 32768; also added to speech
	loud  = 300 // amplitude that counts as speech
)

// mic records the sound around the robot in packets of 60 ms.
type mic struct {
	encoder *voice.Encoder
	rand    *rand.Rand
	echo    *echo     // nil without an echo
	next    time.Time // when the frame being recorded is full; zero while it is closed

	speech   []int16   // what the person says now
	at       int       // samples of it recorded so far
	lastLoud int       // index of its last loud sample
	spokeAt  time.Time // when that was recorded
}

func newMic(seed uint64) (*mic, error) {
	e, err := voice.NewMicEncoder()
	if err != nil {
		return nil, err
	}
	return &mic{encoder: e, rand: rand.New(rand.NewPCG(seed, 1))}, nil
}

func (m *mic) start(now time.Time) { m.next = now.Add(voice.FrameDuration) }

func (m *mic) open() bool { return !m.next.IsZero() }

// startSpeech starts what the person says, with silence before and after it.
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

func samples(d time.Duration) int { return int(d * voice.MicRate / time.Second) }

// stopSpeech makes the person stop.
func (m *mic) stopSpeech(now time.Time) {
	m.speech, m.at = nil, 0
	if m.spokeAt.IsZero() {
		m.spokeAt = now
	}
}

// advance records until now, and emits the packets.
func (m *mic) advance(now time.Time, out func(packet []byte) error) error {
	for m.open() && !now.Before(m.next) {
		frame := make([]int16, voice.MicFrame)
		for i := range frame {
			frame[i] = int16(m.rand.IntN(2*noise+1) - noise)
		}
		said := m.speech[m.at:min(m.at+len(frame), len(m.speech))]
		for i, v := range said {
			frame[i] = int16(max(math.MinInt16, min(int(frame[i])+int(v), math.MaxInt16)))
		}
		m.at += len(said)
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

// prerolled is the number of packets before a wake word that the firmware sends: 2 s.
const prerolled = 33

// preroll emits the packets before the detection of a wake word: the last two seconds of
// pcm, which is padded with silence at its beginning.
func preroll(pcm []int16, seed uint64, out func(packet []byte) error) error {
	m, err := newMic(seed)
	if err != nil {
		return err
	}
	const all = prerolled * voice.MicFrame
	if len(pcm) > all {
		pcm = pcm[len(pcm)-all:]
	}
	m.speech = append(make([]int16, all-len(pcm), all), pcm...)
	var start time.Time
	m.start(start)
	return m.advance(start.Add(prerolled*voice.FrameDuration), out)
}
