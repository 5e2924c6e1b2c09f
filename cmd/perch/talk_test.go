package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
)

// TestEveryModeFramingAndFirmware holds a spoken talk in each, with not one
// packet lost, cut or dropped.
func TestEveryModeFramingAndFirmware(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	say := sentences(t, "look up")
	n := 0
	for _, mode := range []xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime} {
		for framing := xiaozhi.Framing1; framing <= xiaozhi.Framing3; framing++ {
			for _, firmware := range simrobot.Firmwares() {
				n++
				o := simrobot.Options{Mode: mode, Framing: framing, Firmware: firmware, Say: say, MAC: fmt.Sprintf("A0:B1:C2:D3:E4:%02X", n)}
				if mode == xiaozhi.Realtime {
					o.AEC = simrobot.AECDevice // nobody runs realtime without
				}
				t.Run(fmt.Sprintf("%s %d %s", mode, framing, firmware), func(t *testing.T) {
					t.Parallel()
					(&house{Appliance: h.Appliance, t: t}).robot(o).whole(t)
				})
			}
		}
	}
}

// TestWoken holds a talk that a wake word opens, in each firmware: the words
// before it are no utterance, and it is answered.
func TestWoken(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	say := sentences(t, "look up", "hi stack chan")
	for i, firmware := range simrobot.Firmwares() {
		t.Run(firmware, func(t *testing.T) {
			t.Parallel()
			r := (&house{Appliance: h.Appliance, t: t}).robot(simrobot.Options{Firmware: firmware, Wake: "Hi, Stack Chan", WakePCM: say[1].PCM,
				Say: say[:1], MAC: fmt.Sprintf("A0:B1:C2:D3:E5:%02X", i)})
			r.whole(t)
			if !r.showed("Yes?") {
				t.Error("the wake word is not answered")
			}
		})
	}
}

// showed reports whether the robot has shown a sentence.
func (r *talker) showed(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.happened, func(h simrobot.Observation) bool {
		showed, ok := h.(simrobot.SentenceShown)
		return ok && showed.Text == text
	})
}

// TestBargeIn interrupts an answer in every way there is: it is quiet at once,
// what comes after is a turn like any other, and nothing of the server's is
// lost but what the interruption itself cuts off.
func TestBargeIn(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	say := sentences(t, "what can you do", "look up", "hi stack chan", "set the volume to forty percent")
	first, second := say[0], say[1]
	over := second
	over.Over = 1500 * time.Millisecond
	late := say[3]
	late.Over = 6 * time.Second // our canceller has to get to know the room
	tap, wake := first, first
	tap.TapAfter, wake.WakeAfter = 1500*time.Millisecond, 1500*time.Millisecond
	for i, o := range []simrobot.Options{
		{Say: []simrobot.Sentence{tap, second}, Firmware: "2.2.4"},
		{Say: []simrobot.Sentence{tap, second}, Firmware: "2.1"},
		{Say: []simrobot.Sentence{wake, second}, Firmware: "2.4", Wake: "Hi, Stack Chan", WakePCM: say[2].PCM},
		{Say: []simrobot.Sentence{wake, second}, Firmware: "dotty", Wake: "Hi, Stack Chan", WakePCM: say[2].PCM},
		{Say: []simrobot.Sentence{first, over}, Firmware: "2.2.4", Mode: xiaozhi.Manual},
		{Say: []simrobot.Sentence{first, over}, Firmware: "2.4", AEC: simrobot.AECDevice},
		{Say: []simrobot.Sentence{first, late}, Firmware: "2.2.4", AEC: simrobot.AECServer, Framing: 2},
	} {
		t.Run(fmt.Sprintf("%d %s %s %s", i, o.Firmware, o.Mode, o.AEC), func(t *testing.T) {
			if o.AEC != simrobot.AECServer { // which wants a machine of its own
				t.Parallel()
			}
			o.MAC = fmt.Sprintf("A0:B1:C2:D3:E6:%02X", i)
			r, err := (&house{Appliance: h.Appliance, t: t}).talks(o)
			s := r.Stats()
			if missed := len(s.Turns) != 2 || !s.Turns[0].Interrupted || !s.Turns[1].Answered; missed && o.AEC == simrobot.AECServer &&
				r.late > tooLate {
				t.Skipf("an echo is not cancelled on a machine that was late by %s: %v, turns %+v", r.late, err, s.Turns)
			}
			if err != nil {
				t.Fatal(err)
			}
			r.inTime(t, s)
			quiet := time.Second
			if r.late > tooLate {
				quiet = 3 * time.Second
			}
			if len(s.Turns) != 2 || !s.Turns[0].Interrupted || s.Turns[0].QuietAfter <= 0 || s.Turns[0].QuietAfter > quiet {
				t.Fatalf("late by %s: turns %+v", r.late, s.Turns)
			}
			if turn := s.Turns[1]; turn.Transcript != turn.Text || !turn.Answered {
				t.Errorf("the turn after it: %+v", turn)
			}
			if s.Dropped+s.Cut+s.Bad > 0 {
				t.Errorf("lost: %+v", s)
			}
			t.Logf("quiet after %v", s.Turns[0].QuietAfter)
		})
	}
}

