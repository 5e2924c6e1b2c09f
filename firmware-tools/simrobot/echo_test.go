package simrobot

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/must"
	"perch/voice"
)

// decibels returns the power of pcm in dB, relative to full scale.
func decibels(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(sum/float64(len(pcm))/(1<<30))
}

func TestEchoHasGainDelayAndReverb(t *testing.T) {
	quiet := voice.NewResampler(voice.SpeakerRate, voice.MicRate)
	for seed := range uint64(5) {
		e := newEcho(seed)
		start := time.Now()
		var played, heard []int16
		m := must.Value(newMic(seed))(t)
		for n := range 50 {
			at := start.Add(time.Duration(n) * voice.FrameDuration)
			if n < 30 {
				pcm := make([]int16, voice.SpeakerFrame)
				for i := range pcm {
					pcm[i] = int16(m.rand.NormFloat64() * 2000)
				}
				e.play(at, voice.SpeakerRate, pcm)
				played = append(played, quiet.Resample(pcm)...)
			}
			frame := make([]int16, voice.MicFrame)
			e.mix(frame, at)
			heard = append(heard, frame...)
		}
		quiet = voice.NewResampler(voice.SpeakerRate, voice.MicRate)
		if got := decibels(heard[3200:28800]) - decibels(played[3200:28800]); math.Abs(got-echoGain) > 2 {
			t.Errorf("seed %d: the echo is %.1f dB of what was played", seed, got)
		}
		early, late := samples(echoDelay), 30*voice.MicFrame+samples(echoDelay+echoReverb)
		if n := loudest(heard[:early]); n > 0 {
			t.Errorf("seed %d: %d loud before the delay", seed, n)
		}
		if n := loudest(heard[early : early+200]); n < 20 {
			t.Errorf("seed %d: only %d loud right after the delay", seed, n)
		}
		if n := loudest(heard[late+100:]); n > 0 || len(e.line) > 2*voice.MicRate {
			t.Errorf("seed %d: %d loud after all has decayed; %d samples kept", seed, n, len(e.line))
		}
	}
}

func TestMicrophoneHearsEcho(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		echoes bool
	}{
		{"server", Options{AEC: AECServer}, true},
		{"off, but realtime", Options{Mode: xiaozhi.Realtime}, true},
		{"device", Options{AEC: AECDevice}, false},
	} {
		c.o.Stay, c.o.Framing = true, 2
		talk(t, c.o, func(s *server, _ *Robot) {
			s.opens(`"mode":"realtime"`)
			s.text(ttsStart)
			time.Sleep(10 * time.Millisecond)
			s.drain(t)
			for range 10 {
				s.stamped(7)
				time.Sleep(voice.FrameDuration)
			}
			loud := 0
			for _, f := range s.drain(t) {
				if loudest(f.pcm) > 1000 { // the echo of the tone has an amplitude of about 2500: 8000 at -10 dB
					loud++
				}
			}
			if c.echoes != (loud >= 8) || !c.echoes && loud > 0 {
				t.Errorf("%s: %d loud packets of ten", c.name, loud)
			}
		})
	}
}

// uplink is a decoded packet of the microphone.
type uplink struct {
	stamp uint32
	pcm   []int16
}

// drain removes all queued messages of the robot, which must be packets in framing 2, and returns them.
func (s *server) drain(t *testing.T) (all []uplink) {
	t.Helper()
	if s.decoder == nil {
		s.decoder, _ = voice.NewDecoder(voice.MicRate)
	}
	for len(s.from) > 0 {
		a := must.Value(xiaozhi.Framing2.Parse((<-s.from).data))(t)
		all = append(all, uplink{a.Timestamp, slices.Clone(must.Value(s.decoder.Decode(a.Opus))(t))})
	}
	return all
}

// stamped sends a packet of sound with a timestamp, in framing 2.
func (s *server) stamped(stamp uint32) {
	s.to <- arrival{data: xiaozhi.Framing2.Append(nil, xiaozhi.Audio{Timestamp: stamp, Opus: tone})}
}

func TestPacketsNameThePacketBeingPlayed(t *testing.T) {
	stats, err := talk(t, Options{Stay: true, AEC: AECServer, Framing: 2}, func(s *server, _ *Robot) {
		s.opens(`"mode":"realtime"`)
		time.Sleep(600 * time.Millisecond)
		for _, f := range s.drain(t) {
			if f.stamp != 0 {
				t.Errorf("stamp %d before anything was played", f.stamp)
			}
		}
		s.speaks(0)
		for n := range uint32(10) { // all at once, so that the timestamps of arriving and of played packets differ
			s.stamped(1000 + 60*n)
		}
		time.Sleep(time.Second)
		var got []uint32
		for _, f := range s.drain(t) {
			if f.stamp != 0 {
				got = append(got, f.stamp)
			}
		}
		if len(got) != 10 || got[0] != 1000 || got[9] != 1540 {
			t.Errorf("stamps %d, want 1000 to 1540", got)
		}
	})
	if err != nil || stats.Stamped != 10 {
		t.Errorf("%v; %d stamped", err, stats.Stamped)
	}
}

func TestOnlyServerAECInFraming2HasTimestamps(t *testing.T) {
	for name, o := range map[string]Options{
		"device":    {AEC: AECDevice, Framing: 2},
		"off":       {Mode: xiaozhi.Realtime, Framing: 2},
		"framing 1": {AEC: AECServer, Framing: 1},
		"framing 3": {AEC: AECServer, Framing: 3},
	} {
		o.Stay = true
		stats, _ := talk(t, o, func(s *server, _ *Robot) {
			s.opens(`"mode":"realtime"`)
			s.speaks(0)
			for n := range uint32(5) {
				s.to <- arrival{data: o.Framing.Append(nil, xiaozhi.Audio{Timestamp: n + 1, Opus: tone})}
			}
			time.Sleep(time.Second)
			for len(s.from) > 0 {
				if m := <-s.from; o.Framing == 2 && binary.BigEndian.Uint32(m.data[8:]) != 0 {
					t.Errorf("%s: a stamp", name)
				}
			}
		})
		if stats.Stamped != 0 || stats.Played != 5 {
			t.Errorf("%s: %d stamped, %d played", name, stats.Stamped, stats.Played)
		}
	}
}

func TestTimestampQueueHoldsThree(t *testing.T) {
	var s stamps
	s.played(0)
	if got := s.next(); got != 0 || len(s) != 0 {
		t.Errorf("a packet without a stamp gives %d", got)
	}
	for n := range uint32(5) {
		s.played(n + 1)
	}
	for i, want := range []uint32{0, 0, 3, 4, 5, 0} {
		if got := s.next(); got != want {
			t.Errorf("number %d: %d, want %d", i, got, want)
		}
	}
}

func TestResetDropsTimestamps(t *testing.T) {
	var stats Stats
	var s stamps
	p := newPlayer(&stats)
	p.out.stamps = &s
	now := time.Now()
	for n := range uint32(5) {
		p.push(now, xiaozhi.Audio{Timestamp: n + 1, Opus: []byte{1}})
	}
	if len(s) != 1 || s[0] != 1 {
		t.Errorf("stamps %d while the first is played", s)
	}
	if n := p.reset(); n != 4 || len(s) != 0 {
		t.Errorf("%d lost, stamps %d left", n, s)
	}
}
