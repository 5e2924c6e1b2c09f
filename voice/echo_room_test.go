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

// espeak returns a text spoken by espeak-ng, at 24 kHz. name is one of its voices.
func espeak(t testing.TB, name, text string) []int16 {
	t.Helper()
	cmd := exec.Command("espeak-ng", "--stdin", "--stdout", "-v", name, "-s", "160")
	cmd.Stdin = bytes.NewReader([]byte(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("espeak-ng, which make test installs: %v", err)
	}
	const rate = 22050 // the rate of espeak-ng, in Hz
	pcm := append(voicetest.ReadWAV(t, out, rate), make([]int16, 100)...)
	return slices.Clone(voice.NewResampler(rate, voice.SpeakerRate).Resample(pcm))
}

// loudness returns the RMS of the parts that are not silent.
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

// answer is a piece of our speech, in the packets that are sent to the robot. at
// is the time when the loudspeaker begins to play the first packet.
type answer struct {
	packets [][]byte
	at      time.Duration
	stalls  []stall
}

// stall is a pause in playing: the robot has nothing to play before the packet
// with this number arrives.
type stall struct {
	packet int
	lasts  time.Duration
}

// starts returns the time when the robot begins to play a packet.
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

// room simulates a robot in a room: how the sound of the loudspeaker returns to the
// microphone, and which stamps the robot sends.
type room struct {
	delay  time.Duration // delay of the sound by the codec's buffers and the air
	reverb time.Duration // time in which the reverberation falls by 60 dB
	gain   float64       // gain of the echo in dB
	noise  float64       // RMS of the noise of motors
	stamps stamps
	bent   bool // whether the loudspeaker distorts the sound and has no bass
	seed   uint64
	loses  int // average number of frames of the microphone from one loss, of one to three frames, to the next; 0 for no losses
}

// stamps says which stamps the microphone's packets have.
type stamps int

const (
	queued  stamps = iota // as in the firmware: a queue of the played stamps, of which each frame takes one
	jumpy                 // stamps are up to three packets old, repeated, missing or swapped
	without               // no stamps, as in the versions 1 and 3 of the Xiaozhi binary protocol
)

// played returns the loudspeaker's sound at the microphone's rate.
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

// echo returns the echo of a sound in the room.
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
			low += 0.1 * (in[i] - low) // low-pass filter at 250 Hz
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

// frame is one packet from the microphone.
type frame struct {
	at    time.Duration // time of the end of the frame
	stamp uint32
	pcm   []int16
}

// scene is a room in which the robot plays answers, until the time ends.
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

// hears returns the frames from the microphone, after the robot's encoder: the
// sum of our echo, the room's noise and the person's sound.
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

// throughRobot is like throughOpus, but with the bit rate that the Opus library
// chooses for the firmware, about 17 kbit/s, which sounds worse than 24 kbit/s.
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

// stampOf returns the stamp of a packet of an answer. Both numbers begin at 0.
func stampOf(answer, packet int) uint32 { return uint32(1_000_000*(answer+1) + 60*packet) }

// marks returns the stamps of the microphone's frames.
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

// lead is the time between sending a packet and playing it. late is the delay of
// a microphone's frame on the network.
const (
	lead = 300 * time.Millisecond
	late = 60 * time.Millisecond
)

// heard is one frame after Echo.Process.
type heard struct {
	at    time.Duration // end of the frame, by the robot's clock
	pcm   []int16
	ours  bool
	edge  voice.Edge
	frame frame
}

// talk passes the frames through an Echo and an EndPointer, as a session does.
func talk(t testing.TB, answers []answer, frames []frame) []heard {
	t.Helper()
	return talkUntil(t, answers, frames, 0)
}

// talkUntil is like talk, but if stop is not zero, it calls Echo.Silence at the
// time stop, and not at the end of each answer.
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
