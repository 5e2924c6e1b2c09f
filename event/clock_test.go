package event_test

import (
	"strings"
	"testing"

	"perch/event"
)

// TestAtIsOfTheRunningClock: At keeps the monotonic reading, so that durations
// counted from an event stay right when the wall clock is set.
func TestAtIsOfTheRunningClock(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	reader := bus.Read()
	bus.Publish("", "", event.Fault{})
	e, err := reader.Next(t.Context())
	if err != nil || !strings.Contains(e.At.String(), " m=") {
		t.Errorf("At is %s, %v; want a monotonic reading", e.At, err)
	}
}
