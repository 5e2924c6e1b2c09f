package voice_test

import (
	"fmt"
	"time"

	"perch/voice"
)

// The first packets are sent at once, until the robot has more than 300 ms of
// sound to play. Then one packet is sent every 60 ms.
func ExamplePacer() {
	start := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	now := start
	p := voice.Pacer{Queue: 40}
	for packet := range 8 {
		if due := p.NextSend(); due.After(now) {
			now = due // a writer would wait here
		}
		p.Sent(now)
		fmt.Println("packet", packet, "at", now.Sub(start), "with", p.Lead(now), "ahead")
	}
	fmt.Println("played after", p.PlayedUntil().Sub(start))
	// Output:
	// packet 0 at 0s with 60ms ahead
	// packet 1 at 0s with 120ms ahead
	// packet 2 at 0s with 180ms ahead
	// packet 3 at 0s with 240ms ahead
	// packet 4 at 0s with 300ms ahead
	// packet 5 at 0s with 360ms ahead
	// packet 6 at 60ms with 360ms ahead
	// packet 7 at 120ms with 360ms ahead
	// played after 480ms
}
