package main

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/perception"
	"perch/voice"
)

// companion is a robot that stays switched on until the test ends, and senses
// things.
func (h *running) companion(o simrobot.Options) *appliancetest.Robot {
	o.Forever = true
	return h.Stays(o)
}

func sense(r *appliancetest.Robot, name, data string) {
	r.Sense(xiaozhi.Event{Name: name, Data: []byte(data)})
}

func sensed(name string) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { s, ok := e.(simrobot.Sensed); return ok && s.Event.Name == name }
}

func entered(state simrobot.State) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { return e == simrobot.Entered{State: state} }
}

// knowsTools returns once the appliance has read what tools a robot has.
func (h *running) knowsTools(id device.ID) {
	h.T.Helper()
	h.Eventually("its tools are known", func() bool { return len(h.Talk.Tools(id)) > 0 })
}

func stopped(e simrobot.Observation) bool { _, ok := e.(simrobot.Stopped); return ok }

// await returns when that has happened, and the time.
func (h *running) await(c *appliancetest.Robot, what string, is func(simrobot.Observation) bool) (at time.Time) {
	h.T.Helper()
	h.Eventually(what, func() bool {
		var found bool
		at, found = c.When(is)
		return found
	})
	return at
}

// feed reads server-sent events until the test ends.
func (h *running) feed(path string, header ...string) *listener {
	h.T.Helper()
	ctx, cancel := context.WithCancel(h.T.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL(path), nil)
	if err != nil {
		h.T.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		h.T.Fatalf("%v %v", answer, err)
	}
	l := &listener{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			l.mu.Lock()
			l.all = append(l.all, s.Text())
			l.mu.Unlock()
		}
	})
	h.T.Cleanup(func() { cancel(); reading.Wait(); answer.Body.Close() })
	return l
}

