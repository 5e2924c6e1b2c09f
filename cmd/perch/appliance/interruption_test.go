package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/voice/espeak"
	"perch/waittest"
)

// interrupted starts a robot's turn, and interrupts it when reached returns true: by a tap on the robot (byTap), which
// aborts the speech or, before the speech, closes the channel, or by Server.Abort. It waits until over returns true.
func interrupted(t *testing.T, h *appliancetest.Appliance, reached, over func() bool, byTap bool) {
	t.Helper()
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it"), Stay: true})
	waittest.For(h.T, "the stage is reached", reached)
	if byTap {
		robot.Tap()
	} else if err := h.Talk.Abort(t.Context(), "a0b1c2d3e4f5"); err != nil {
		t.Error(err)
	}
	h.Eventually("the turn leaves nothing behind", over)
	robot.Off()
}

// TestInterruptedInEachStage checks that a turn that is interrupted in any stage leaves no open requests and no
// goroutines behind, and that the next turn is answered.
func TestInterruptedInEachStage(t *testing.T) {
	for _, stage := range []string{"recognizing", "first token", "in a tool", "speaking"} {
		for _, how := range []string{"a tap", "a command"} {
			t.Run(stage+" by "+how, func(t *testing.T) {
				p := appliancetest.NewPeers(t)
				var held atomic.Bool
				p.Holds = func() string {
					if held.Load() {
						return stage
					}
					return ""
				}
				c := appliancetest.Config()
				p.Use(&c)
				h := appliancetest.Start(t, c, t.TempDir())
				h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).CheckComplete(t)
				h.Eventually("nothing is under way", func() bool { return p.Active() == 0 })
				before := runtime.NumGoroutine()
				held.Store(true)
				reached := func() bool {
					select {
					case at := <-p.Reached:
						if at != stage {
							t.Errorf("%s is held", at)
						}
						return true
					default:
						return false
					}
				}
				interrupted(t, h, reached, func() bool { return p.Active() == 0 }, how == "a tap")
				held.Store(false)
				// Idle connections have goroutines, too.
				h.Eventually("no goroutine is left", func() bool {
					p.CloseConnections()
					return runtime.NumGoroutine() <= before
				})
				h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).CheckComplete(t)
			})
		}
	}
}

// withAgent starts an appliance and makes a robot known to it, which is adopted or not. The brain is the example agent
// of the Go library for ACP (Agent Client Protocol). It asks in each turn for permission to change a file.
func withAgent(t *testing.T, adopted bool) *appliancetest.Appliance {
	t.Helper()
	c := appliancetest.Config()
	c.Speech.Synthesizers[0].Options.(*espeak.Options).Speed = 400 // words per minute: the agent says much before it asks
	c.Brains = []config.Engine{{Kind: "acp", Options: &acp.Options{Command: []string{built(t, "github.com/coder/acp-go-sdk/example/agent")}}}}
	h := appliancetest.Start(t, c, t.TempDir())
	if !adopted {
		h.Robots.Welcome(time.Time{})
	}
	h.RunRobot(simrobot.Options{}) // makes the robot known to the appliance
	return h
}

// others returns the IDs of the child processes of this process, except the process of espeak-ng.
func others(t *testing.T) (all []string) {
	t.Helper()
	for _, child := range appliancetest.ChildProcesses(t, os.Getpid()) {
		line, _ := os.ReadFile("/proc/" + child + "/cmdline") // fails if the process has ended
		if !strings.HasSuffix(string(line), "\x00"+espeak.ServeCommand+"\x00") {
			all = append(all, child)
		}
	}
	return all
}

// TestInterruptedWhileAsking checks that a coding agent's question counts as refused if the turn is interrupted, and
// that the agent's process ends with the appliance.
func TestInterruptedWhileAsking(t *testing.T) {
	for _, how := range []string{"a tap", "a command"} {
		t.Run(how, func(t *testing.T) {
			h := withAgent(t, true)
			questions := func(n int) func() bool { return func() bool { return len(h.Talk.Questions()) == n } }
			interrupted(t, h, questions(1), questions(0), how == "a tap")
			if len(others(t)) != 1 {
				t.Errorf("the agent is kept for the next turn; the children are %v", others(t))
			}
			h.Stop()
			if left := appliancetest.ChildProcesses(t, os.Getpid()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if log := h.Logged.String(); strings.Contains(log, "allowed=true") {
				t.Errorf("a question that was cut off was a yes:\n%s", log)
			}
		})
	}
}

// TestPermissions checks that a robot speaks the question of a coding agent, and that a spoken yes or no, a touch or
// the admin API answers it. A robot that is not adopted asks nothing.
func TestPermissions(t *testing.T) {
	t.Parallel()
	const allowed, refused = "I've successfully updated the configuration.", "I'll skip the configuration update."
	permit := func(allow bool) func(*appliancetest.Appliance, *simrobot.Robot, agent.Question) {
		return func(h *appliancetest.Appliance, _ *simrobot.Robot, q agent.Question) {
			var open []agent.Question
			h.Admin("GET", "/api/v1/permissions", "{}", &open)
			if len(open) != 1 || open[0].ID != q.ID || !strings.Contains(open[0].Text, "Modifying critical configuration file") {
				h.T.Errorf("open are %+v", open)
			}
			h.Admin("POST", "/api/v1/permissions/"+q.ID, fmt.Sprintf(`{"allow":%t}`, allow), nil)
		}
	}
	touch := func(h *appliancetest.Appliance, r *simrobot.Robot, _ agent.Question) {
		waittest.For(h.T, "a touch is an answer, once the question can be heard", func() bool {
			r.SendEvent(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
			return len(h.Talk.Questions()) == 0
		})
	}
	for name, c := range map[string]struct {
		stranger bool
		says     []string // what the person says after the first sentence
		answer   func(*appliancetest.Appliance, *simrobot.Robot, agent.Question)
		want     string
	}{
		"a spoken yes":        {says: []string{"yes"}, want: allowed},
		"a spoken no":         {says: []string{"no"}, want: refused},
		"a touch":             {answer: touch, want: allowed},
		"its owner allows it": {answer: permit(true), want: allowed},
		"its owner refuses":   {answer: permit(false), want: refused},
		"a stranger":          {stranger: true, want: "Nobody has adopted me yet. The command perch robot list says how."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time the tests wait for speech
			h := withAgent(t, !c.stranger)
			r := h.NewRobot(simrobot.Options{Firmware: "dotty", Stay: true,
				Say: appliancetest.Sentences(t, append([]string{"what time is it"}, c.says...)...)})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			if c.answer != nil {
				waittest.For(t, "it asks", func() bool { return len(h.Talk.Questions()) == 1 })
				c.answer(h, r.Robot, h.Talk.Questions()[0])
			}
			waittest.For(t, "it says "+c.want, func() bool { return r.HasShown(c.want) })
			leave()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		})
	}
}
