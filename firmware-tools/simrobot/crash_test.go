package simrobot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
)

func TestCrashes(t *testing.T) {
	frame := func(header string) func(s *server, r *Robot) {
		return func(s *server, _ *Robot) {
			s.greet()
			s.to <- arrival{data: []byte(header + "opus")}
		}
	}
	text := func(message string) func(s *server, r *Robot) {
		return func(s *server, _ *Robot) { s.greet(); s.text(message) }
	}
	welcome := func(message string) func(s *server, r *Robot) {
		return func(s *server, _ *Robot) { s.next(`"hello"`); s.text(message) }
	}
	for _, c := range []struct {
		name   string
		o      Options
		script func(s *server, r *Robot)
		says   string
	}{
		{"hello without transport", Options{}, welcome(`{"type":"hello"}`), "hello without a transport"},
		{"hello with a number for transport", Options{}, welcome(`{"type":"hello","transport":1}`), "hello without a transport"},
		{"frame duration", Options{}, welcome(`{"type":"hello","transport":"websocket","audio_params":{"frame_duration":30}}`), "30 ms"},
		{"sample rate", Options{}, welcome(`{"type":"hello","transport":"websocket","audio_params":{"sample_rate":44100}}`), "44100 Hz"},
		{"tts without state, stock", Options{}, text(`{"type":"tts"}`), "tts without a state"},
		{"tts without state, 2.1", Options{Firmware: "2.1"}, text(`{"type":"tts","state":null}`), "tts without a state"},
		{"framing 2 lies", Options{Framing: xiaozhi.Framing2}, frame("\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"),
			"size field is 5, payload has 4 bytes"},
		{"framing 3 lies", Options{Framing: xiaozhi.Framing3}, frame("\x00\x00\xff\xff"), "size field is 65535"},
	} {
		c.o.Say = []Sentence{second("never said")}
		_, err := talk(t, c.o, c.script)
		var fatal *Crash
		if !errors.As(err, &fatal) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want a crash that says %q", c.name, err, c.says)
		}
	}
}

func TestNoHello(t *testing.T) {
	for name, hello := range map[string]string{"silence": "", "other transport": `{"type":"hello","transport":"udp"}`} {
		var took time.Duration
		_, err := talk(t, Options{Say: []Sentence{second("one")}}, func(s *server, _ *Robot) {
			s.next(`"hello"`)
			start := time.Now()
			if hello != "" {
				s.text(hello)
			}
			<-s.closed
			took = time.Since(start)
		})
		near(t, name+": gave up", took, helloTimeout)
		if !errors.Is(err, ErrHello) {
			t.Errorf("%s: %v, want ErrHello", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	over, wake := second("over"), second("wake")
	over.Over, wake.WakeAfter = time.Second, time.Second
	for _, o := range []Options{
		{}, {MAC: "no"}, {MAC: testMAC, Firmware: "3"}, {MAC: testMAC, Mode: "loud"}, {MAC: testMAC, Framing: 4}, {MAC: testMAC, AEC: "both"},
		{MAC: testMAC, FlashFile: "/dev/null/x"},
		{MAC: testMAC, Mode: xiaozhi.Realtime, Say: []Sentence{over}}, // the first sentence has no previous answer to interrupt
		{MAC: testMAC, Say: []Sentence{second("one"), over}},          // Over is invalid in auto mode
		{MAC: testMAC, Say: []Sentence{wake}},                         // WakeAfter requires Options.Wake
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v made a robot", o)
		}
	}
}
