package appliance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// TestEveryModeFramingAndFirmware checks a spoken turn for each listening mode, framing and firmware, without lost
// packets.
func TestEveryModeFramingAndFirmware(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	say := appliancetest.Sentences(t, "look up")
	n := 0
	for _, mode := range []xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime} {
		for framing := xiaozhi.Framing1; framing <= xiaozhi.Framing3; framing++ {
			for _, firmware := range simrobot.Firmwares() {
				n++
				o := simrobot.Options{Mode: mode, Framing: framing, Firmware: firmware, Say: say, MAC: fmt.Sprintf("A0:B1:C2:D3:E4:%02X", n)}
				if mode == xiaozhi.Realtime {
					o.AEC = simrobot.AECDevice // realtime mode needs echo cancellation
				}
				t.Run(fmt.Sprintf("%s %d %s", mode, framing, firmware), func(t *testing.T) {
					t.Parallel()
					h.For(t).RunRobot(o).CheckComplete(t)
				})
			}
		}
	}
}

// TestWoken checks a talk that a wake word opens, for each firmware: the sound of the wake word is not an utterance,
// and the robot acknowledges it.
func TestWoken(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	say := appliancetest.Sentences(t, "look up", "hi stack chan")
	for i, firmware := range simrobot.Firmwares() {
		t.Run(firmware, func(t *testing.T) {
			t.Parallel()
			r := h.For(t).RunRobot(simrobot.Options{Firmware: firmware, Wake: "Hi, Stack Chan", WakePCM: say[1].PCM,
				Say: say[:1], MAC: fmt.Sprintf("A0:B1:C2:D3:E5:%02X", i)})
			r.CheckComplete(t)
			if !r.HasShown("Yes?") {
				t.Error("the wake word is not answered")
			}
		})
	}
}

// TestBargeIn interrupts an answer by a tap, a wake word and speech. It checks that the robot is quiet soon, that the
// next turn works, and that no other packets are lost.
func TestBargeIn(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	say := appliancetest.Sentences(t, "what can you do", "look up", "hi stack chan", "set the volume to forty percent")
	first, second := say[0], say[1]
	over := second
	over.Over = 1500 * time.Millisecond
	late := say[3]
	late.Over = 6 * time.Second // the appliance's echo canceller needs time to adapt to the room
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
			if o.AEC != simrobot.AECServer { // with other tests on the machine, the robot's clock would be too late for the canceller
				t.Parallel()
			}
			o.MAC = fmt.Sprintf("A0:B1:C2:D3:E6:%02X", i)
			r, err := h.For(t).TryRobot(o)
			s := r.Stats()
			if o.AEC == simrobot.AECServer && (len(s.Turns) != 2 || !s.Turns[0].Interrupted || s.Turns[1].Transcript != s.Turns[1].Text) {
				skipIfLate(t, r)
			}
			must.Succeed(t, err)
			r.CheckTiming(t)
			quiet := time.Second
			if r.Lateness() > appliancetest.MaxLateness {
				quiet = 3 * time.Second
			}
			if len(s.Turns) != 2 || !s.Turns[0].Interrupted || s.Turns[0].QuietAfter <= 0 || s.Turns[0].QuietAfter > quiet {
				t.Fatalf("late by %s: turns %+v", r.Lateness(), s.Turns)
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

// TestOurOwnVoiceDoesNotInterruptUs checks the appliance's echo cancellation: the microphone of the simulated robot
// receives the appliance's speech at -10 dB, which must not interrupt the answer.
func TestOurOwnVoiceDoesNotInterruptUs(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	say := appliancetest.Sentences(t, "what can you do", "tell me a joke", "look up")
	r := h.RunRobot(simrobot.Options{AEC: simrobot.AECServer, Framing: 2, Say: say})
	if slices.ContainsFunc(r.Stats().Turns, func(t simrobot.Turn) bool { return t.Interrupted || t.Transcript != t.Text }) {
		skipIfLate(t, r)
	}
	r.CheckComplete(t)
	if s := r.Stats(); s.Stamped == 0 || slices.ContainsFunc(s.Turns, func(t simrobot.Turn) bool { return t.Interrupted }) {
		t.Errorf("stamped %d, turns %+v", s.Stamped, s.Turns)
	}
}

// skipIfLate skips a test in which the echo was not cancelled, if the robot's clock was late: the echo is then at
// another time than the canceller expects.
func skipIfLate(t *testing.T, r *appliancetest.Robot) {
	t.Helper()
	if r.Lateness() > appliancetest.MaxLateness {
		t.Skipf("an echo is not cancelled on a machine that was late by %s: turns %+v", r.Lateness(), r.Stats().Turns)
	}
}

// TestToldLater checks that texts for a robot whose channel is closed are spoken once when the robot next opens a
// channel, also after a restart of the appliance.
func TestToldLater(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h := appliancetest.Start(t, appliancetest.Config(), data)
	h.RunRobot(simrobot.Options{})
	h.Eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	var taken struct{ Queued bool }
	if h.Admin(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/say", `{"text":"the washing is done"}`, &taken); !taken.Queued {
		t.Error("it is not queued")
	}
	h.Admin(http.MethodPost, "/api/v1/notifications", `{"text":"the post is here","speak":true,"robot":"a0b1c2d3e4f5"}`, nil)
	h.Stop()
	h = appliancetest.Start(t, appliancetest.Config(), data)
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "look up", "look up")})
	if !r.HasShown("the washing is done") || !r.HasShown("the post is here") {
		t.Errorf("it was told %+v", r.Stats().Turns)
	}
	again := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "look up")})
	if again.HasShown("the washing is done") || again.HasShown("the post is here") {
		t.Error("it was told twice")
	}
}

// TestAPhoto checks that the robot sends its picture to the appliance, and that the answer says something about the
// picture if no configured brain supports pictures.
func TestAPhoto(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "take a photo")})
	r.CheckComplete(t)
	if answer := strings.Join(r.Stats().Turns[0].Answer, " "); !strings.Contains(answer, "picture") {
		t.Errorf("the answer is %q", answer)
	}
	if p, ok := h.Talk.Picture("a0b1c2d3e4f5"); !ok || p.Type != "image/jpeg" || len(p.Data) == 0 {
		t.Errorf("kept %v, %d bytes of %q", ok, len(p.Data), p.Type)
	}
}