// TestOurOwnVoiceDoesNotInterruptUs: a robot that leaves echo cancellation to
// us hears all we say at -10 dB.
func TestOurOwnVoiceDoesNotInterruptUs(t *testing.T) {
	t.Parallel()
	h := open(t, testConfig(), t.TempDir())
	r := h.robot(simrobot.Options{AEC: simrobot.AECServer, Framing: 2, Say: sentences(t, "what can you do", "tell me a joke", "look up")})
	if s := r.Stats(); r.late > tooLate && slices.ContainsFunc(s.Turns, func(t simrobot.Turn) bool { return t.Interrupted }) {
		t.Skipf("an echo is not cancelled on a machine that was late by %s: %+v", r.late, s.Turns)
	}
	r.whole(t)
	if s := r.Stats(); s.Stamped == 0 || slices.ContainsFunc(s.Turns, func(t simrobot.Turn) bool { return t.Interrupted }) {
		t.Errorf("stamped %d, turns %+v", s.Stamped, s.Turns)
	}
}

// TestToldLater: what is to be said to a robot whose channel is closed is said
// when it next opens one, after a restart of the appliance too: whoever opens it
// has his turn first.
func TestToldLater(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h := open(t, testConfig(), data)
	h.robot(simrobot.Options{})
	h.eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	if out := h.command(t, "say a0b1c2d3e4f5 the washing is done", 0); !strings.Contains(out, "queued") {
		t.Errorf("say says %s", out)
	}
	h.command(t, "notify the post is here --robot a0b1c2d3e4f5", 0)
	h.stop()
	h = open(t, testConfig(), data)
	r := h.robot(simrobot.Options{Say: sentences(t, "look up", "look up")})
	if !r.showed("the washing is done") || !r.showed("the post is here") {
		t.Errorf("it was told %+v", r.Stats().Turns)
	}
	again := h.robot(simrobot.Options{Say: sentences(t, "look up")})
	if again.showed("the washing is done") || again.showed("the post is here") {
		t.Error("it was told twice")
	}
	var status struct{ Notifications int }
	h.admin(http.MethodGet, "/api/v1/status", &status)
}

// TestAPhoto: the robot's camera sends a picture to the address it was given,
// and hears an honest answer where nobody here can see.
func TestAPhoto(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	r := h.robot(simrobot.Options{Say: sentences(t, "take a photo")})
	r.whole(t)
	if answer := strings.Join(r.Stats().Turns[0].Answer, " "); !strings.Contains(answer, "picture") {
		t.Errorf("the answer is %q", answer)
	}
	if p, ok := h.Talk.Picture("a0b1c2d3e4f5"); !ok || p.Type != "image/jpeg" || len(p.Data) == 0 {
		t.Errorf("kept %v, %d bytes of %q", ok, len(p.Data), p.Type)
	}
}
