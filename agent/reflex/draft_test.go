package reflex_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"perch/agent"
	"perch/event"
	"perch/store/storetest"
)

// TestADraftHasNoEffects checks that sentences with an action wait until the person has finished speaking, and others do
// not.
func TestADraftHasNoEffects(t *testing.T) {
	for text, waits := range map[string]bool{"what time is it": false, "tell me a joke": false, "make me a coffee please": false, "look left": true,
		"set the volume to twenty": true, "remember that my keys are in the kitchen": true, "where are my keys": true,
		"set a timer for ten minutes": true, "wake me at seven": true, "cancel the timer": true} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var table storetest.Table[agent.Timer]
				body, memory, bus := stackChan(), newMemory(), event.NewBus()
				m := agent.NewMind(agent.Always(newBrain(t, memory, newTimers(&table))), memory, bus, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				var replies atomic.Int32
				d := agent.NewDraft(ctx, agent.Turn{Conversation: "c", Robot: "a0b1c2d3e4f5", Text: text, Now: noon, Body: body}, func(agent.Reply) { replies.Add(1) })
				written := make(chan struct{})
				go func() {
					defer close(written)
					m.Write(d)
				}()
				synctest.Wait()
				if waited := replies.Load() == 0; waited != waits {
					t.Errorf("%d replies", replies.Load())
				}
				cancel()
				<-written
				if facts := slices.Collect(memory.All(noon)); len(body.calls)+len(facts)+len(table.Kept) > 0 || bus.Seq() > 0 {
					t.Errorf("calls %v, facts %v, timers %v, %d events", body.calls, facts, table.Kept, bus.Seq())
				}
				bus.Close()
			})
		})
	}
}
