package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// openPages is how many pages follow the events.
const openPages = 50

// BenchmarkPages is what robots notice of pages that are open beside their talks.
func BenchmarkPages(b *testing.B) {
	dir := b.TempDir()
	a := begin(b, os.Args[0], dir, nil, asLoadTarget+"=1")
	a.up()
	defer a.stop()
	token, err := os.ReadFile(filepath.Join(dir, "admin-token"))
	if err != nil {
		b.Fatal(err)
	}
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		for _, pages := range []int{0, openPages} {
			ctx, cancel := context.WithCancel(b.Context())
			var open, reading sync.WaitGroup
			var mu sync.Mutex
			events := 0
			for range pages {
				open.Add(1)
				reading.Go(func() {
					n := followEvents(ctx, b, a.url, strings.TrimSpace(string(token)), sync.OnceFunc(open.Done))
					mu.Lock()
					defer mu.Unlock()
					events += n
				})
			}
			open.Wait()
			all := load(b, a.url, loadRobots, say, nil)
			cancel()
			reading.Wait()
			var gaps, first []time.Duration
			lost := 0
			for _, s := range all {
				gaps = append(gaps, s.Gaps...)
				lost += s.Dropped + s.Ignored + s.Cut + s.Bad + s.Underruns
				for _, turn := range s.Turns {
					first = append(first, turn.FirstAudio)
				}
			}
			name := "without"
			if pages > 0 {
				name = "with-50"
				b.ReportMetric(float64(events)/openPages, "events-to-each")
			}
			b.ReportMetric(float64(simrobot.Quantile(gaps, 0.99).Microseconds())/1000, "ms-gap-p99-"+name)
			b.ReportMetric(float64(simrobot.Quantile(first, 0.5).Microseconds())/1000, "ms-first-sound-"+name)
			b.ReportMetric(float64(lost), "lost-or-dry-"+name)
		}
	}
}

// followEvents reads the events as a page does, until ctx ends, and returns how many
// there were.
func followEvents(ctx context.Context, b *testing.B, url, token string, open func()) (events int) {
	defer open()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events", nil)
	if err != nil {
		b.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Errorf("%v %v", answer, err)
		return 0
	}
	defer answer.Body.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			open()
			events += strings.Count(string(buffer[:n]), "\nevent: ")
		}
		if err != nil {
			if ctx.Err() == nil && err != io.EOF {
				b.Error(err)
			}
			return events
		}
	}
}
