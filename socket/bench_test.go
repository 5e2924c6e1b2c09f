package socket_test

import (
	"testing"

	"perch/socket"
)

// BenchmarkFrame is one Opus packet over loopback: sent by one end, received
// by the other.
func BenchmarkFrame(b *testing.B) {
	for name, toRobot := range map[string]bool{"to robot": true, "from robot": false} {
		b.Run(name, func(b *testing.B) {
			appliance, robot := pair(b, socket.Options{MaxMessage: 65536})
			from, to := robot, appliance
			if toRobot {
				from, to = appliance, robot
			}
			packet := make([]byte, 160)
			b.SetBytes(int64(len(packet)))
			b.ReportAllocs()
			for b.Loop() {
				if err := from.SendBinary(packet); err != nil {
					b.Fatal(err)
				}
				if _, _, err := to.Receive(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
