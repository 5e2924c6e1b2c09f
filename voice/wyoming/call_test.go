package wyoming

import (
	"net"
	"sync"
	"testing"
	"time"
)

// deadlines is a connection that records the earliest deadline for reading.
type deadlines struct {
	net.Conn
	mu       sync.Mutex
	earliest time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.earliest.IsZero() || t.Before(d.earliest) {
		d.earliest = t
	}
	return nil
}

// TestTextAtTheEndOfSpeechDoesNotEndACall checks that extend never sets a read deadline in the past,
// even if it is called at the same moment as startTimeout.
func TestTextAtTheEndOfSpeechDoesNotEndACall(t *testing.T) {
	for range 20_000 {
		conn := &deadlines{}
		c := &call{conn: conn, timeout: time.Minute}
		began := time.Now()
		var asking sync.WaitGroup
		asking.Go(func() { _ = c.startTimeout() })
		for less := false; !less; { // extend returns true only after startTimeout
			less, _ = c.extend(0)
		}
		asking.Wait()
		if conn.earliest.Before(began) {
			t.Fatalf("the call ends at %s, and began at %s", conn.earliest, began)
		}
	}
}
