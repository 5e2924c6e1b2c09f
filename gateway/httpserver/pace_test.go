package httpserver_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/httpserver"
)

// TestPace checks the limit of a peer's requests, and that it does not affect other peers.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := httpserver.NewPace()
		come := func(from string) (status int) {
			r := request(http.MethodPost, "/xiaozhi/ota/")
			r.RemoteAddr = from
			if err := p.Check(r); err != nil {
				_, status = refused(t, err)
			}
			return status
		}
		for n := range 200 {
			if got := come(fmt.Sprintf("192.168.1.66:%d", n)); got != 0 {
				t.Fatalf("request %d: %d", n+1, got)
			}
			if got := come(fmt.Sprintf("[2001:db8::%x]:1", n)); got != 0 {
				t.Fatalf("request %d of a /64: %d", n+1, got)
			}
		}
		for _, from := range []string{"192.168.1.66:1", "[2001:db8::ffff]:1"} {
			if got := come(from); got != http.StatusTooManyRequests {
				t.Errorf("one more from %s: %d", from, got)
			}
		}
		for _, from := range []string{"192.168.1.67:1", "[2001:db8:0:1::1]:1"} {
			if got := come(from); got != 0 {
				t.Errorf("from %s: %d", from, got)
			}
		}
		time.Sleep(time.Second)
		for n := range 21 {
			if got := come("192.168.1.66:1"); (got == 0) != (n < 20) {
				t.Errorf("request %d of the next second: %d", n+1, got)
			}
		}
		for range 1000 {
			if got := come("127.0.0.1:1"); got != 0 {
				t.Fatalf("from this machine: %d", got)
			}
		}
		for n := range 3000 { // many peers do not lock each other out
			if got := come(fmt.Sprintf("10.0.%d.%d:1", n/250, n%250)); got != 0 {
				t.Fatalf("invented address %d: %d", n, got)
			}
		}
	})
}
