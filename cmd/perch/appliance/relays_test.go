package appliance_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/gateway/avatar/avatartest"
)

// TestAnAvatarProgramShowsATalk checks that an avatar program receives states, sentences and mouth positions while a
// robot speaks, and that a program that is restarted during the talk receives the current state and the following mouth
// positions.
func TestAnAvatarProgramShowsATalk(t *testing.T) {
	t.Parallel()
	lasts, killed := appliancetest.NewAvatar(t, ""), appliancetest.NewAvatar(t, "")
	c := appliancetest.Config()
	c.Relays = []config.Relay{{Kind: "warudo", URL: "ws://" + lasts.Address}, {Kind: "warudo", Name: "second", URL: "ws://" + killed.Address}}
	p := appliancetest.NewPeers(t)
	p.Words, p.Rest = []string{"😊", " This", " is", " one.", " This", " is", " two.", " And", " three."}, make(chan struct{})
	p.Every = 200 * time.Millisecond // the answer begins before the person has surely ended, and thinking is shown for the rest of it
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	for _, name := range []string{"relay warudo", "relay second"} {
		h.Eventually(name+" is connected", func() bool { return h.Part(name).OK })
	}
	var talking sync.WaitGroup
	var robot *appliancetest.Robot
	talking.Go(func() {
		robot = h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	})
	h.Eventually("a mouth moves", func() bool { return len(killed.Containing("stackchan.mouth")) > 0 })
	killed.Kill()
	h.Eventually("it is gone", func() bool { return !h.Part("relay second").OK })
	back := appliancetest.NewAvatar(t, killed.Address)
	h.Eventually("it is told again", func() bool { return len(back.All()) > 0 })
	close(p.Rest) // the model has waited, so that the turn lasts until the program is connected again
	h.Eventually("its mouth moves", func() bool { return len(back.Containing("stackchan.mouth")) > 1 })
	talking.Wait()
	if first := back.Containing("stackchan.state")[0].Text; first != `{"action":"stackchan.state","data":"speaking"}` {
		t.Errorf("at its return it is told %s", first)
	}
	answer := robot.Stats().Turns[0].Answer
	if len(answer) == 0 {
		t.Fatal("the robot answers nothing")
	}
	for _, want := range []string{`"listening"`, `"thinking"`, `"speaking"`, `"data":"` + answer[0]} {
		if len(lasts.Containing(want)) == 0 {
			t.Errorf("%s was not told: %v", want, lasts.All())
		}
	}
	for _, program := range []*appliancetest.Avatar{lasts, back} {
		h.Eventually("its mouth shuts", func() bool {
			all := program.Containing("stackchan.mouth")
			return all[len(all)-1].Text == `{"action":"stackchan.mouth","data":0}`
		})
		h.Eventually("it is at rest", func() bool {
			all := program.Containing("stackchan.state")
			return all[len(all)-1].Text == `{"action":"stackchan.state","data":"idle"}`
		})
	}
}

// TestAStrangerShowsInNoAvatarProgram checks that no avatar program shows a robot that is not adopted: neither programs
// that relays connect to, even if the relay is for this robot, nor programs that have connected and joined the robot's
// talk. After the adoption they show the robot.
func TestAStrangerShowsInNoAvatarProgram(t *testing.T) {
	t.Parallel()
	const stranger, owned device.ID = "a0b1c2d3e4f6", "a0b1c2d3e4f5"
	whoever, that := appliancetest.NewAvatar(t, ""), appliancetest.NewAvatar(t, "")
	c := appliancetest.Config()
	c.Skins.OpenClaw = "127.0.0.1:0"
	c.Relays = []config.Relay{{Kind: "warudo", URL: "ws://" + whoever.Address},
		{Kind: "warudo", Name: "second", URL: "ws://" + that.Address, Robot: stranger.MAC()}}
	h := appliancetest.Start(t, c, t.TempDir())
	h.Robots.Welcome(time.Time{}) // ends the time in which robots are adopted automatically
	h.Adopt(owned.MAC())
	h.RunRobot(simrobot.Options{MAC: stranger.MAC()}) // makes the robot known to the appliance
	for _, name := range []string{"relay warudo", "relay second"} {
		h.Eventually(name+" is connected", func() bool { return h.Part(name).OK })
	}
	here, joined := "ws://"+h.Listeners.At("local")[0], "?talk=robot:"+string(stranger)
	programs := map[string]*avatartest.Client{"aituber": avatartest.AITuber(t, here, joined), "llmvtuber": avatartest.LLMVTuber(t, here, joined),
		"openclaw": avatartest.OpenClaw(t, "ws://"+h.Listeners.At("skins.openclaw")[0])}
	told := map[string]func() string{"whoever works": of(whoever), "the stranger": of(that)}
	for name, p := range programs {
		p.Listen()
		told[name] = p.Transcript
	}
	greeting := map[string]string{}
	for name, all := range told {
		h.Eventually(name+" shows a robot at rest", func() bool { greeting[name] = all(); return greeting[name] != "" })
	}
	robot := h.RunRobot(simrobot.Options{MAC: stranger.MAC(), Say: appliancetest.Sentences(t, "what can you do")})
	if turns := robot.Stats().Turns; len(turns) != 1 || !turns[0].Answered {
		t.Fatalf("it has no talk: %+v", turns)
	}
	tool := event.ToolStatus{ID: "1", Name: "weather", Status: event.ToolRunning}
	h.Bus.Publish(stranger, "s", tool)
	h.Bus.Publish(stranger, "s", event.Notification{ID: "n", Text: "I am a stranger's.", Urgency: "high", Speak: true})
	h.Bus.Publish(owned, "o", event.Said{Text: "I am the owner's."})
	h.Bus.Publish("", "", event.Notification{ID: "m", Text: "Bread is done.", Urgency: "normal"})
	for name, want := range map[string][]string{ // the texts that a program receives after its greeting; it receives no others
		"whoever works": {"I am the owner's.", "Bread is done.", `"stackchan.state","data":"speaking"`},
		"the stranger":  {"Bread is done."}, "aituber": {"Bread is done."}, "llmvtuber": {"Bread is done."},
		"openclaw": {`"phase":"start"`, "I am the owner's.", `"stream":"assistant"`},
	} {
		has := func(text string) bool { return strings.Contains(told[name](), text) }
		h.Eventually(name+" is told the owner's", func() bool { return !slices.ContainsFunc(want, func(w string) bool { return !has(w) }) })
		for line := range strings.Lines(strings.TrimPrefix(told[name](), greeting[name]+"\n")) {
			its := func(w string) bool { return strings.Contains(line, w) }
			if !slices.ContainsFunc(want, its) && !its(`"stackchan.mood","data":"neutral"`) { // the mood of the household's character
				t.Errorf("%s: it is told %s", name, line)
			}
		}
	}
	h.Adopt(stranger.MAC())
	h.Bus.Publish(stranger, "s", event.RobotOnline{})
	h.Bus.Publish(stranger, "s", tool)
	for name, want := range map[string]string{"whoever works": "working", "the stranger": "working", "aituber": "weather", "llmvtuber": "weather",
		"openclaw": "weather"} {
		h.Eventually(name+" shows it once it is adopted", func() bool { return strings.Contains(told[name](), want) })
	}
}

// of returns a function that returns the messages that a program has received, one per line.
func of(a *appliancetest.Avatar) func() string {
	return func() string {
		var lines []string
		for _, m := range a.All() {
			lines = append(lines, m.Text)
		}
		return strings.Join(lines, "\n")
	}
}
