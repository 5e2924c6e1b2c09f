package robot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/must"
	"perch/voice"
)

// In the tests of this file, each person has a voice of a different pitch, and each answer is spoken at a different
// pitch. If a robot gets the sound of another robot, or sound from a decoder that another robot has used, the pitch is
// wrong.

// period returns the period of the i-th voice, in samples of 16 kHz; tone returns that of the i-th answer, in samples of
// 24 kHz.
func period(i int) int { return 100 + i }
func tone(i int) int   { return 80 + i }

// strongest returns the period of a sound, between from and to samples, by autocorrelation. All voices and tones are
// within one octave, so that a multiple of the period is not found instead.
func strongest(pcm []int16, from, to int) int {
	best, at := 0.0, -1
	for lag := from; lag < to; lag++ {
		sum := 0.0
		for i := lag; i < len(pcm); i++ {
			sum += float64(pcm[i]) * float64(pcm[i-lag])
		}
		if sum /= float64(len(pcm) - lag); sum > best {
			best, at = sum, lag
		}
	}
	return at
}

// pitched is a recognizer whose transcript is the number of the voice.
type pitched struct{}

func (pitched) Name() string { return "pitched" }

func (pitched) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	pcm := make([]int16, 24000) // the pre-roll and the first second
	n, err := u.Read(ctx, pcm, 0)
	if err != nil {
		return voice.Transcript{}, err
	}
	return voice.Transcript{Text: fmt.Sprint(strongest(pcm[n/2:n], period(0)-2, period(52)) - period(0))}, nil
}

// toner is a synthesizer that speaks a number as a tone of 600 ms.
type toner struct{}

func (toner) Name() string { return "toner" }

func (toner) Synthesize(_ context.Context, text string, _ voice.Options, out func([]int16) error) error {
	i := 0
	if _, err := fmt.Sscan(text, &i); err != nil {
		return err
	}
	pcm := make([]int16, voice.SpeakerRate*6/10)
	for n := range pcm {
		pcm[n] = int16(n % tone(i) * 8000 / tone(i))
	}
	return out(pcm)
}

// manyTalks is a server with several robots.
type manyTalks struct {
	lines  []*fakeChannel
	server *Server
	bus    *event.Bus
	ended  []chan struct{}
	began  time.Time
}

// schedule runs talkAll in a synctest bubble and then after, and returns the times at which the packets of each robot
// were sent.
func schedule(t *testing.T, n, stuck int, after func(*manyTalks), before ...func(*event.Bus)) (times [][]time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		c := talkAll(t, n, stuck, before...)
		after(c)
		for _, l := range c.lines {
			var of []time.Duration
			for _, at := range l.packets() {
				of = append(of, at.Sub(c.began))
			}
			times = append(times, of)
		}
		c.bus.Close()
	})
	return times
}

// talkAll connects n robots, each of which has two turns, at the same time as the others. The robot with the index
// stuck, if it is not negative, stops reading in the middle of its first turn.
func talkAll(t *testing.T, n, stuck int, before ...func(*event.Bus)) *manyTalks {
	c := &manyTalks{began: time.Now()}
	echo := &scriptedMind{answer: func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		if err := out(agent.Say{Text: turn.Text}); err != nil {
			return err
		}
		return out(agent.Done{End: agent.Continue})
	}}
	k := newTalk(t, echo, func(o *Options) { o.Recognizer, o.Synthesizer = pitched{}, toner{} })
	c.server, c.bus = k.server, k.bus
	for _, f := range before {
		f(k.bus)
	}
	var speech, silence [][][]byte
	for i := range n {
		line := newFakeChannel()
		c.lines = append(c.lines, line)
		c.ended = append(c.ended, k.connect(line, device.ID(fmt.Sprintf("a0b1c2d3%04d", i))))
		s, q := spokenBy(t, period(i))
		speech, silence = append(speech, s), append(silence, q)
	}
	all := func(f func(i int) frame) {
		for i, l := range c.lines {
			select {
			case l.up <- uplink{frame: f(i)}:
			case <-l.closed:
			}
		}
		synctest.Wait()
	}
	all(func(int) frame { return frame{message: xiaozhi.Hello{}} })
	for turn := range 2 {
		all(func(int) frame { return frame{message: xiaozhi.ListenStart{Mode: xiaozhi.Auto}} })
		for p := range speech[0] {
			all(func(i int) frame { return frame{audio: xiaozhi.Audio{Opus: speech[i][p]}} })
			time.Sleep(voice.FrameDuration)
		}
		for p := range 15 {
			all(func(i int) frame { return frame{audio: xiaozhi.Audio{Opus: silence[i][p]}} })
			time.Sleep(voice.FrameDuration)
		}
		if turn == 0 && stuck >= 0 {
			c.lines[stuck].stuck.Store(true)
		}
		k.pass(12 * time.Second)
	}
	k.server.Close()
	<-k.ended
	for _, ended := range c.ended {
		<-ended
	}
	return c
}

