package hooks

import (
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// TestRobotsShow checks that idle robots show the state of the sessions, and other robots after their conversation.
func TestRobotsShow(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.robots.opens(robotA, robotB)
		h.bus.Publish(robotA, "t1", event.RobotOnline{})
		h.bus.Publish(robotB, "t2", event.RobotOnline{})
		synctest.Wait()
		h.felt(t, "nobody codes")
		h.bus.Publish(robotB, "t2", event.Heard{Text: "hello"})
		h.reports(t, `{"state":"thinking","session_id":"s1"}`)
		h.felt(t, "one thinks", string(robotA)+" thinking")
		h.reports(t, `{"state":"working","session_id":"s1"}`)
		h.reports(t, `{"state":"thinking","session_id":"s2"}`)
		h.felt(t, "one works", string(robotA)+" confident")
		h.bus.Publish(robotB, "t2", event.TurnEnded{End: event.EndDone})
		h.felt(t, "the other has just ended its turn")
		time.Sleep(4 * time.Second)
		h.felt(t, "it is idle", string(robotB)+" confident")
		h.reports(t, `{"state":"attention","session_id":"s1"}`)
		h.felt(t, "one is done", string(robotA)+" happy", string(robotB)+" happy")
		time.Sleep(4 * time.Second)
		h.felt(t, "the other still thinks", string(robotA)+" thinking", string(robotB)+" thinking")
		h.robots.opens(robotA)
		time.Sleep(staleWork)
		h.felt(t, "nothing more was heard of it", string(robotA)+" neutral")
		time.Sleep(time.Hour)
		h.felt(t, "all are forgotten")
		if got := h.shows("coding-1"); got != agent.Idle {
			t.Errorf("the board has it as %s", got)
		}
		if len(h.api.table) != 0 {
			t.Errorf("the table is %v", h.api.table)
		}
	})
}

// TestListeningRobotsShow checks a robot in auto mode, which listens as long as its channel is open. It
// shows the state of the sessions after some silence, and again after each turn.
func TestListeningRobotsShow(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.robots.opens(robotA)
		h.bus.Publish(robotA, "t1", event.RobotOnline{})
		h.bus.Publish(robotA, "t1", event.ListeningStarted{Mode: "auto"})
		h.reports(t, `{"state":"working","session_id":"s1"}`)
		h.felt(t, "somebody may be about to speak")
		time.Sleep(silence - time.Second)
		h.bus.Publish(robotA, "t1", event.Misheard{})
		time.Sleep(silence - time.Second)
		h.felt(t, "somebody has just spoken")
		time.Sleep(time.Second)
		h.felt(t, "nobody speaks", string(robotA)+" confident")
		h.reports(t, `{"state":"error","session_id":"s1"}`)
		h.felt(t, "it fails", string(robotA)+" sad")
		h.bus.Publish(robotA, "t1", event.Heard{Text: "hello"})
		h.bus.Publish(robotA, "t1", event.SpeakingStarted{})
		time.Sleep(silence)
		h.reports(t, `{"state":"working","session_id":"s1"}`)
		h.felt(t, "it talks")
		h.bus.Publish(robotA, "t1", event.TurnEnded{End: event.EndDone})
		h.bus.Publish(robotA, "t1", event.ListeningStarted{Mode: "auto"})
		time.Sleep(silence - time.Second)
		h.felt(t, "it has just answered")
		time.Sleep(time.Second)
		h.felt(t, "nobody speaks any more", string(robotA)+" confident")
	})
}

// TestWhichRobotsShow checks that only the configured robots show the state, and only if they are adopted.
func TestWhichRobotsShow(t *testing.T) {
	onlyB := func(id device.ID) bool { return id == robotB }
	for _, c := range []struct {
		named  []device.ID
		trusts func(device.ID) bool
	}{{[]device.ID{robotB}, func(device.ID) bool { return true }}, {nil, onlyB}, {[]device.ID{robotA, robotB}, onlyB}} {
		bubble(t, func(t *testing.T, h *harness) {
			h.runs()
			h.robots.opens(robotA, robotB)
			h.reports(t, `{"state":"error","session_id":"s1"}`)
			h.felt(t, "one fails", string(robotB)+" sad")
		}, func(o *Options) { o.Robots, o.Trusts = c.named, c.trusts })
	}
}

// TestSkinsSee checks that the board has each session under its name, without a robot, with its subagents.
func TestSkinsSee(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.reports(t, `{"hook_event_name":"UserPromptSubmit","session_id":"s1"}`)
		h.reports(t, `{"hook_event_name":"SubagentStart","session_id":"s1"}`)
		h.reports(t, `{"hook_event_name":"SubagentStart","session_id":"s1"}`)
		h.reports(t, `{"state":"sweeping","session_id":"s2","agent_id":"codex"}`)
		synctest.Wait()
		all, _ := h.board.Snapshot()
		if len(all) != 2 || all[0].Session != "coding-1" || all[0].At(time.Now()) != agent.Juggling || all[0].SubAgents != 2 || all[0].Tools != 0 ||
			all[0].Robot != "" ||
			all[1].Session != "coding-2" || all[1].At(time.Now()) != agent.Working {
			t.Errorf("the board has %+v", all)
		}
		h.reports(t, `{"hook_event_name":"SessionEnd","session_id":"s1"}`)
		synctest.Wait()
		if got := h.shows("coding-1"); got != agent.Idle {
			t.Errorf("after its end it shows %s", got)
		}
	})
}
