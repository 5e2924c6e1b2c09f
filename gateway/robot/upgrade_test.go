package robot

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/httpserver/httpservertest"
)

// TestOldFirmwareIsUpgradedLater checks that the response to an upgrade request is delayed by 20 ms for firmware up to 2.4.2,
// which misses an earlier response, but not for newer firmware, and that concurrent requests do not delay each other.
func TestOldFirmwareIsUpgradedLater(t *testing.T) {
	for version, want := range map[string]time.Duration{
		"": 20 * time.Millisecond, "1.2.4": 20 * time.Millisecond, "2.2.4": 20 * time.Millisecond, "2.4.2": 20 * time.Millisecond,
		"dotty": 20 * time.Millisecond, "2.4": 20 * time.Millisecond,
		"2.4.3": 0, "2.5.0": 0, "2.5": 0, "3.0.0-beta": 0, "10.1.0": 0,
	} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTalkOn(t, answer("Yes."), 1, func(k *talk) { k.robots.admitted.Firmware = version })
				defer k.close()
				synctest.Wait() // so that the session has begun before the server stops
				took := make(chan time.Duration, 3)
				for n := range cap(took) { // at the same time
					robot := httpservertest.Serve(t, routesOf(t, k.server))
					defer robot.Close()
					go func() {
						began := time.Now()
						_, _ = fmt.Fprintf(robot, "GET /xiaozhi/v1/ HTTP/1.1\r\nHost: perch:8003\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
							"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nDevice-Id: a0:b1:c2:d3:e4:%02x\r\n"+
							"Client-Id: mine\r\nAuthorization: Bearer x\r\n\r\n", n)
						answer, err := http.ReadResponse(bufio.NewReader(robot), nil)
						if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
							t.Errorf("%v %v", answer, err)
						}
						took <- time.Since(began)
					}()
				}
				for range cap(took) {
					if got := <-took; got != want {
						t.Errorf("firmware %q: the 101 comes after %s, want %s", version, got, want)
					}
				}
			})
		})
	}
}
