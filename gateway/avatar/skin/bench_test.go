package skin

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"perch/event"
	"perch/gateway/httpserver"
	"perch/must"
)

// connectAll connects skins, and counts their frames. read waits until each skin has received each frames,
// and returns when each skin received its latest frame.
func connectAll(b *testing.B, h *harness, skins int) (read func(each int) (last []time.Time)) {
	b.Helper()
	type arrival struct {
		at time.Time
		n  int
	}
	var mu sync.Mutex
	var changed = sync.NewCond(&mu)
	seen := make([]arrival, skins)
	for i := range skins {
		conn, err := h.dial("Authorization", "Bearer "+secret)
		must.Succeed(b, err)
		b.Cleanup(conn.Drop)
		go func() {
			for {
				if _, _, err := conn.Receive(); err != nil {
					return
				}
				at := time.Now()
				mu.Lock()
				seen[i] = arrival{at, seen[i].n + 1}
				changed.Broadcast()
				mu.Unlock()
			}
		}()
	}
	return func(each int) (last []time.Time) {
		mu.Lock()
		defer mu.Unlock()
		for slices.ContainsFunc(seen, func(a arrival) bool { return a.n < each }) {
			changed.Wait()
		}
		for _, a := range seen {
			last = append(last, a.at)
		}
		return last
	}
}

// BenchmarkEventToSkins measures how long one change of state takes from the bus to the code of every skin
// over loopback, and how long publishing takes, which should not depend on the number of skins. The clients
// run in this process too.
func BenchmarkEventToSkins(b *testing.B) {
	for _, skins := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("skins=%d", skins), func(b *testing.B) {
			h := newHarness(b, func(o *Options) { o.serving = httpserver.NewServing("skins", 1000, 1000) })
			read := connectAll(b, h, skins)
			h.happens(robotA, "s1", event.RobotOnline{})
			read(1)
			var took, published []time.Duration
			states := []event.Event{event.ListeningStarted{}, event.ThinkingStarted{}} // most skins get these as idle and thinking
			n := 1
			for b.Loop() {
				at := time.Now()
				h.happens(robotA, "s1", states[n%2])
				published = append(published, time.Since(at))
				n++
				for _, arrived := range read(n) {
					took = append(took, arrived.Sub(at))
				}
			}
			slices.Sort(took)
			slices.Sort(published)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(published[len(published)/2].Nanoseconds())/1000, "publish-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
