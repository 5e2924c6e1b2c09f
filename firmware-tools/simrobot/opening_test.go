package simrobot

import (
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/must"
	"perch/voice"
)

func TestWakeWordOpensChannel(t *testing.T) {
	const wakeEvent = `"name":"wake_word_detected","data":{"phrase":"Hi, ESP","direction":"centre","balance":0.02,"energy":910000000,"state":3}}`
	for _, c := range []struct {
		firmware, phrase string
		mode             xiaozhi.Mode
		events           []string
		listens          string
	}{
		{"2.1", "Hi, Stack Chan", xiaozhi.Auto, nil, "auto"},
		{"2.2.4", "Hi, Stack Chan", xiaozhi.Realtime, nil, "realtime"},
		{"2.4", "Hi, Stack Chan", xiaozhi.Manual, nil, "auto"}, // after a wake word the listening mode is never manual
		{"dotty", "Hi, ESP", xiaozhi.Auto, []string{`"state_changed"`, wakeEvent}, "auto"},
		{"dotty", "face", xiaozhi.Auto, []string{`"state_changed"`}, "auto"},
		{"dotty", "head_pet_hold", xiaozhi.Auto, []string{`"state_changed"`}, "auto"},
	} {
		stats, err := talk(t, Options{Stay: true, Firmware: c.firmware, Wake: c.phrase, WakePCM: second("").PCM, Mode: c.mode},
			func(s *server, _ *Robot) {
				start := s.next(`"hello"`)
				s.text(hello)
				for _, e := range c.events {
					s.next(e)
				}
				s.next(`{"session_id":"s1","type":"listen","state":"detect","text":"` + c.phrase + `"}`)
				if s.heard != 33 {
					t.Errorf("%s: %d packets before listen detect, want 33", c.phrase, s.heard)
				}
				at := s.next(`"state":"start","mode":"` + c.listens + `"`)
				if s.heard != 33 || at != start {
					t.Errorf("%s: listen start came %v after hello, and %d packets before it", c.phrase, at.Sub(start), s.heard)
				}
				if n := s.quiet(605 * time.Millisecond); n != 10 {
					t.Errorf("%s: %d packets in 600 ms of listening", c.phrase, n)
				}
			})
		if err != nil || stats.Sent != 43 || stats.Channels != 1 {
			t.Errorf("%s: %v, %+v", c.phrase, err, stats)
		}
	}
}

func TestPrerollEndsWithTheWakeWord(t *testing.T) {
	long := append(make([]int16, 10*voice.MicFrame), sine(40*voice.MicFrame, voice.MicRate)...)
	for name, c := range map[string]struct {
		pcm  []int16
		from int // index of the first loud frame
	}{"short": {second("").PCM, 17}, "long": {long, 0}, "none": {nil, 33}} {
		d, err := voice.NewDecoder(voice.MicRate)
		must.Succeed(t, err)
		var loudness []int16
		err = preroll(c.pcm, 1, func(p []byte) error {
			pcm, err := d.Decode(p)
			loudness = append(loudness, loudest(pcm))
			return err
		})
		if err != nil || len(loudness) != 33 {
			t.Fatalf("%s: %v, %d packets", name, err, len(loudness))
		}
		for i, n := range loudness {
			// Only twelve frames are checked, because the encoder's DTX soon replaces a steady tone by noise.
			if i < c.from && n > 1000 || i > c.from && i < c.from+12 && n < 4000 {
				t.Errorf("%s: packet %d is %d loud, and the word begins in packet %d: %d", name, i, n, c.from, loudness)
				break
			}
		}
	}
}

func TestWakeWordWhileIdleWithOpenChannel(t *testing.T) {
	for firmware, hears := range map[string]bool{"2.1": true, "2.2.4": false, "2.4": true, "2.5": true, "dotty": false} {
		lost := 0
		observe := on(func(_ WakeLost) { lost++ })
		stats, err := talk(t, Options{Stay: true, Firmware: firmware, Mode: xiaozhi.Manual, Observe: observe}, func(s *server, r *Robot) {
			s.opens(firstTexts(firmware)...)
			s.quiet(time.Second)
			r.WakeWord("robot")
			if hears {
				s.next(`"detect","text":"robot"`)
				s.next(listenAuto)
				if s.heard != 33 {
					t.Errorf("%s: %d packets before it", firmware, s.heard)
				}
				return
			}
			s.quiet(time.Second)
			r.WakeWord("robot") // also lost, because the detector is off
			s.quiet(time.Second)
			s.text(ttsStart, sentence) // the robot speaks, which switches the detector on
			time.Sleep(20 * time.Millisecond)
			r.WakeWord("robot")
			s.next(`"abort","reason":"wake_word_detected"`)
			s.next(listenAuto)
		})
		want := 2
		if hears {
			want = 0
		}
		if err != nil || stats.WakeWordsLost != want || lost != want {
			t.Errorf("%s: %v; lost %d, observed %d, want %d", firmware, err, stats.WakeWordsLost, lost, want)
		}
	}
}

func TestWakeWordsStayOffUntilStateChanges(t *testing.T) {
	stats, err := live(t, Options{Forever: true, Mode: xiaozhi.Manual}, func(n *network, r *Robot) {
		s := n.channel()
		s.quiet(time.Second)
		r.WakeWord("robot")
		s.quiet(time.Second)
		s.hangUp()
		<-s.closed
		time.Sleep(time.Minute)
		r.WakeWord("robot")
		time.Sleep(time.Minute)
		r.Tap()
		s = n.channel()
		s.next(listenAuto)
		s.quiet(time.Second)
		r.Tap()
		<-s.closed
		time.Sleep(time.Second)
		r.WakeWord("robot")
		n.channel().next(`"detect"`)
	})
	if err != nil || stats.WakeWordsLost != 2 || stats.Channels != 3 {
		t.Errorf("%v; %d wake words lost, %d channels, want 2 and 3", err, stats.WakeWordsLost, stats.Channels)
	}
}

func TestHelloIsTheFirmwares(t *testing.T) {
	const audio = `"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`
	const font = `"text_font":{"bundle":"noto-v1","charset":"common","size":20,"bpp":4},`
	for _, c := range []struct {
		o          Options
		want, mode string
	}{
		{Options{}, `"version":1,"features":{"mcp":true},`, "auto"},
		{Options{Framing: 2, AEC: AECServer}, `"version":2,"features":{"aec":true,"mcp":true},`, "realtime"},
		{Options{Framing: 1, AEC: AECDevice}, `"version":1,"features":{"mcp":true},`, "realtime"},
		{Options{Framing: 3, Firmware: "2.4"}, `"version":3,"features":{"mcp":true,"glyph_push":true},` + font, "auto"},
		{Options{Framing: 3, AEC: AECServer, Firmware: "2.4"},
			`"version":3,"features":{"aec":true,"mcp":true,"glyph_push":true},` + font, "realtime"},
	} {
		c.o.Stay = true
		talk(t, c.o, func(s *server, _ *Robot) {
			m := <-s.from
			if want := `{"type":"hello",` + c.want + audio; m.text != want {
				t.Errorf("sent %s\nwant %s", m.text, want)
			}
			must.Value(xiaozhi.ParseFromRobot([]byte(m.text)))(t)
			s.text(hello)
			s.next(`"mode":"` + c.mode + `"`)
		})
	}
}
