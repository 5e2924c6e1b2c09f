package simrobot

import (
	"testing"
	"time"

	"perch/device/xiaozhi"
)

// near fails the test unless d differs from want by at most 30 ms, half a frame.
func near(t *testing.T, what string, d, want time.Duration) {
	t.Helper()
	if d < want-30*time.Millisecond || d > want+30*time.Millisecond {
		t.Errorf("%s after %v, want about %v", what, d, want)
	}
}

func TestMicrophoneIsClosedWhileSpeaking(t *testing.T) {
	for mode, open := range map[xiaozhi.Mode]bool{xiaozhi.Auto: false, xiaozhi.Realtime: true} {
		talk(t, Options{Stay: true, Mode: mode}, func(s *server, _ *Robot) {
			s.opens(`"mode":"` + string(mode) + `"`)
			if n := s.quiet(605 * time.Millisecond); n != 10 {
				t.Errorf("%s: %d packets while listening for 600 ms, want 10", mode, n)
			}
			s.text(ttsStart)
			time.Sleep(10 * time.Millisecond)
			if n := s.quiet(600 * time.Millisecond); (n == 10) != open || (n == 0) == open {
				t.Errorf("%s: %d packets while speaking for 600 ms", mode, n)
			}
			s.text(ttsStop)
			if !open {
				s.next(listenAuto)
			}
			if n := s.quiet(605 * time.Millisecond); n < 9 { // quiet also checks that realtime mode sends no second listen start
				t.Errorf("%s: %d packets while listening again", mode, n)
			}
		})
	}
}

func TestListensAfterTheQueueWasPlayed(t *testing.T) {
	for _, c := range []struct {
		firmware string
		after    time.Duration // from tts stop to listen start, which the robot sends when it starts to play the tenth packet
		played   int
		cut      int
	}{
		{"2.1", 0, 1, 9},
		{"2.2.4", 535 * time.Millisecond, 10, 0},
		{"2.4", 535 * time.Millisecond, 10, 0},
		{"2.5", 535 * time.Millisecond, 10, 0},
		{"dotty", 535 * time.Millisecond, 10, 0},
	} {
		stats, err := talk(t, Options{Stay: true, Firmware: c.firmware}, func(s *server, _ *Robot) {
			s.opens(append(firstTexts(c.firmware), listenAuto)...)
			s.text(ttsStart, sentence)
			time.Sleep(20 * time.Millisecond)
			s.sound(10)
			s.text(ttsStop)
			stopped := time.Now()
			near(t, c.firmware+" listens", s.next(listenAuto).Sub(stopped), c.after)
		})
		if err != nil || stats.Played != c.played || stats.Cut != c.cut {
			t.Errorf("%s: %v; played %d, cut %d, want %d, %d", c.firmware, err, stats.Played, stats.Cut, c.played, c.cut)
		}
	}
}

func TestLazyFirmwareSpeaksAtSentenceStart(t *testing.T) {
	stats, _ := talk(t, Options{Stay: true, Firmware: "dotty"}, func(s *server, _ *Robot) {
		s.opens(`"event","name":"state_changed"`, listenAuto)
		s.speaks(3)
		s.text(`{"type":"tts","state":"sentence_start","text":""}`)
		time.Sleep(20 * time.Millisecond)
		s.sound(2)
		time.Sleep(time.Second)
	})
	if stats.Ignored != 3 || stats.Played != 2 {
		t.Errorf("ignored %d, played %d, want 3, 2", stats.Ignored, stats.Played)
	}
}

func TestDrainingBlocksTheMainLoop(t *testing.T) {
	for firmware, blocks := range map[string]bool{"2.2.4": true, "2.4": false} {
		talk(t, Options{Stay: true, Firmware: firmware}, func(s *server, _ *Robot) {
			s.greet()
			s.speaks(10)
			s.text(ttsStop, `{"type":"mcp","payload":{"jsonrpc":"2.0","id":7,"method":"tools/list"}}`)
			first, then := `"id":7`, listenAuto
			if blocks {
				first, then = then, first
			}
			s.next(first)
			s.next(then)
		})
	}
}

