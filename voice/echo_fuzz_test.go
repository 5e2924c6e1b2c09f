package voice_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"perch/voice"
)

// talking returns an Echo in the middle of our speech, and a function that
// processes one more frame.
func talking(t testing.TB) (*voice.Echo, func()) {
	t.Helper()
	e := newEcho(t)
	r := room{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: -10, noise: 20, seed: 81}
	a, _ := conversation(t, "en-us", 0, 1)
	a[0].at = 0
	frames := r.scene(t, a, a[0].ends()).hears(t, nil)
	n := 0
	frame := func() {
		e.Sent(uint32(60+60*n), a[0].packets[n%len(a[0].packets)])
		stamp := uint32(0)
		if n > 5 {
			stamp = uint32(60 + 60*(n-5))
		}
		e.Process(stamp, frames[n%len(frames)].pcm)
		n++
	}
	for range 200 {
		frame()
	}
	return e, frame
}

// FuzzEcho runs a script of pairs of bytes: the first byte is an operation, the
// second its argument. It checks that no operation panics, and that Process
// returns as many samples as it gets.
func FuzzEcho(f *testing.F) {
	answers, _ := conversation(f, "en-us", 0, 1)
	f.Add([]byte{0, 1, 0, 2, 3, 1, 3, 2, 2, 3, 2})
	f.Add([]byte{0, 9, 3, 9, 3, 9, 3, 9, 3, 9, 3, 8, 2, 4, 200, 5, 9, 250})
	f.Add([]byte{1, 200, 1, 1, 3, 200, 3, 1, 6, 70, 3, 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		e := newEcho(t)
		dice := rand.New(rand.NewPCG(uint64(len(script)), 7))
		hear := func(stamp uint32, n int) {
			pcm := make([]int16, n)
			for i := range pcm {
				pcm[i] = int16(dice.Uint32())
			}
			if clean, _ := e.Process(stamp, pcm); len(clean) != n {
				t.Fatalf("%d samples became %d", n, len(clean))
			}
		}
		for len(script) >= 2 && len(script) < 500 {
			what, with := script[0], script[1]
			script = script[2:]
			switch what % 7 {
			case 0:
				e.Sent(uint32(with)*60, answers[0].packets[int(with)%len(answers[0].packets)])
			case 1: // an invalid packet
				e.Sent(uint32(with), script)
			case 2:
				e.Silence()
			case 3:
				hear(uint32(with)*60, voice.MicFrame)
			case 4: // sound of another length
				hear(uint32(with)*60, int(with)*11)
			case 5:
				hear(dice.Uint32(), voice.MicFrame)
			case 6:
				for i := range int(with) {
					e.Sent(uint32(i), make([]byte, i*20))
				}
			}
		}
	})
}
