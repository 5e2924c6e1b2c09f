package voice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/voice"
)

func TestMaxSpeech(t *testing.T) {
	for _, c := range []struct {
		letters int
		want    time.Duration
	}{{0, 10 * time.Second}, {6, 13 * time.Second}, {220, 2 * time.Minute}, {600, 2 * time.Minute}, {4096, 819200 * time.Millisecond}} {
		if got := voice.MaxSpeech(strings.Repeat("ü", c.letters)); got != c.want {
			t.Errorf("%d letters are worth %s, want %s", c.letters, got, c.want)
		}
	}
}

func TestPlayableRates(t *testing.T) {
	for _, rate := range []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000} {
		if !voice.Playable(rate) {
			t.Errorf("%d Hz cannot be played", rate)
		}
	}
	for _, rate := range []int{-1, 0, 3, 7999, 23999, 47999, 48025, 96000, 191999, 1 << 40} {
		if voice.Playable(rate) {
			t.Errorf("%d Hz can be played", rate)
		}
	}
}

// TestConverterIsBounded checks that a Converter passes sound up to the limit and no more, also
// if the rate changes.
func TestConverterIsBounded(t *testing.T) {
	heard := 0
	c := voice.NewConverter(time.Second, nil, func(pcm []int16) error { heard += len(pcm); return nil })
	if c.SetRate(191999) || !c.SetRate(48000) {
		t.Fatal("the rates")
	}
	if err := c.Convert(make([]int16, 24000)); err != nil || !c.Sounded() {
		t.Fatal(err)
	}
	c.SetRate(24000)
	if err := c.Convert(make([]int16, 24000)); !errors.Is(err, voice.ErrEndless) || heard != voice.SpeakerRate {
		t.Errorf("%d samples, %v", heard, err)
	}
	stop := errors.New("stop")
	c = voice.NewConverter(time.Second, nil, func([]int16) error { return stop })
	c.SetRate(24000)
	if err := c.Convert(make([]int16, 48000)); err != stop {
		t.Error(err)
	}
}

// TestArrival checks that a piece of sound raises the time left by eight times its duration.
func TestArrival(t *testing.T) {
	a := voice.NewArrival(10 * time.Second)
	a.Waited(8 * time.Second)
	if a.Received(time.Second); a.Left() != 10*time.Second || a.Trickles() {
		t.Errorf("the beginning is counted: %s", a.Left())
	}
	a.Waited(9 * time.Second)
	if a.Received(time.Second); a.Left() != 9*time.Second || !a.Trickles() {
		t.Errorf("%s are left", a.Left())
	}
	a.Waited(time.Minute)
	if a.Left() != 0 {
		t.Errorf("%s are left", a.Left())
	}
}
