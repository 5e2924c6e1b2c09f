package voice

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hraban/opus"

	"perch/must"
)

// These benchmarks measure the quality of speech and its cost. speechBitrate, speechComplexity
// and the resampler were chosen with them.

// resolution says how sounds are compared: in pieces of span samples, which is a power of two,
// and in bands, whose edges are in Hz. Long pieces show whether a codec smears frequencies.
// Short pieces show whether the codec smears sound in time, for example before a consonant.
type resolution struct {
	span  int
	bands []int
}

var (
	inPitch = resolution{512, append(slices.Clone(bandEdges[:]), 6400, 7700, 9500, 12000)}
	inTime  = resolution{128, []int{200, 770, 1480, 2700, 4400, 6400, 9500, 12000}}
)

// heard returns the power in each band of each piece of a sound at 24 kHz, in dB.
func (r resolution) heard(pcm []int16) (all [][]float64) {
	for at := 0; at+r.span <= len(pcm); at += r.span / 2 {
		x := make([]complex128, r.span)
		for i, s := range pcm[at : at+r.span] {
			x[i] = complex(float64(s)*(0.5-0.5*math.Cos(2*math.Pi*float64(i)/float64(r.span))), 0)
		}
		x = transform(x)
		power := make([]float64, len(r.bands)-1)
		for band := range power {
			sum := 1.0 // about the quietest sound with 16 bits; avoids the logarithm of 0
			for bin := r.bands[band] * r.span / SpeakerRate; bin < r.bands[band+1]*r.span/SpeakerRate; bin++ {
				sum += real(x[bin])*real(x[bin]) + imag(x[bin])*imag(x[bin])
			}
			power[band] = 10 * math.Log10(sum)
		}
		all = append(all, power)
	}
	return all
}

// transform returns the Fourier transform of x, whose length is a power of two.
func transform(x []complex128) []complex128 {
	n := len(x)
	if n == 1 {
		return x
	}
	even, odd := make([]complex128, n/2), make([]complex128, n/2)
	for i := range even {
		even[i], odd[i] = x[2*i], x[2*i+1]
	}
	even, odd = transform(even), transform(odd)
	out := make([]complex128, n)
	for i := range even {
		turned := odd[i] * cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n))
		out[i], out[i+n/2] = even[i]+turned, even[i]-turned
	}
	return out
}

// audible is the range of audible levels below the loudest band of a sound, in dB.
const audible = 50

// distance returns the difference between a sound and its original in dB: the root mean square
// over the bands, as its mean and 99th percentile over time. Both sounds have 24 kHz and begin
// together. Levels that are too low to be heard count as equal. 1 dB is hardly audible.
func (r resolution) distance(from, to []int16) (mean, p99 float64) {
	a, b := r.heard(from), r.heard(to)
	floor := 0.0
	for _, bands := range a {
		floor = max(floor, slices.Max(bands)-audible)
	}
	var all []float64
	for i := range min(len(a), len(b)) {
		square, speaks := 0.0, false
		for band := range a[i] {
			one, other := max(a[i][band], floor), max(b[i][band], floor)
			square += (one - other) * (one - other)
			speaks = speaks || one > floor
		}
		if speaks {
			all = append(all, math.Sqrt(square/float64(len(a[i]))))
		}
	}
	slices.Sort(all)
	for _, one := range all {
		mean += one / float64(len(all))
	}
	return mean, all[len(all)*99/100]
}

// aligned returns the sound to without its delay relative to from, which is at most 40 ms.
func aligned(from, to []int16) []int16 {
	best, delay := math.Inf(-1), 0
	for d := range SpeakerRate / 25 {
		sum := 0.0
		for i := 0; i+d < min(len(from), len(to)); i += 3 {
			sum += float64(from[i]) * float64(to[i+d])
		}
		if sum > best {
			best, delay = sum, d
		}
	}
	return to[delay:]
}

// speech returns some seconds of speech of three voices at 24 kHz, made by the programs of the
// packages espeak and openjtalk.
func speech(b *testing.B) (all []int16) {
	b.Helper()
	english := "She sells sea shells by the shore. Six thick thistle sticks, and a big brown bear. What time is it?"
	japanese := filepath.Join(b.TempDir(), "ja.wav")
	for _, c := range []struct {
		program, says string
		args          []string
	}{
		{"espeak-ng", english, []string{"--stdout", "-v", "en-gb"}},
		{"espeak-ng", english, []string{"--stdout", "-v", "de"}},
		{"open_jtalk", "今日はとても良い天気ですね。四十パーセントの確率で、夕方から雨が降るそうです。", []string{"-x", "/var/lib/mecab/dic/open-jtalk/naist-jdic",
			"-m", "/usr/share/hts-voice/nitech-jp-atr503-m001/nitech_jp_atr503_m001.htsvoice", "-ow", japanese}},
	} {
		cmd := exec.Command(c.program, c.args...)
		cmd.Stdin = strings.NewReader(c.says)
		wav, err := cmd.Output()
		if err == nil && c.program == "open_jtalk" {
			wav, err = os.ReadFile(japanese)
		}
		if err != nil {
			b.Skipf("%s: %v", c.program, err)
		}
		all = append(all, to24(b, wav)...)
	}
	return all
}