// heardAt returns the numbers of the answers that were sent on a channel, by the pitch of their sound.
func heardAt(t *testing.T, l *fakeChannel) []int {
	t.Helper()
	decoder, err := voice.NewDecoder(voice.SpeakerRate)
	must.Succeed(t, err)
	var answers []int
	var pcm []int16
	for _, s := range l.all() {
		switch {
		case s.message == nil:
			decoded, err := decoder.Decode(s.audio.Opus)
			must.Succeed(t, err)
			pcm = append(pcm, decoded...)
		case s.message == (xiaozhi.TTSStop{}) && len(pcm) > voice.SpeakerRate/2:
			answers = append(answers, strongest(pcm[2400:9600], tone(0)-2, tone(52))-tone(0))
			pcm = nil
		}
	}
	return answers
}

// TestNobodyHearsAnother checks that each of two and of fifty robots that talk at the same time gets its own answers.
func TestNobodyHearsAnother(t *testing.T) {
	for _, n := range []int{2, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := talkAll(t, n, -1)
				for i, l := range c.lines {
					if got := heardAt(t, l); !slices.Equal(got, []int{i, i}) {
						t.Errorf("robot %d hears the answers %v", i, got)
					}
					if want := fmt.Sprintf("stt %d, tts start, sentence %d, 10 packets, tts stop", i, i); strings.Count(l.story(), want) != 2 {
						t.Errorf("robot %d is sent %s", i, l.story())
					}
				}
				c.bus.Close()
			})
		})
	}
}

// TestARobotThatStopsReadingDisturbsNobody checks that a robot that does not read is disconnected, which is published,
// and that the packets of the others are sent at the same times as without it.
func TestARobotThatStopsReadingDisturbsNobody(t *testing.T) {
	without := schedule(t, 10, -1, func(*manyTalks) {})
	with := schedule(t, 10, 3, func(c *manyTalks) {
		if l := c.lines[3]; !isClosed(l) || l.reason != "sending failed" || c.server.Lost() != 1 {
			t.Errorf("the robot that does not read: closed %v, %q; %d are counted", isClosed(l), l.reason, c.server.Lost())
		}
	})
	for i := range without {
		if i != 3 && !slices.Equal(without[i], with[i]) {
			t.Errorf("robot %d's packets leave at\n%v\nand without the other at\n%v", i, with[i], without[i])
		}
	}
}

// TestAReaderThatStopsDisturbsNobody checks that a reader of the bus that stops reading, as after the stop of an MQTT
// broker, does not change the times at which the packets of twenty robots are sent.
func TestAReaderThatStopsDisturbsNobody(t *testing.T) {
	without := schedule(t, 20, -1, func(*manyTalks) {})
	with := schedule(t, 20, -1, func(*manyTalks) {}, func(b *event.Bus) {
		stopped := b.Read()
		go func() { _, _ = stopped.Next(context.Background()) }() // reads one event and no other
		go func() {
			for range 20_000 { // as many events as many robots publish
				b.Publish("a0b1c2d3ffff", "", event.Said{Text: "x"})
				time.Sleep(time.Millisecond)
			}
		}()
	})
	for i := range without {
		if len(without[i]) != 20 || !slices.Equal(without[i], with[i]) {
			t.Errorf("robot %d's packets leave at\n%v\nand without the reader at\n%v", i, with[i], without[i])
		}
	}
}

// spokenPackets returns packets with vowels and with silence, as a robot's microphone sends them. They are encoded once,
// because that takes longer than most tests.
func spokenPackets(t *testing.T) (speech, silence [][]byte) {
	t.Helper()
	vowels.once.Do(func() { vowels.speech, vowels.silence = spokenBy(t, voice.MicRate/120) })
	return vowels.speech, vowels.silence
}

var vowels struct {
	once            sync.Once
	speech, silence [][]byte
}

// spokenBy returns such packets for a voice with the given period in samples.
func spokenBy(t *testing.T, period int) (speech, silence [][]byte) {
	t.Helper()
	encoder, err := voice.NewMicEncoder()
	must.Succeed(t, err)
	var into *[][]byte
	keep := func(p []byte) error { *into = append(*into, append([]byte(nil), p...)); return nil }
	into = &speech
	must.Succeed(t, encoder.Encode(vowelsOf(20*voice.MicFrame, period), keep))
	into = &silence
	must.Succeed(t, encoder.Encode(make([]int16, 40*voice.MicFrame), keep))
	return speech, silence
}

// vowelsOf returns n samples of a sound with syllables, with the formants of a voice and the given period in samples.
func vowelsOf(n, period int) []int16 {
	pcm := make([]int16, n)
	var y1, y2, z1, z2 float64
	for i := range pcm {
		pulse := 0.0
		if i%period == 0 {
			pulse = 9000
		}
		if i%4000 > 3200 {
			pulse = 0 // between syllables
		}
		y := pulse + 1.77*y1 - 0.87*y2 // about 600 Hz
		y2, y1 = y1, y
		z := y + 1.35*z1 - 0.85*z2 // about 1.2 kHz
		z2, z1 = z1, z
		pcm[i] = int16(max(-30000, min(30000, z/6)))
	}
	return pcm
}
