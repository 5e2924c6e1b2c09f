package event_test

import (
	"strings"
	"testing"

	"perch/event"
)

// TestAtIsOfTheRunningClock, too: whoever counts from an event on, seconds of
// attention or minutes of a cool-down, is not to see the wall clock being set.
func TestAtIsOfTheRunningClock(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	reader := bus.Read()
	bus.Publish("", "", event.Fault{})
	e, err := reader.Next(t.Context())
	if err != nil || !strings.Contains(e.At.String(), " m=") {
		t.Errorf("an event is of %s, %v", e.At, err)
	}
}
