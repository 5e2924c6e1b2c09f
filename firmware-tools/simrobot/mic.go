package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/voice"
)

const (
	noise = 20  // amplitude of a quiet room, of 32768; it is under speech, too
	loud  = 300 // amplitude that counts as speech
)

// mic records the sound around the robot in packets of 60 ms, by the clock.
type mic struct {
	encoder *voice.Encoder
	rand    *rand.Rand
	echo    *echo     // nil without an echo
	next    time.Time // when the frame being recorded is full; zero while it is closed

	speech  []int16 // of the person, at present
	at      int     // recorded so far
	lastly  int     // index of its last loud sample
	spokeAt time.Time
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

// startSpeech starts the speech of a person: silence, the speech, silence.
func (m *mic) startSpeech(pcm []int16, lead, tail time.Duration) {
	m.speech = make([]int16, samples(lead), samples(lead)+len(pcm)+samples(tail))
	m.speech = append(m.speech, pcm...)
	m.lastly = samples(lead)
	for i, v := range m.speech {
		if v > loud || v < -loud {
			m.lastly = i
		}
	}
	m.speech = append(m.speech, make([]int16, samples(tail))...)
	m.at, m.spokeAt = 0, time.Time{}
}

func samples(d time.Duration) int { return int(d * voice.MicRate / time.Second) }

// stopSpeech stops the person.
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
		if m.spokeAt.IsZero() && m.at > m.lastly {
			m.spokeAt = m.next
		}
		if err := m.encoder.Encode(frame, out); err != nil {
			return err
		}
		m.next = m.next.Add(voice.FrameDuration)
	}
	return nil
}

// preroll emits the packets that precede the detection of a wake word: the last
// two seconds of pcm, or quiet before it.
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

// prerolled is how many packets the firmware keeps for that: 2 s.
const prerolled = 33