func to24(b *testing.B, wav []byte) []int16 {
	b.Helper()
	r, err := NewWAVReader(bytes.NewReader(wav))
	must.Succeed(b, err)
	var pcm []int16
	for part := make([]int16, 4096); ; {
		n, err := r.Read(part)
		pcm = append(pcm, part[:n]...)
		if err == io.EOF {
			break
		}
		must.Succeed(b, err)
	}
	return NewResampler(r.Rate, SpeakerRate).Resample(pcm)
}

// played decodes packets to 24 kHz. A nil packet is a lost one: it is concealed if conceal is
// set, and silent otherwise.
func played(b *testing.B, packets [][]byte, conceal bool) (pcm []int16) {
	b.Helper()
	d, err := NewDecoder(SpeakerRate)
	must.Succeed(b, err)
	for _, p := range packets {
		sound := make([]int16, SpeakerFrame)
		switch {
		case p != nil:
			sound, err = d.Decode(p)
		case conceal:
			sound, err = d.Conceal()
		}
		must.Succeed(b, err)
		pcm = append(pcm, sound...)
	}
	return pcm
}

func packets(b *testing.B, e *Encoder, pcm []int16) (all [][]byte, bytesOf int) {
	b.Helper()
	keep := func(p []byte) error {
		all, bytesOf = append(all, bytes.Clone(p)), bytesOf+len(p)
		return nil
	}
	must.Succeed(b, e.Encode(pcm, keep))
	return all, bytesOf
}

func BenchmarkQuality(b *testing.B) {
	pcm := speech(b)
	for _, application := range []opus.Application{opus.AppVoIP, opus.AppAudio} {
		name := map[opus.Application]string{opus.AppVoIP: "voip", opus.AppAudio: "audio"}[application]
		for _, kbit := range []int{24, 32, 48, 64} {
			for _, complexity := range []int{0, 1, 3, 5, 10} {
				b.Run(fmt.Sprintf("%s/kbit=%d/complexity=%d", name, kbit, complexity), func(b *testing.B) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					var encoding, decoding time.Duration
					var pitch, timing, worst, lossy float64
					count, size := 0, 0
					for b.Loop() {
						e, err := newEncoder(SpeakerRate, application, func(e *opus.Encoder) error {
							return errors.Join(e.SetBitrate(1000*kbit), e.SetComplexity(complexity))
						})
						must.Succeed(b, err)
						began := threadCPU(b)
						all, n := packets(b, e, pcm)
						encoded := threadCPU(b)
						whole := played(b, all, false)
						encoding, decoding = encoding+encoded-began, decoding+threadCPU(b)-encoded
						count, size = count+len(all), size+n
						if pitch == 0 {
							whole := aligned(pcm, whole)
							pitch, _ = inPitch.distance(pcm, whole)
							timing, worst = inTime.distance(pcm, whole)
							lose(all, 3)
							lossy, _ = inPitch.distance(whole, aligned(whole, played(b, all, true)))
						}
					}
					b.ReportMetric(float64(encoding.Microseconds())/float64(count), "us-encode")
					b.ReportMetric(float64(decoding.Microseconds())/float64(count), "us-decode")
					b.ReportMetric(float64(size)*8/float64(count)/float64(FrameDuration.Milliseconds()), "kbit/s")
					b.ReportMetric(pitch, "dB-off")
					b.ReportMetric(timing, "dB-off-in-time")
					b.ReportMetric(worst, "dB-off-in-time-p99")
					b.ReportMetric(lossy, "dB-off-3%-lost")
				})
			}
		}
	}
}

// threadCPU returns the CPU time that this thread has used.
func threadCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must.Succeed(b, syscall.Getrusage(1 /* RUSAGE_THREAD */, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// lose sets this percentage of the packets to nil, the same ones in each call.
func lose(all [][]byte, percent int) {
	chance := rand.New(rand.NewPCG(1, 1))
	for i := range all {
		if chance.IntN(100) < percent {
			all[i] = nil
		}
	}
}

// BenchmarkLoss measures the quality of speech with lost packets. They are silent, as if they
// came too late on a WebSocket, or concealed, as by a robot that receives packets by UDP.
func BenchmarkLoss(b *testing.B) {
	pcm := speech(b)
	for _, percent := range []int{0, 1, 3, 10} {
		for _, conceal := range []bool{false, true} {
			b.Run(fmt.Sprintf("lost=%d%%/concealed=%v", percent, conceal), func(b *testing.B) {
				var off float64
				for b.Loop() {
					e, err := NewEncoder(SpeakerRate)
					must.Succeed(b, err)
					all, _ := packets(b, e, pcm)
					whole := played(b, all, false)
					lose(all, percent)
					off, _ = inPitch.distance(whole, played(b, all, conceal))
				}
				b.ReportMetric(off, "dB-off")
			})
		}
	}
}

// BenchmarkResamplers measures the quality of speech that was resampled to another rate and
// back, and the time for the way back.
func BenchmarkResamplers(b *testing.B) {
	pcm := speech(b)
	for _, rate := range []int{16000, 22050, 44100, 48000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			var off float64
			var took time.Duration
			n := 0
			for b.Loop() {
				there := NewResampler(SpeakerRate, rate).Resample(pcm)
				began := time.Now()
				back := NewResampler(rate, SpeakerRate).Resample(there)
				took, n = took+time.Since(began), n+1
				off, _ = inPitch.distance(pcm, aligned(pcm, back))
			}
			b.ReportMetric(float64(took.Microseconds())/float64(n)/(float64(len(pcm))/SpeakerFrame), "us/packet")
			b.ReportMetric(off, "dB-off")
		})
	}
}
