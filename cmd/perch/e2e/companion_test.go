package e2e

import (
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/perception"
)

func sensed(name string) func(simrobot.Observation) bool {
	return appliancetest.Match(func(s simrobot.Sensed) bool { return s.Event.Name == name })
}

// TestACompanion: a robot turns to a sound, greets a face, stops speaking when the face leaves during the greeting, and
// purrs when it is stroked. The events are shown on MQTT, on the feed and by perch robot list.
func TestACompanion(t *testing.T) {
	t.Parallel()
	const key = "a key for the bridge"
	c := appliancetest.WithBroker(t)
	c.Bridge.Key = key
	c.Behaviours.Greeter.Hours = perception.Hours{To: 24 * time.Hour}
	c.Behaviours.Greeter.Hello = "Hello there, whoever you are, I am so very glad to see you on this fine day, and I have a great many things to tell you about, if only you stay for a while"
	h := open(t, c, t.TempDir())
	mqtt := h.Listen()
	feed := h.ReadEvents("/api/perception/feed", "Authorization", "Bearer "+key)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})

	h.WaitForTools("a0b1c2d3e4f5")
	h.Eventually("its battery is known", func() bool {
		level := h.Senses.Robot("a0b1c2d3e4f5", time.Now()).Battery
		return level != nil && *level == 82
	})
	robot.SendSensorEvent("sound_event", `{"direction":"left","balance":0.4,"energy":600000000}`)
	h.Await(robot, "its head turns left", appliancetest.Match(func(m simrobot.HeadMoved) bool { return m.Yaw == -45 }))

	robot.SendSensorEvent("face_detected", "{}")
	greeted := h.Await(robot, "it greets", appliancetest.Shows(c.Behaviours.Greeter.Hello))
	seen, _ := robot.LastTime(sensed("face_detected"))
	t.Logf("the greeting begins %s after the face", greeted.Sub(seen))
	h.command("robot list", exitDone, "a face in front of it since", "a sound on the left")
	h.Eventually("the face is on MQTT", func() bool {
		return mqtt.Has(appliancetest.RobotTopic+"state", `"face":true`, `"agent_state":"speaking"`) &&
			mqtt.Has(appliancetest.RobotTopic+"perception", `"face_detected"`)
	})

	robot.SendSensorEvent("face_lost", "{}")
	h.Await(robot, "it falls silent", appliancetest.Stopped)
	lost, _ := robot.LastTime(sensed("face_lost"))
	silent, _ := robot.LastTime(appliancetest.Stopped)
	if after := silent.Sub(lost); after < 4*time.Second || after > 7*time.Second {
		t.Errorf("it fell silent %s after the face had left", after)
	}

	robot.SendSensorEvent("head_pet_started", "{}")
	petted := h.Await(robot, "it is stroked", sensed("head_pet_started"))
	h.Eventually("it purrs", func() bool {
		at, _ := robot.LastTime(appliancetest.Entered(simrobot.Speaking))
		return at.After(petted)
	})
	for _, name := range []string{"state_changed", "sound_event", "head_turn", "face_detected", "face_lost", "head_pet_started"} {
		h.Eventually(name+" is on the feed", func() bool { return feed.Mentions("data:", `"`+name+`"`, "a0:b1:c2:d3:e4:f5") })
	}
	h.Eventually("the rest is on MQTT", func() bool {
		return mqtt.Has(appliancetest.RobotTopic+"state", `"face":false`) && mqtt.Has(appliancetest.RobotTopic+"touch", `"long_press_start"`)
	})
}
