package voice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// answersOf are sentences of our speech, callsOf sentences of people who
// interrupt it.
var (
	answersOf = []string{
		"The weather tomorrow will be mostly sunny with a light breeze from the west, and the temperature will reach about twenty two degrees in the afternoon.",
		"Once upon a time there was a small robot who lived on a shelf between two plants. Every morning it looked out of the window and counted the birds.",
		"I have set a timer for ten minutes. When it rings, please take the bread out of the oven, and let it cool down before you cut it.",
		"There are three things on your list today: call the dentist, buy milk and eggs, and send the parcel to your sister before six o'clock.",
		"No, I don't think so! Whales are not fish, they breathe air as you and I do. Well, as you do. Shall I tell you what they eat?",
	}
	callsOf = []string{"stop please", "no wait, I meant something else", "what time is it", "be quiet now", "hey, listen to me",
		"can you set the volume lower"}
)

// ourVoices are voices of espeak-ng for our speech. The people in these tests
// have voices of flite.
var ourVoices = []string{"en-us", "en-gb-x-rp", "en-us+f3", "de", "en-gb-scotland+f2", "en-us+m7"}

// conversation returns n answers, each shortly after the one before, and the time
// when they end.
func conversation(t testing.TB, name string, from, n int, stalls ...stall) (answers []answer, ends time.Duration) {
	t.Helper()
	at := 517 * time.Millisecond
	for i := range n {
		a := answered(t, at, espeak(t, name, answersOf[(from+i)%len(answersOf)]))
		a.stalls = stalls
		answers = append(answers, a)
		at = a.ends() + time.Duration(700+31*i)*time.Millisecond
	}
	return answers, at
}

// began returns the times at which speech began.
func began(out []heard) (at []time.Duration) {
	for _, h := range out {
		if h.edge == voice.SpeechBegan {
			at = append(at, h.at)
		}
	}
	return at
}

// oursIn returns the total duration of the answers.
func oursIn(answers []answer) (d time.Duration) {
	for _, a := range answers {
		d += a.ends() - a.at
	}
	return d
}

// motors is the RMS of the noise of motors: -50 dBFS.
const motors = 103

func TestOurVoiceNeverInterruptsUs(t *testing.T) {
	if testing.Short() {
		t.Skip("conversations in rooms take minutes to compute, in make test-all")
	}
	rooms := []room{
		{delay: 20 * time.Millisecond, reverb: 50 * time.Millisecond, stamps: queued, seed: 11},
		{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, stamps: jumpy, seed: 12},
		{delay: 120 * time.Millisecond, reverb: 150 * time.Millisecond, stamps: queued, bent: true, seed: 13},
	}
	for _, gain := range []float64{-10, -30, -20, -3, 0} {
		t.Run(fmt.Sprintf("%v dB", gain), func(t *testing.T) {
			t.Parallel()
			voices := ourVoices
			if gain != -10 {
				voices = ourVoices[:2]
			}
			spoken, interrupted := time.Duration(0), 0
			for i, name := range voices {
				r := rooms[(i+int(-gain))%len(rooms)]
				r.gain, r.noise = gain, motors
				answers, ends := conversation(t, name, i, 4)
				at := began(talk(t, answers, r.scene(t, answers, ends).hears(t, nil)))
				spoken += oursIn(answers)
				if interrupted += len(at); len(at) > 0 {
					t.Errorf("%s, delay %s: interrupted at %v", name, r.delay, at)
				}
			}
			t.Logf("interrupted %d times in %s of our speech", interrupted, spoken.Round(time.Second))
		})
	}
}

// TestTroubleOnTheWayNeverInterruptsUs checks that our voice does not count as a
// person's if the robot has nothing to play for a moment, or if frames of the
// microphone are lost.
func TestTroubleOnTheWayNeverInterruptsUs(t *testing.T) {
	if testing.Short() {
		t.Skip("conversations in rooms take minutes to compute, in make test-all")
	}
	dry := []stall{{25, 131 * time.Millisecond}, {52, 37 * time.Millisecond}, {78, 271 * time.Millisecond}, {101, 517 * time.Millisecond}}
	for i, c := range []struct {
		name   string
		stalls []stall
		loses  int
	}{{"dry", dry, 0}, {"lossy", nil, 60}, {"both", dry, 80}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := room{delay: 40 * time.Millisecond, reverb: 120 * time.Millisecond, gain: -10, noise: motors, loses: c.loses, seed: uint64(20 + i)}
			answers, ends := conversation(t, ourVoices[i], i, 4, c.stalls...)
			if at := began(talk(t, answers, r.scene(t, answers, ends).hears(t, nil))); len(at) > 0 {
				t.Errorf("interrupted at %v", at)
			}
		})
	}
}

// over counts interruptions of our speech.
type over struct {
	people, soon, late int // by people: all, noticed within 600 ms, noticed within 1 s
	ours               int // by our own voice
}

func (o *over) add(p over) {
	o.people, o.soon, o.late, o.ours = o.people+p.people, o.soon+p.soon, o.late+p.late, o.ours+p.ours
}