// mentions reports whether a line holds all of these.
func (l *listener) mentions(parts ...string) bool {
	return slices.ContainsFunc(l.lines(), func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// TestACompanion: a robot turns to a sound, greets a face, falls silent when
// that leaves in the middle of it, and purrs when it is stroked; and everybody
// who looks sees that.
func TestACompanion(t *testing.T) {
	t.Parallel()
	const key = "a key for the bridge"
	c := withBroker(t)
	c.Bridge.Key = key
	c.Behaviours.Greeter.Hours = perception.Hours{To: 24 * time.Hour}
	c.Behaviours.Greeter.Hello = "Hello there, whoever you are, I am so very glad to see you on this fine day, and I have a great many things to tell you about, if only you stay for a while"
	h := open(t, c, t.TempDir())
	mqtt := h.listen()
	robot := h.companion(simrobot.Options{Firmware: "dotty", Events: []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}})
	feed := h.feed("/api/perception/feed", "Authorization", "Bearer "+key)

	h.knowsTools("a0b1c2d3e4f5")
	h.Eventually("its battery is known", func() bool {
		level := h.Senses.Board.Robot("a0b1c2d3e4f5", time.Now()).Battery
		return level != nil && *level == 82
	})
	sense(robot, "sound_event", `{"direction":"left","balance":0.4,"energy":600000000}`)
	h.await(robot, "its head turns left", func(e simrobot.Observation) bool {
		moved, ok := e.(simrobot.HeadMoved)
		return ok && moved.Yaw == -45
	})

	sense(robot, "face_detected", "{}")
	greeted := h.await(robot, "it greets", appliancetest.Shows(c.Behaviours.Greeter.Hello))
	seen, _ := robot.When(sensed("face_detected"))
	t.Logf("the greeting begins %s after the face", greeted.Sub(seen)) // BenchmarkGreeting measures it
	h.command("devices", exitDone, "a face in front of it since", "a sound on the left")
	h.Eventually("the face is on MQTT", func() bool {
		return mqtt.has(itsTopic+"state", `"face":true`, `"agent_state":"speaking"`) && mqtt.has(itsTopic+"perception", `"face_detected"`)
	})

	sense(robot, "face_lost", "{}")
	h.await(robot, "it falls silent", stopped)
	lost, _ := robot.When(sensed("face_lost"))
	silent, _ := robot.When(stopped)
	if after := silent.Sub(lost); after < 4*time.Second || after > 7*time.Second {
		t.Errorf("it fell silent %s after the face had left", after)
	}

	sense(robot, "head_pet_started", "{}")
	petted := h.await(robot, "it is stroked", sensed("head_pet_started"))
	h.Eventually("it purrs", func() bool {
		at, _ := robot.When(entered(simrobot.Speaking))
		return at.After(petted)
	})
	for _, name := range []string{"state_changed", "sound_event", "head_turn", "face_detected", "face_lost", "head_pet_started"} {
		h.Eventually(name+" is on the feed", func() bool { return feed.mentions("data:", `"`+name+`"`, "a0:b1:c2:d3:e4:f5") })
	}
	h.Eventually("the rest is on MQTT", func() bool {
		return mqtt.has(itsTopic+"state", `"face":false`) && mqtt.has(itsTopic+"touch", `"long_press_start"`)
	})
}

// TestRulesOfOnesOwn: what is in the configuration happens, once in its time,
// and only where it holds.
func TestRulesOfOnesOwn(t *testing.T) {
	t.Parallel()
	c := withBroker(t)
	own, err := loadConfig(appliancetest.Written(t, `
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
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Rules = own.Rules
	h := open(t, c, t.TempDir())
	mqtt := h.listen()
	robot := h.companion(simrobot.Options{Firmware: "dotty", Events: []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}})
	h.knowsTools("a0b1c2d3e4f5")
	sense(robot, "knock", `{"loud":false,"times":2,"door":"front"}`)
	sense(robot, "knock", `{"loud":true,"times":1,"door":"front"}`)
	sense(robot, "knock", `{"loud":true,"times":2,"door":"side"}`)
	sense(robot, "knock", `{"loud":true,"times":2,"door":"front"}`)
	sense(robot, "knock", `{"loud":true,"times":2,"door":"back"}`)
	called := func(name, arguments string) func(simrobot.Observation) bool {
		return func(e simrobot.Observation) bool {
			c, ok := e.(simrobot.Called)
			return ok && c.Name == name && c.Arguments == arguments && c.Err == ""
		}
	}
	h.await(robot, "its face", func(e simrobot.Observation) bool {
		f, ok := e.(simrobot.EmotionShown)
		return ok && f.Emotion == "happy"
	})
	h.await(robot, "its head", called("self.robot.set_head_angles", `{"pitch":10,"speed":150,"yaw":30}`))
	h.await(robot, "its lights", called("self.robot.set_led_color", `{"blue":0,"green":0,"red":100}`))
	h.await(robot, "its volume", called("self.audio_speaker.set_volume", `{"volume":77}`))
	h.await(robot, "its words", appliancetest.Shows("Come in!"))
	h.await(robot, "the notification", appliancetest.Shows("Somebody knocks."))
	h.Eventually("the message", func() bool { return mqtt.has("house/knock", "front") })
	if n := len(slices.DeleteFunc(mqtt.lines(), func(l string) bool { return !strings.HasPrefix(l, "house/knock ") })); n != 1 {
		t.Errorf("it was followed %d times", n)
	}
	if _, found := robot.When(appliancetest.Shows("Not for me.")); found {
		t.Error("another robot's rule is followed")
	}
}

// TestAFaceThatOpensATalk: firmware that is woken by a face opens a talk for it,
// whose listening does not cut the greeting off; then it listens.
func TestAFaceThatOpensATalk(t *testing.T) {
	for _, firmware := range []string{"2.2.4", "dotty"} {
		t.Run(firmware, func(t *testing.T) {
			c := appliancetest.Config()
			c.Behaviours.Greeter.Hours = perception.Hours{To: 24 * time.Hour}
			h := open(t, c, t.TempDir())
			robot := h.companion(simrobot.Options{Firmware: firmware, Wake: "face"})
			h.await(robot, "it greets", appliancetest.Shows("Hi!"))
			h.await(robot, "it has greeted", stopped)
			h.Eventually("it listens", func() bool {
				listens, _ := robot.When(entered(simrobot.Listening))
				speaks, _ := robot.When(entered(simrobot.Speaking))
				return listens.After(speaks)
			})
			if _, again := robot.When(appliancetest.Shows(h.Engines.Book.Phrase("awake"))); again {
				t.Error("it answered the face as it answers its wake word")
			}
			robot.Off()
			robot.InTime(t)
			if s := robot.Stats(); s.Received == 0 || s.Dropped+s.Cut > 0 || s.Played+s.Ignored != s.Received {
				t.Errorf("the greeting was not whole: %+v", s)
			}
		})
	}
}

// TestSounds: an owner's file is played by its name, not over the robot's own
// voice, and nothing from elsewhere is.
func TestSounds(t *testing.T) {
	data := t.TempDir()
	h := open(t, appliancetest.Config(), data)
	robot := h.companion(simrobot.Options{Firmware: "dotty", Events: []xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}})
	h.knowsTools("a0b1c2d3e4f5")
	tune := make([]int16, 2*voice.MicRate)
	for i := range tune {
		tune[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/voice.MicRate))
	}
	if err := os.Mkdir(filepath.Join(data, "sounds"), 0o750); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	err := voice.WriteWAV(&file, voice.MicRate, tune)
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "sounds", "tune.wav"), file.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
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
	h.await(robot, "it plays", entered(simrobot.Speaking))
	play(filepath.Join(data, "sounds", "tune.wav"), http.StatusConflict, "robot_speaking")
	h.await(robot, "it has played", stopped)
	robot.Off()
	robot.InTime(t)
	if s := robot.Stats(); s.Played < 2000/60 || s.Played+s.Ignored != s.Received || s.Dropped+s.Cut > 0 {
		t.Errorf("the sound was not whole: %+v", s)
	}
}
