package appliance_test

import (
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
)

// TestAnAvatarProgramShowsATalk: it is told states, the sentences and the mouth while a
// robot speaks. One that is killed in the middle is told what shows then, within a second
// of its return.
func TestAnAvatarProgramShowsATalk(t *testing.T) {
	t.Parallel()
	lasts, killed := appliancetest.NewAvatar(t, ""), appliancetest.NewAvatar(t, "")
	c := appliancetest.Config()
	c.Relays = []config.Relay{{Kind: "warudo", URL: "ws://" + lasts.Address}, {Kind: "warudo", Name: "second", URL: "ws://" + killed.Address}}
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	for _, name := range []string{"relay warudo", "relay second"} {
		h.Eventually(name+" is connected", func() bool { return h.Part(name).OK })
	}
	var talking sync.WaitGroup
	var robot *appliancetest.Robot
	talking.Go(func() {
		robot = h.Robot(simrobot.Options{Say: appliancetest.Sentences(t, "what can you do")})
	})
	h.Eventually("a mouth moves", func() bool { return len(killed.Of("stackchan.mouth")) > 0 })
	killed.Kill()
	h.Eventually("it is gone", func() bool { return !h.Part("relay second").OK })
	back := appliancetest.NewAvatar(t, killed.Address)
	began := time.Now()
	h.Eventually("it is told again", func() bool { return len(back.All()) > 0 })
	h.Eventually("its mouth moves", func() bool { return len(back.Of("stackchan.mouth")) > 1 })
	talking.Wait()
	if took := back.All()[0].At.Sub(began); took > time.Second+robot.Late() {
		t.Errorf("it is told %s after its return", took)
	} else {
		t.Logf("it is told %s after its return", took)
	}
	if first := back.Of("stackchan.state")[0].Text; first != `{"action":"stackchan.state","data":"speaking"}` {
		t.Errorf("at its return it is told %s", first)
	}
	answer := robot.Stats().Turns[0].Answer
	if len(answer) == 0 {
		t.Fatal("the robot answers nothing")
	}
	for _, want := range []string{`"listening"`, `"thinking"`, `"speaking"`, `"data":"` + answer[0]} {
		if len(lasts.Of(want)) == 0 {
			t.Errorf("%s was not told: %v", want, lasts.All())
		}
	}
	for _, program := range []*appliancetest.Avatar{lasts, back} {
		h.Eventually("its mouth shuts", func() bool {
			all := program.Of("stackchan.mouth")
			return all[len(all)-1].Text == `{"action":"stackchan.mouth","data":0}`
		})
		h.Eventually("it is at rest", func() bool {
			all := program.Of("stackchan.state")
			return all[len(all)-1].Text == `{"action":"stackchan.state","data":"idle"}`
		})
	}
	mouths := lasts.Of("stackchan.mouth")
	took := mouths[len(mouths)-1].At.Sub(mouths[0].At)
	t.Logf("the mouth moved %d times in %s", len(mouths), took)
	if len(mouths) < 20 {
		t.Errorf("the mouth moved %d times in %s", len(mouths), took)
	}
}