// calls returns the sound of a person who interrupts each answer after two
// seconds or more, and the times of the interruptions. The person is louder than
// our voice at the microphone by louder, in dB.
func (r *scene) calls(t testing.TB, from int, louder float64) (sound []int16, starts []time.Duration) {
	t.Helper()
	for i, a := range r.answers {
		call := trimmed(flite(t, []string{"slt", "rms", "awb"}[(from+i)%3], callsOf[(from+i)%len(callsOf)]))
		gain := loudness(played(t, []answer{a}, samples(r.ends))) * decibels(r.gain+louder) / loudness(call)
		start := a.at + 2*time.Second + time.Duration(i)*773*time.Millisecond
		starts = append(starts, start)
		sound = append(sound, make([]int16, samples(start)-len(sound))...)
		for _, s := range call {
			sound = append(sound, int16(max(math.MinInt16, min(math.MaxInt16, float64(s)*gain))))
		}
	}
	return sound, starts
}

// noticed compares at, the times at which the EndPointer found speech, with
// starts, the times at which people began to speak.
func noticed(at, starts []time.Duration) (o over) {
	near := func(start, within time.Duration) bool {
		return slices.ContainsFunc(at, func(at time.Duration) bool { return at > start && at-start <= within })
	}
	for _, start := range starts {
		o.people++
		if near(start, 600*time.Millisecond) {
			o.soon++
		}
		if near(start, time.Second) {
			o.late++
		}
	}
	for _, at := range at {
		if !slices.ContainsFunc(starts, func(start time.Duration) bool { return at > start && at-start < 3*time.Second }) {
			o.ours++
		}
	}
	return o
}

// TestAPersonInterruptsUs checks how many people who speak during our answers are noticed. A voice as loud as ours is
// noticed three times in four on average. The limits leave room for the different rounding of processors.
func TestAPersonInterruptsUs(t *testing.T) {
	if testing.Short() {
		t.Skip("conversations in rooms take minutes to compute, in make test-all")
	}
	rooms := []room{
		{delay: 20 * time.Millisecond, reverb: 50 * time.Millisecond, gain: -10, noise: motors, seed: 31},
		{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: -10, noise: motors, stamps: jumpy, seed: 32},
		{delay: 120 * time.Millisecond, reverb: 150 * time.Millisecond, gain: -10, noise: motors, bent: true, seed: 33},
	}
	levels := []float64{6, 0, -6}
	var mu sync.Mutex
	results := make([]over, len(levels))
	t.Run("rooms", func(t *testing.T) {
		for i, r := range rooms {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				answers, ends := conversation(t, ourVoices[i], i, 8)
				s := r.scene(t, answers, ends)
				for k, louder := range levels {
					person, starts := s.calls(t, i, louder)
					o := noticed(began(talk(t, answers, s.hears(t, person))), starts)
					mu.Lock()
					results[k].add(o)
					mu.Unlock()
				}
			})
		}
	})
	for k, louder := range levels {
		o := results[k]
		t.Logf("a person at %+.0f dB: %d of %d noticed within 600 ms, %d within 1 s", louder, o.soon, o.people, o.late)
		if louder >= 6 && 10*o.soon < 9*o.people || louder >= 0 && 10*o.late < 6*o.people {
			t.Error("that is too few")
		}
		if o.ours > 0 {
			t.Errorf("at %+.0f dB we interrupted ourselves %d times", louder, o.ours)
		}
	}
}

// TestWhatIsLeftIsThePerson checks that Echo removes our voice, but not the voice of a
// person who interrupts us.
func TestWhatIsLeftIsThePerson(t *testing.T) {
	r := room{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: -10, noise: 20, seed: 41}
	answers, ends := conversation(t, "en-us", 0, 3)
	frames := r.scene(t, answers, ends).hears(t, nil)
	before, after := 0.0, 0.0
	for _, h := range talk(t, answers, frames) {
		if last := answers[2]; h.at > last.at+time.Second && h.at < last.ends() {
			before += math.Pow(voicetest.RMS(h.frame.pcm), 2)
			after += math.Pow(voicetest.RMS(h.pcm), 2)
		}
	}
	if db := 10 * math.Log10(before/after); db < 7 {
		t.Errorf("the third answer is only %.1f dB weaker than it was", db)
	} else {
		t.Logf("the third answer is %.1f dB weaker", db)
	}
}

func TestWithoutOurSpeechNothingChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := newEcho(t)
	for range 100 {
		pcm := noise(voice.FrameDuration, 2000, r)
		want := slices.Clone(pcm)
		if clean, ours := e.Process(r.Uint32(), pcm); ours || !slices.Equal(clean, want) {
			t.Fatal("a frame was changed, or taken for ours")
		}
	}
	e.Silence()
	if _, ours := e.Process(0, noise(voice.FrameDuration, 2000, r)); ours {
		t.Error("after a silence that followed none of our speech a frame is ours")
	}
}

