package robot

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"perch/event"
)

// TestStages: each stage is what came between it and the one before that there
// was; tools that run at a time are counted once.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stages
		s.mark(event.StageRecognize) // of nothing yet
		s.begin(time.Now().Add(-600 * time.Millisecond))
		s.mark(event.StageEndpoint)
		time.Sleep(300 * time.Millisecond)
		s.mark(event.StageRecognize)
		time.Sleep(100 * time.Millisecond)
		s.mark(event.StageFirstToken)
		s.tool(event.ToolDone) // of a tool that was never announced
		s.tool(event.ToolRunning)
		time.Sleep(time.Second)
		s.tool(event.ToolRunning)
		time.Sleep(time.Second)
		s.tool(event.ToolDone)
		s.tool(event.ToolFailed)
		s.mark(event.StageFirstAudio) // of a phrase, which no brain has said
		s.mark(event.StageFirstAudio)
		time.Sleep(20 * time.Millisecond)
		s.mark(event.StageFirstPacket)
		want := map[string]int64{event.StageEndpoint: 600, event.StageRecognize: 300, event.StageFirstToken: 100, event.StageFirstAudio: 2000,
			event.StageFirstPacket: 3020, event.StageTools: 2000}
		if got := s.all(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
