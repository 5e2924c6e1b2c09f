package xiaozhi_test

import (
	"fmt"

	"perch/device/xiaozhi"
)

// Framing 2 carries a timestamp with each packet. Parse refuses a message whose
// sizes do not match.
func ExampleFraming() {
	packet := xiaozhi.Audio{Timestamp: 1500, Opus: []byte{0xF8, 0xFF, 0xFE}}
	message := xiaozhi.Framing2.Append(nil, packet)
	fmt.Printf("% x\n", message)

	read, err := xiaozhi.Framing2.Parse(message)
	fmt.Printf("%d ms, % x, %v\n", read.Timestamp, read.Opus, err)

	_, err = xiaozhi.Framing2.Parse(message[:18])
	fmt.Println(err)
	// Output:
	// 00 02 00 00 00 00 00 00 00 00 05 dc 00 00 00 03 f8 ff fe
	// 1500 ms, f8 ff fe, <nil>
	// bad audio frame: version 2, type 0, 3 bytes announced, 2 there
}