// TestAfterSilence checks that a person is noticed who speaks 300 ms after our
// speech has ended, or was stopped in the middle.
func TestAfterSilence(t *testing.T) {
	call := trimmed(flite(t, "slt", "what time is it"))
	for name, cut := range map[string]int{"ended": 0, "stopped": 60} {
		t.Run(name, func(t *testing.T) {
			r := room{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: -10, noise: 20, seed: 51}
			answers, _ := conversation(t, "en-us", 0, 1)
			played := answers
			if cut > 0 {
				a := answers[0]
				a.packets = a.packets[:cut]
				played = []answer{a}
			}
			start := played[0].ends() + 300*time.Millisecond
			ends := start + 3*time.Second
			person := append(make([]int16, samples(start)), call...)
			alone := edges(t, throughRobot(t, append(make([]int16, samples(time.Second)), call...)))
			frames := r.scene(t, played, ends).hears(t, person)
			out := talkUntil(t, answers, frames, played[0].ends())
			at := began(out)
			if len(at) != 1 || len(alone) == 0 || at[0]-start > alone[0].at-time.Second+120*time.Millisecond {
				t.Fatalf("speech began at %v, the person at %s; alone it is noticed after %s", at, start, alone[0].at-time.Second)
			}
			for _, h := range out {
				if h.at > start+200*time.Millisecond && (h.ours || !slices.Equal(h.pcm, h.frame.pcm)) {
					t.Fatalf("the frame at %s is changed, or ours (%v)", h.at, h.ours)
				}
			}
		})
	}
}

// TestWithoutStampsAllIsOurs checks that without stamps, no speech is found during
// our speech.
func TestWithoutStampsAllIsOurs(t *testing.T) {
	r := room{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: 0, noise: 20, stamps: without, seed: 61}
	answers, ends := conversation(t, "en-us", 0, 2)
	person := append(make([]int16, samples(answers[0].at+2*time.Second)), flite(t, "rms", "what time is it")...)
	out := talk(t, answers, r.scene(t, answers, ends+time.Second).hears(t, person))
	if at := began(out); len(at) > 0 {
		t.Errorf("speech began at %v", at)
	}
	for _, h := range out {
		for _, a := range answers {
			if h.at > a.at && h.at < a.ends()+300*time.Millisecond && !h.ours {
				t.Fatalf("the frame at %s is not ours", h.at)
			}
		}
	}
	if last := out[len(out)-1]; last.ours {
		t.Error("long after our speech a frame is still ours")
	}
}

// TestAToolBetweenTwoSentences checks that a person is noticed in a long pause in our speech,
// for example while a tool runs. Silence is not called then; only the stamps show the pause.
func TestAToolBetweenTwoSentences(t *testing.T) {
	r := room{delay: 60 * time.Millisecond, reverb: 100 * time.Millisecond, gain: -10, noise: 20, seed: 71}
	answers, ends := conversation(t, "en-us", 0, 1)
	start := answers[0].ends() + 1500*time.Millisecond
	person := append(make([]int16, samples(start)), trimmed(flite(t, "rms", "what time is it"))...)
	out := talkUntil(t, answers, r.scene(t, answers, ends+4*time.Second).hears(t, person), time.Hour)
	if at := began(out); len(at) != 1 || at[0]-start > 600*time.Millisecond {
		t.Errorf("speech began at %v, the person at %s", at, start)
	}
}

// TestUnheardSpeechIsNotKept checks a frame of the microphone after many packets
// without any, as from a robot in auto mode, whose microphone is off while we
// speak. Echo has only the latest packets then.
func TestUnheardSpeechIsNotKept(t *testing.T) {
	e := newEcho(t)
	answers, _ := conversation(t, "en-us", 0, 1)
	pcm := make([]int16, voice.MicFrame)
	for round := range 3 {
		for i := range 1000 {
			e.Sent(stampOf(round, i), answers[0].packets[i%len(answers[0].packets)])
		}
		if _, ours := e.Process(stampOf(round, 990), pcm); !ours {
			t.Error("a silent frame is not ours while we speak")
		}
	}
}

func TestTwoGoroutines(t *testing.T) {
	e := newEcho(t)
	answers, _ := conversation(t, "en-us", 0, 1)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i, p := range answers[0].packets {
			e.Sent(stampOf(0, i), p)
			if i%20 == 19 {
				e.Silence()
			}
		}
	})
	pcm := make([]int16, voice.MicFrame)
	for i := range answers[0].packets {
		e.Process(stampOf(0, i), pcm)
	}
	writer.Wait()
}

func TestEchoAllocatesNothing(t *testing.T) {
	e, frame := talking(t)
	if n := testing.AllocsPerRun(200, frame); n > 0 {
		t.Errorf("%v allocations a frame", n)
	}
	huge := make([]byte, 1<<20)
	if n := testing.AllocsPerRun(50, func() { e.Sent(1, huge) }); n > 0 {
		t.Errorf("%v allocations for what is no packet", n)
	}
	e.Close()
	frame() // must not panic after Close
}
