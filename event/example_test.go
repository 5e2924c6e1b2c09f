package event_test

import (
	"context"
	"fmt"

	"perch/event"
)

// A reader receives the events that are published after the call of Read, and may read them later.
func ExampleBus() {
	bus := event.NewBus()
	reader := bus.Read()
	bus.Publish("a0b1c2d3e4f5", "s1", event.Heard{Text: "what time is it"})
	bus.Publish("a0b1c2d3e4f5", "s1", event.Said{Text: "It is noon."})
	bus.Close()
	for {
		e, err := reader.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		switch happened := e.Event.(type) {
		case event.Heard:
			fmt.Printf("%d %s heard %q\n", e.Seq, e.Robot, happened.Text)
		case event.Said:
			fmt.Printf("%d %s said %q\n", e.Seq, e.Robot, happened.Text)
		}
	}
	// Output:
	// 1 a0b1c2d3e4f5 heard "what time is it"
	// 2 a0b1c2d3e4f5 said "It is noon."
	// the event bus is closed
}
