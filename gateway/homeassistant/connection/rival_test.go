package connection

import (
	"testing"
	"time"
)

// TestAbandoned tests that an appliance can claim the topics of another appliance that was offline for a minute.
func TestAbandoned(t *testing.T) {
	r := newRivals("0a1b2c3d", time.Now())
	r.onInfo([]byte(`{"id":"ffffffff","started":"2026-01-01T00:00:00Z"}`))
	r.onStatus("offline")
	now := time.Now()
	if r.claim(now.Add(abandonedAfter / 2)) {
		t.Error("given up too soon")
	}
	r.reset() // the connection was lost for a moment
	r.onInfo([]byte(`{"id":"ffffffff","started":"2026-01-01T00:00:00Z"}`))
	r.onStatus("offline")
	if !r.claim(now.Add(abandonedAfter + time.Second)) {
		t.Error("not given up")
	}
	r.onInfo([]byte("\xff{")) // not published by an appliance
	if other, precedes := r.takeConflict(); precedes || other != "" {
		t.Error("a rival made of garbage")
	}
}

// FuzzBridgeInfo tests that no message on bridge/info or bridge/status makes rivals panic or return a long error.
func FuzzBridgeInfo(f *testing.F) {
	f.Add([]byte(`{"id":"ffffffff","version":"1","robots":2,"started":"2026-01-01T00:00:00Z"}`), "online")
	f.Add([]byte(`{"id":7}`), "offline")
	f.Add([]byte(""), "\xff")
	f.Fuzz(func(t *testing.T, info []byte, status string) {
		r := newRivals("0a1b2c3d", time.Unix(0, 0))
		r.onInfo(info)
		r.onStatus(status)
		r.takeConflict()
		if len(r.conflictError("perch").Error()) > 1000 {
			t.Error("a cause without end")
		}
		r.claim(time.Now())
	})
}
