package voice_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/hraban/opus"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// espeak speaks a text at 24 kHz.
func espeak(t testing.TB, name, text string) []int16 {
	t.Helper()
	cmd := exec.Command("espeak-ng", "--stdin", "--stdout", "-v", name, "-s", "160")
	cmd.Stdin = bytes.NewReader([]byte(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("espeak-ng, which make test installs: %v", err)
	}
	const rate = 22050 // espeak-ng's
	pcm := append(voicetest.ReadWAV(t, out, rate), make([]int16, 100)...)
	return slices.Clone(voice.NewResampler(rate, voice.SpeakerRate).Resample(pcm))
}

// loudness is the RMS of the parts that are not silent.
func loudness(pcm []int16) float64 {
	const step = 320
	sum, n := 0.0, 0
	for at := 0; at+step <= len(pcm); at += step {
		if l := voicetest.RMS(pcm[at : at+step]); l > 200 {
			sum += l * l
			n++
		}
	}
	return math.Sqrt(sum / float64(max(1, n)))
}

func decibels(db float64) float64 { return math.Pow(10, db/20) }

// An answer is a piece of our speech, cut into the packets that leave for the
// robot, and when its loudspeaker begins to play it.
type answer struct {
	packets [][]byte
	at      time.Duration
	stalls  []stall
}

// stall is when the robot runs dry, before the packet of that number.
type stall struct {
	packet int
	lasts  time.Duration
}

// starts is when a packet begins to be played.
func (a answer) starts(packet int) time.Duration {
	at := a.at + time.Duration(packet)*voice.FrameDuration
	for _, s := range a.stalls {
		if packet >= s.packet {
			at += s.lasts
		}
	}
	return at
}

func answered(t testing.TB, at time.Duration, pcm []int16) answer {
	t.Helper()
	e := newEncoder(t, voice.SpeakerRate)
	a := answer{at: at}
	keep := func(p []byte) error { a.packets = append(a.packets, bytes.Clone(p)); return nil }
	must.Succeed(t, errors.Join(e.Encode(pcm, keep), e.Flush(keep)))
	return a
}

func (a answer) ends() time.Duration { return a.starts(len(a.packets)) }

// A room has a robot in it. It says how the sound of the loudspeaker returns to the
// microphone, and how the robot counts the packets it plays.
type room struct {
	delay  time.Duration // sound in the codec's buffers and in the air
	reverb time.Duration // until the answer of the room is 60 dB down
	gain   float64       // of the echo, in dB
	noise  float64       // RMS of motors
	stamps stamps
	bent   bool // a loudspeaker that is driven too hard and has no bass
	seed   uint64
	loses  int // one to three frames in a row, of every so many
}

// stamps is how the microphone's packets are marked with what was played.
type stamps int

const (
	queued  stamps = iota // as the firmware does: a queue, one taken a frame
	jumpy                 // up to three packets old, doubled, missing, swapped
	without               // framings 1 and 3
)

// played is the loudspeaker's sound at the microphone's rate.
func played(t testing.TB, answers []answer, length int) []int16 {
	t.Helper()
	out := make([]int16, length)
	for _, a := range answers {
		d := newDecoder(t, voice.SpeakerRate)
		rate := voice.NewResampler(voice.SpeakerRate, voice.MicRate)
		at := 0
		for i, p := range a.packets {
			piece, err := d.Decode(p)
			must.Succeed(t, err)
			if i == 0 || a.starts(i)-a.starts(i-1) != voice.FrameDuration {
				at = samples(a.starts(i))
			}
			if at < length {
				at += copy(out[at:], rate.Resample(piece))
			}
		}
	}
	return out
}

// echo is what a room gives back of a sound.
func (r room) echo(pcm []int16, dice *rand.Rand) []float64 {
	type tap struct {
		at   int
		gain float64
	}
	span := samples(r.reverb)
	taps := []tap{{0, 1}}
	for range 60 {
		at := 16 + dice.IntN(max(1, span-16))
		taps = append(taps, tap{at, dice.NormFloat64() * 0.7 * math.Pow(10, -3*float64(at)/float64(span))})
	}
	power := 0.0
	for _, p := range taps {
		power += p.gain * p.gain
	}
	scale := decibels(r.gain) / math.Sqrt(power)
	in := make([]float64, len(pcm))
	low := 0.0
	for i, s := range pcm {
		in[i] = float64(s)
		if r.bent {
			low += 0.1 * (in[i] - low) // 250 Hz
			in[i] = 14000 * math.Tanh((in[i]-low)/14000)
		}
	}
	out := make([]float64, len(pcm))
	delay := samples(r.delay)
	for _, p := range taps {
		g := p.gain * scale
		shifted := out[min(len(out), delay+p.at):]
		for i := range shifted {
			shifted[i] += g * in[i]
		}
	}
	return out
}

// frame is one packet of the microphone's.
type frame struct {
	at    time.Duration // its end
	stamp uint32
	pcm   []int16
}

// A scene is a room in which we say something, for a length of time.
type scene struct {
	room
	answers []answer
	echo    []float64
	ends    time.Duration
}

func (r room) scene(t testing.TB, answers []answer, ends time.Duration) *scene {
	t.Helper()
	n := samples(ends) / voice.MicFrame * voice.MicFrame
	return &scene{r, answers, r.echo(played(t, answers, n), rand.New(rand.NewPCG(r.seed, 98))), ends}
}

// hears is what arrives of the microphone's sound: our own, the room's noise
// and the person's, through the robot's encoder.
func (r *scene) hears(t testing.TB, person []int16) []frame {
	t.Helper()
	dice := rand.New(rand.NewPCG(r.seed, 99))
	n := len(r.echo)
	hum := servo(r.ends, r.noise/1.4, dice)
	sound := make([]int16, n)
	for i := range sound {
		v := r.echo[i] + float64(hum[i])
		if i < len(person) {
			v += float64(person[i])
		}
		sound[i] = int16(max(math.MinInt16, min(math.MaxInt16, v)))
	}
	heard := throughRobot(t, sound)
	marks := r.marks(r.answers, n/voice.MicFrame, dice)
	var frames []frame
	lost := 0
	for i, mark := range marks {
		if r.loses > 0 && dice.IntN(r.loses) == 0 {
			lost = 1 + dice.IntN(3)
		}
		if lost--; lost >= 0 {
			continue
		}
		at := time.Duration(i+1) * voice.FrameDuration
		frames = append(frames, frame{at, mark, heard[i*voice.MicFrame : (i+1)*voice.MicFrame]})
	}
	return frames
}

// throughRobot is like throughOpus at the rate that the firmware leaves to
// the library, about 17 kbit/s, which is a worse codec than ours.
func throughRobot(t testing.TB, pcm []int16) []int16 {
	t.Helper()
	e, err := opus.NewEncoder(voice.MicRate, 1, opus.AppVoIP)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(e.SetBitrateToAuto(), e.SetComplexity(0), e.SetDTX(true), e.SetVBR(true)))
	d := newDecoder(t, voice.MicRate)
	var heard []int16
	var packet [voice.MaxPacket]byte
	for at := 0; at+voice.MicFrame <= len(pcm); at += voice.MicFrame {
		n, err := e.Encode(pcm[at:at+voice.MicFrame], packet[:])
		must.Succeed(t, err)
		out, err := d.Decode(packet[:n])
		must.Succeed(t, err)
		heard = append(heard, out...)
	}
	return heard
}

