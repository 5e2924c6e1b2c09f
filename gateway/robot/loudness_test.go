package robot

import (
	"context"
	"sync"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/must"
	"perch/voice"
)

// syllables returns half a second of tone and half a second of silence, alternately. The mean of the tone is zero, as in
// speech, because a step of the mean is inaudible but disturbs the codec for a long time.
func syllables(seconds int) []int16 {
	pcm := make([]int16, seconds*voice.SpeakerRate)
	for i := range pcm {
		if i/(voice.SpeakerRate/2)%2 == 0 {
			pcm[i] = int16(i%100*220 - 10890)
		}
	}
	return pcm
}

// syllabic is a synthesizer that speaks each text as syllables.
type syllabic struct {
	beepSynthesizer
	seconds int
}

func (s *syllabic) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	return out(syllables(s.seconds))
}

// edge is the opening or shutting of a mouth.
type edge struct {
	at   time.Time
	open bool
}

// watchMouth records when the robot's mouth opens and shuts, until edges is called, which returns the record.
func (k *talk) watchMouth() (edges func() []edge) {
	var mu sync.Mutex
	var all []edge
	ctx, stop := context.WithCancel(k.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for open := false; ; {
			level, changed := k.loudness()
			if is := level > 0; is != open {
				open = is
				mu.Lock()
				all = append(all, edge{time.Now(), open})
				mu.Unlock()
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() []edge {
		stop()
		watching.Wait()
		return all
	}
}

// heardEdges returns when the sound begins and ends as the robot plays it. The robot plays the packets one after the
// other, each as soon as it has arrived and the previous one was played.
func (k *talk) heardEdges() (all []edge) {
	decoder, err := voice.NewDecoder(voice.SpeakerRate)
	must.Succeed(k.t, err)
	const window = voice.SpeakerRate / 100
	var plays time.Time
	open := false
	for _, s := range k.channel.all() {
		if s.message != nil {
			continue
		}
		if plays.Before(s.at) {
			plays = s.at
		}
		pcm, err := decoder.Decode(s.audio.Opus)
		must.Succeed(k.t, err)
		for i := 0; i+window <= len(pcm); i += window {
			if is := voice.Level(pcm[i:i+window]) > 0; is != open {
				open = is
				all = append(all, edge{plays.Add(time.Duration(i) * time.Second / voice.SpeakerRate), open})
			}
		}
		plays = plays.Add(voice.FrameDuration)
	}
	return all
}

// loudness returns the present loudness of the robot's speech, and a channel that is closed when it changes.
func (k *talk) loudness() (level float64, changed <-chan struct{}) {
	return k.server.options.Loudness.Level(string(robotID))
}

// TestTheMouthFollowsTheSpeech checks that the mouth moves within 50 ms of the speech as the robot plays it.
func TestTheMouthFollowsTheSpeech(t *testing.T) {
	mind := answer("One.", "Two.")
	talking(t, mind, func(k *talk) {
		edges := k.watchMouth()
		k.hears(xiaozhi.Auto, "x")
		k.pass(30 * time.Second)
		k.wantEdges(edges(), k.heardEdges(), 8)
	}, func(o *Options) { o.Synthesizer = &syllabic{seconds: 4} })
}

func (k *talk) wantEdges(got, want []edge, syllables int) {
	k.t.Helper()
	if len(got) != len(want) || len(want) != 2*syllables {
		k.t.Fatalf("the mouth opened and shut %d times, the speech %d times", len(got), len(want))
	}
	worst := time.Duration(0)
	for i := range want {
		off := got[i].at.Sub(want[i].at)
		if got[i].open != want[i].open || off.Abs() > 50*time.Millisecond {
			k.t.Errorf("%d: the mouth is %v %s after the speech is %v", i, got[i].open, off, want[i].open)
		}
		worst = max(worst, off.Abs())
	}
	k.t.Logf("the mouth is off by %s at most", worst)
}

// TestTheMouthShuts checks that the mouth shuts at a barge-in and at the end of the channel.
func TestTheMouthShuts(t *testing.T) {
	opens := func(k *talk, want float64, when string) {
		k.t.Helper()
		if level, _ := k.loudness(); level != want {
			k.t.Errorf("%s it is open by %g", when, level)
		}
	}
	for _, end := range []struct {
		name string
		do   func(k *talk)
	}{
		{"a barge-in", func(k *talk) { k.say(xiaozhi.Abort{}) }},
		{"the end of the channel", func(k *talk) {
			k.leave()
		}},
	} {
		t.Run(end.name, func(t *testing.T) {
			talking(t, answer("One."), func(k *talk) {
				edges := k.watchMouth()
				k.hears(xiaozhi.Auto, "x")
				for _, speaks := range []bool{false, true, false} { // until the first silence
					for level, _ := k.loudness(); (level > 0) != speaks; level, _ = k.loudness() {
						k.pass(10 * time.Millisecond)
					}
				}
				k.pass(250 * time.Millisecond)
				opens(k, 0, "between two syllables")
				k.pass(500 * time.Millisecond)
				opens(k, 1, "while it speaks")
				end.do(k)
				opens(k, 0, "after "+end.name)
				before := k.channel.all()
				k.pass(5 * time.Second)
				opens(k, 0, "later")
				if e := edges(); len(e)%2 != 0 || e[len(e)-1].at.After(before[len(before)-1].at.Add(50*time.Millisecond)) {
					t.Errorf("it moves after %s: %v", end.name, e)
				}
			}, func(o *Options) { o.Synthesizer = &syllabic{seconds: 10} })
		})
	}
}
