package httpserver

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"perch/must"
)

// TestServing checks the limits of connections, in total and per peer, and that Run waits for the connections.
func TestServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServing("clients", 3, 2)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		refused := func(remote, word, sentence string) {
			t.Helper()
			var f *Fault
			if _, _, err := s.Enter(&http.Request{RemoteAddr: remote}); !errors.As(err, &f) || f.Word != word || f.Sentence != sentence || f.HTTP != 503 {
				t.Errorf("from %s: %v", remote, err)
			}
		}
		var leave []func()
		var serving context.Context
		for _, remote := range []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"} {
			c, l, err := s.Enter(&http.Request{RemoteAddr: remote})
			must.Succeed(t, err)
			serving, leave = c, append(leave, l)
			if len(leave) == 2 {
				refused("192.0.2.1:3", "too_many_clients", "2 clients are connected from this address, and that is the limit; close some")
			}
		}
		refused("192.0.2.3:1", "too_many_clients", "3 clients are connected, and that is the limit; close some")
		leave[0]()
		leave[0]()
		if n := s.Connected(); n != 2 {
			t.Errorf("%d are connected, want 2", n)
		}
		cancel()
		synctest.Wait()
		if serving.Err() == nil {
			t.Error("at the end they are served on")
		}
		refused("192.0.2.3:1", "stopping", GoingAway)
		leave[1]()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the end comes before the last has left")
		default:
		}
		leave[2]()
		<-ended
	})
}