func TestTapAndWakeWord(t *testing.T) {
	stats, err := talk(t, Options{Stay: true}, func(s *server, r *Robot) {
		s.greet()
		s.speaks(0)
		r.Tap()
		s.next(`{"session_id":"s1","type":"abort"}`)
		s.quiet(time.Second) // the robot continues to speak until the server's tts stop
		s.text(ttsStop)
		s.next(listenAuto)
		s.speaks(20)
		time.Sleep(time.Millisecond)
		r.WakeWord("Hi, Stack Chan")
		s.next(`"abort","reason":"wake_word_detected"`)
		s.next(listenAuto) // before the server's tts stop
		s.quiet(time.Second)
		r.WakeWord("Hi, Stack Chan") // ignored: the robot is listening
		s.quiet(time.Second)
		s.speaks(1)
		s.text(ttsStop)
		s.next(listenAuto)
		s.quiet(time.Second)
		r.Tap()
		<-s.closed
	})
	if err != nil {
		t.Errorf("a tap on a listening robot: %v", err)
	}
	// One of the twenty was being played when the wake word came.
	if stats.CutByBargeIn != 19 || stats.Cut != 0 || stats.Played != 2 || stats.Underruns != 0 {
		t.Errorf("cut %d and %d, played %d, %d underruns, want 19 by barge-in, 0, 2, 0", stats.CutByBargeIn, stats.Cut, stats.Played, stats.Underruns)
	}
}

func TestUnderrunsAndGaps(t *testing.T) {
	stats, _ := talk(t, Options{Stay: true}, func(s *server, _ *Robot) {
		s.greet()
		s.speaks(5) // the initial burst of 300 ms
		time.Sleep(60 * time.Millisecond)
		s.pace(4)
		time.Sleep(500 * time.Millisecond) // an underrun
		s.pace(2)
		time.Sleep(time.Second) // no underrun, because no packet of this speech follows
		s.text(ttsStop)
		s.next(listenAuto)
	})
	if stats.Underruns != 1 || stats.Played != 11 || stats.Bad != 0 {
		t.Errorf("%d underruns, %d played, want 1, 11", stats.Underruns, stats.Played)
	}
	if len(stats.Gaps) != 6 || Quantile(stats.Gaps, 0.5) != 60*time.Millisecond || Quantile(stats.Gaps, 1) != 560*time.Millisecond {
		t.Errorf("gaps %v, want five of 60 ms and one of 560 ms, and none within the lead", stats.Gaps)
	}
}

func TestInvalidMessagesAreIgnored(t *testing.T) {
	var ignored []string
	observe := on(func(p MessageIgnored) { ignored = append(ignored, p.Why) })
	_, err := talk(t, Options{Stay: true, Firmware: "2.4", Observe: observe}, func(s *server, _ *Robot) {
		s.greet()
		s.text("not json", `[]`, `{"state":"start"}`, `{"type":7}`, `{"type":"goodbye"}`, `{"type":"tts"}`,
			`{"type":"tts","state":"sentence_start"}`, `{"type":"mcp","payload":[]}`, `{"type":"system","command":"dance"}`,
			`{"type":"alert","status":"x"}`, `{"type":"mcp","payload":{"jsonrpc":"1.0","id":1,"method":"x"}}`,
			`{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"x","params":[]}}`,
			`{"type":"mcp","payload":{"jsonrpc":"2.0","id":"1","method":"tools/list"}}`,
			`{"type":"mcp","payload":{"jsonrpc":"2.0","method":"tools/list"}}`,
			`{"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/initialized"}}`)
		s.quiet(time.Second)
		s.speaks(0)
		s.to <- arrival{data: []byte{0xff, 0xff}}
		time.Sleep(time.Second)
	})
	if err != nil || len(ignored) != 14 {
		t.Errorf("%v; it ignored %d messages, want 14: %q", err, len(ignored), ignored)
	}
}