// stampOf is the stamp of a packet of an answer, both counted from zero.
func stampOf(answer, packet int) uint32 { return uint32(1_000_000*(answer+1) + 60*packet) }

// marks are the stamps of the microphone's frames.
func (r room) marks(answers []answer, frames int, dice *rand.Rand) []uint32 {
	marks := make([]uint32, frames)
	var queue []uint32
	type start struct{ answer, packet int }
	var next start
	for f := range marks {
		now := time.Duration(f+1) * voice.FrameDuration
		playing := uint32(0)
		for next.answer < len(answers) {
			a := answers[next.answer]
			if next.packet == len(a.packets) {
				next = start{next.answer + 1, 0}
				continue
			}
			if a.starts(next.packet) > now {
				break
			}
			queue = append(queue, stampOf(next.answer, next.packet))
			next.packet++
		}
		if len(queue) > 0 {
			if len(queue) <= 3 {
				playing = queue[0]
			}
			queue = queue[1:]
		}
		marks[f] = playing
	}
	switch r.stamps {
	case without:
		clear(marks)
	case jumpy:
		clean := append([]uint32(nil), marks...)
		for f := range marks {
			if clean[f] == 0 {
				continue
			}
			back, x := dice.IntN(4), dice.Float64()
			switch {
			case x < 0.1:
				marks[f] = 0
			case x < 0.15 && f > 0:
				marks[f] = marks[f-1]
			case x < 0.2 && f > 0:
				marks[f], marks[f-1] = marks[f-1], marks[f]
			case f >= back && clean[f-back] != 0:
				marks[f] = clean[f-back]
			}
		}
	}
	return marks
}

// lead is how far ahead of the loudspeaker our packets leave, late how long a
// microphone's frame is on its way.
const (
	lead = 300 * time.Millisecond
	late = 60 * time.Millisecond
)

// heard is one frame after the canceller.
type heard struct {
	at    time.Duration // end of the frame, by the robot's clock
	pcm   []int16
	ours  bool
	edge  voice.Edge
	frame frame
}

// talk runs a canceller and an end-pointer as a session does.
func talk(t testing.TB, answers []answer, frames []frame) []heard {
	t.Helper()
	return talkUntil(t, answers, frames, 0)
}

// talkUntil is talk in which our speech is stopped at a time, where it is not
// zero, and does not end by itself.
func talkUntil(t testing.TB, answers []answer, frames []frame, stop time.Duration) []heard {
	t.Helper()
	e := newEcho(t)
	points, err := voice.NewEndPointer(0)
	must.Succeed(t, err)
	silence := make([]int16, voice.MicFrame)
	out := make([]heard, 0, len(frames))
	sent, packet, stopped := 0, 0, 0
	for _, in := range frames {
		now := in.at + late
		over := func(answer int) bool {
			if stop > 0 {
				return stop <= now
			}
			return answers[answer].ends() <= now
		}
		for sent < len(answers) && answers[sent].starts(packet)-lead <= now && (stop == 0 || !over(sent)) {
			for ; stopped < sent && over(stopped); stopped++ {
				e.Silence()
			}
			e.Sent(stampOf(sent, packet), answers[sent].packets[packet])
			if packet++; packet == len(answers[sent].packets) {
				sent, packet = sent+1, 0
			}
		}
		for ; stopped < len(answers) && (stopped < sent || stop > 0) && over(stopped); stopped++ {
			e.Silence()
		}
		clean, ours := e.Process(in.stamp, in.pcm)
		h := heard{at: in.at, pcm: append([]int16(nil), clean...), ours: ours, frame: in}
		if ours {
			h.edge = points.Feed(silence)
		} else {
			h.edge = points.Feed(clean)
		}
		out = append(out, h)
	}
	return out
}
