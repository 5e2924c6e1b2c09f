package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheBrokerIsStartedAgain tests that a broker that has ended is restarted, that the pause grows while the broker
// keeps ending, and that the pause is the minimum again after a long run.
func TestTheBrokerIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Time
		holds := time.Duration(0)
		k := newEmbeddedBroker(Options{Log: slog.New(slog.DiscardHandler), Serve: func(ctx context.Context, _ *net.TCPListener, _, _ string) error {
			mu.Lock()
			starts = append(starts, time.Now())
			holds := holds
			mu.Unlock()
			select {
			case <-time.After(holds):
				return errors.New("it fell over")
			case <-ctx.Done():
				return nil
			}
		}})
		k.update(func(r *brokerRuns) { r.tried, r.address = true, "0.0.0.0:1883" })
		ctx, stop := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { k.runBroker(ctx, nil) })
		time.Sleep(10 * time.Minute)
		mu.Lock()
		if n := len(starts); n < 20 || n > 30 || starts[1].Sub(starts[0]) != minRestartPause || starts[n-1].Sub(starts[n-2]) != maxRestartPause {
			t.Errorf("it was started %d times: %v", n, starts)
		}
		holds = time.Hour
		mu.Unlock()
		if _, err := k.address(t.Context()); err == nil || !strings.Contains(err.Error(), "it fell over") {
			t.Errorf("while it is away: %v", err)
		}
		time.Sleep(maxRestartPause)
		at, err := k.address(t.Context())
		if at != "127.0.0.1:1883" || err != nil {
			t.Errorf("it is at %q (%v)", at, err)
		}
		before, _ := k.state()
		time.Sleep(time.Hour)
		mu.Lock()
		if n := len(starts); starts[n-1].Sub(starts[n-2]) != time.Hour+minRestartPause {
			t.Errorf("after it had held it was started again after %v", starts[n-1].Sub(starts[n-2])-time.Hour)
		}
		mu.Unlock()
		if runs, _ := k.state(); runs.ends != before.ends+1 || runs.ended.IsZero() || fmt.Sprint(runs.why) != "it fell over" {
			t.Errorf("it has ended %d times, last at %s: %s", runs.ends, runs.ended, runs.why)
		}
		stop()
		keeping.Wait()
	})
}
