package agent_test

import (
	"fmt"
	"time"

	"perch/agent"
	"perch/event"
)

// The events of a session determine what the agent shows. Fold reads no clock: the state
// attention ends at the time that ExpiresAt returns.
func ExampleFold() {
	noon := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	var s agent.State
	for i, e := range []event.Event{
		event.RobotOnline{Framing: 2},
		event.ListeningStarted{Mode: "auto"},
		event.Heard{Text: "look left"},
		event.ToolStatus{ID: "1", Name: "set_head_angles", Status: event.ToolRunning},
		event.ToolStatus{ID: "1", Name: "set_head_angles", Status: event.ToolDone},
		event.SpeakingStarted{},
		event.TurnEnded{End: event.EndDone},
	} {
		at := noon.Add(time.Duration(i) * time.Second)
		s = agent.Fold(s, event.Envelope{Seq: uint64(i + 1), At: at, Robot: "a0b1c2d3e4f5", Session: "s1", Event: e})
		fmt.Println(event.Kind(e), "→", s.At(at))
	}
	fmt.Println(s.ExpiresAt().Sub(noon), "→", s.At(s.ExpiresAt()))
	// Output:
	// robot_online → idle
	// listening_started → listening
	// heard → thinking
	// tool_status → working
	// tool_status → thinking
	// speaking_started → speaking
	// turn_ended → attention
	// 10s → idle
}
