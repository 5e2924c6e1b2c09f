package appliance_test

import (
	"bytes"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/perception"
	"perch/voice"
)

// loaded returns the configuration in a file.
func loaded(t *testing.T, file string) config.Config {
	t.Helper()
	c := must.Value(config.Source{File: file}.Load())(t)
	return c
}

// TestRulesOfTheConfiguration checks that a configured rule carries out all its actions, at most once in the time of
// its key every, and only for its robot and if its conditions hold.
func TestRulesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := appliancetest.WithBroker(t)
	c.Rules = loaded(t, appliancetest.WriteConfig(t, `
rules:
  - name: a knock
    when: {event: knock, robot: "A0:B1:C2:D3:E4:F5", if: {loud: true, times: {above: 1}, door: {one_of: [front, back]}}}
    every: 1h
    do:
      - emotion: surprised
      - head: {yaw: 30, pitch: 10}
      - lights: {red: 100}
      - tool: {name: self.audio_speaker.set_volume, arguments: {volume: 77}}
      - publish: {topic: house/knock, payload: front}
      - notify: Somebody knocks.
      - say: Come in!
  - when: {event: knock, robot: "a0b1c2d3e4f6"}
    do: [{say: "Not for me."}]
`)).Rules
	h := appliancetest.Start(t, c, t.TempDir())
	mqtt := h.Listen()
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools("a0b1c2d3e4f5")
	robot.SendSensorEvent("knock", `{"loud":false,"times":2,"door":"front"}`)
	robot.SendSensorEvent("knock", `{"loud":true,"times":1,"door":"front"}`)
	robot.SendSensorEvent("knock", `{"loud":true,"times":2,"door":"side"}`)
	robot.SendSensorEvent("knock", `{"loud":true,"times":2,"door":"front"}`)
	robot.SendSensorEvent("knock", `{"loud":true,"times":2,"door":"back"}`)
	called := func(name, arguments string) func(simrobot.Observation) bool {
		return appliancetest.Match(func(c simrobot.Called) bool { return c.Name == name && c.Arguments == arguments && c.Err == "" })
	}
	h.Await(robot, "its face", appliancetest.Match(func(f simrobot.EmotionShown) bool { return f.Emotion == "happy" }))
	h.Await(robot, "its head", called("self.robot.set_head_angles", `{"pitch":10,"speed":150,"yaw":30}`))
	h.Await(robot, "its lights", called("self.robot.set_led_color", `{"blue":0,"green":0,"red":100}`))
	h.Await(robot, "its volume", called("self.audio_speaker.set_volume", `{"volume":77}`))
	h.Await(robot, "its words", appliancetest.Shows("Come in!"))
	h.Await(robot, "the notification", appliancetest.Shows("Somebody knocks."))
	h.Eventually("the message", func() bool { return mqtt.Has("house/knock", "front") })
	if n := len(slices.DeleteFunc(mqtt.Lines(), func(l string) bool { return !strings.HasPrefix(l, "house/knock ") })); n != 1 {
		t.Errorf("it was followed %d times", n)
	}
	if _, found := robot.LastTime(appliancetest.Shows("Not for me.")); found {
		t.Error("another robot's rule is followed")
	}
}

// TestAFaceThatOpensATalk checks firmware that opens its channel when its camera sees a face: the robot's start of
// listening does not cut off the greeting, and the robot listens afterwards.
func TestAFaceThatOpensATalk(t *testing.T) {
	for _, firmware := range []string{"2.2.4", "dotty"} {
		t.Run(firmware, func(t *testing.T) {
			c := appliancetest.Config()
			c.Behaviours.Greeter.Hours = perception.Hours{To: 24 * time.Hour}
			h := appliancetest.Start(t, c, t.TempDir())
			robot := h.StartCompanion(simrobot.Options{Firmware: firmware, Wake: "face"})
			h.Await(robot, "it greets", appliancetest.Shows("Hi!"))
			h.Await(robot, "it has greeted", appliancetest.Stopped)
			h.Eventually("it listens", func() bool {
				listens, _ := robot.LastTime(appliancetest.Entered(simrobot.Listening))
				speaks, _ := robot.LastTime(appliancetest.Entered(simrobot.Speaking))
				return listens.After(speaks)
			})
			if _, again := robot.LastTime(appliancetest.Shows(h.Agents.Phrase("", "awake"))); again {
				t.Error("it answered the face as it answers its wake word")
			}
			robot.Off()
			robot.CheckTiming(t)
			if s := robot.Stats(); s.Received == 0 || s.Dropped+s.Cut > 0 || s.Played+s.Ignored != s.Received {
				t.Errorf("the greeting was not whole: %+v", s)
			}
		})
	}
}

// TestSounds checks that a file of the owner can be played by its name, but not while the robot speaks, and that files
// outside the folder of sounds cannot be played.
func TestSounds(t *testing.T) {
	data := t.TempDir()
	h := appliancetest.Start(t, appliancetest.Config(), data)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools("a0b1c2d3e4f5")
	tune := make([]int16, 2*voice.MicRate)
	for i := range tune {
		tune[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/voice.MicRate))
	}
	must.Succeed(t, os.Mkdir(filepath.Join(data, "sounds"), 0o750))
	var file bytes.Buffer
	err := voice.WriteWAV(&file, voice.MicRate, tune)
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "sounds", "tune.wav"), file.Bytes(), 0o600)
	}
	must.Succeed(t, err)
	play := func(asset string, status int, part string) {
		t.Helper()
		got, text := h.Owner(http.MethodPost, "/admin/play-asset", `{"asset":"`+asset+`"}`)
		if got != status || !strings.Contains(text, part) {
			t.Errorf("play %s: %d %s", asset, got, text)
		}
	}
	var list struct {
		Base  string
		Files []string
	}
	h.Admin(http.MethodGet, "/admin/songs", "{}", &list)
	if list.Base != filepath.Join(data, "sounds") || !slices.Equal(list.Files, []string{"alarm", "chime", "purr", "tune.wav"}) {
		t.Errorf("there are %+v", list)
	}
	play("/etc/passwd", http.StatusForbidden, "outside_roots")
	play("nothing", http.StatusNotFound, "unknown_sound")
	play("tune", http.StatusOK, "ok")
	h.Await(robot, "it plays", appliancetest.Entered(simrobot.Speaking))
	play(filepath.Join(data, "sounds", "tune.wav"), http.StatusConflict, "robot_speaking")
	h.Await(robot, "it has played", appliancetest.Stopped)
	robot.Off()
	robot.CheckTiming(t)
	if s := robot.Stats(); s.Played < 2000/60 || s.Played+s.Ignored != s.Received || s.Dropped+s.Cut > 0 {
		t.Errorf("the sound was not whole: %+v", s)
	}
}
