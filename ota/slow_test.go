package ota_test

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/gateway/door/doortest"
)

// TestABodyThatNeverEnds: a robot that lost its Wi-Fi in the middle of a
// check-in holds nothing for long, and its headers are enough.
func TestABodyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, device.AdoptOpen)
		robot := doortest.Serve(t, h.handler)
		began := time.Now()
		fmt.Fprint(robot, "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: perch:8003\r\nDevice-Id: a0:b1:c2:d3:e4:f5\r\nContent-Length: 3000\r\n\r\n{")
		answer, err := http.ReadResponse(bufio.NewReader(robot), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("answered %v (%v)", answer, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it was waited for %v", took)
		}
	})
}
