package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/voice"
)

const (
	noise = 20  // amplitude of a quiet room, of 32768: under speech too, no microphone knows digital silence
	loud  = 300 // amplitude from which sound is speech
)

// mic turns the sound around the robot into packets, 60 ms each, at the pace
// of a clock.
type mic struct {
	encoder *voice.Encoder
	rand    *rand.Rand
	echo    *echo // nil where none is heard
	open    bool
	next    time.Time // when the frame being recorded is full

	speech  []int16 // what is being said
	at      int     // how much of it was recorded
	lastly  int     // its last loud sample
	spokeAt time.Time
}

func newMic(seed uint64) (*mic, error) {
	e, err := voice.NewEncoder(voice.MicRate)
	if err != nil {
		return nil, err
	}
	if err := e.LikeRobot(); err != nil {
		return nil, err
	}
	return &mic{encoder: e, rand: rand.New(rand.NewPCG(seed, 1))}, nil
}

func (m *mic) start(now time.Time) {
	m.open, m.next = true, now.Add(voice.FrameDuration)
}

// say has a person speak near the robot: silence, the speech, silence.
func (m *mic) say(pcm []int16, lead, tail time.Duration) {
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

// saying reports whether the person is not through yet.
func (m *mic) saying() bool { return m.at < len(m.speech) }

// hush has the person stop.
func (m *mic) hush(now time.Time) {
	m.speech, m.at = nil, 0
	if m.spokeAt.IsZero() {
		m.spokeAt = now
	}
}

// advance records until now, and gives out the packets.
func (m *mic) advance(now time.Time, out func(packet []byte) error) error {
	for m.open && !now.Before(m.next) {
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

// preroll gives out the packets of what was heard before a wake word was
// known for one: the last two seconds of pcm, or as much quiet before it.
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

// prerolled is how many packets the firmware keeps of the time before: 2 s.
const prerolled = 33

// due is when the next frame is full, and the zero time while it is closed.
func (m *mic) due() time.Time {
	if !m.open {
		return time.Time{}
	}
	return m.next
}
