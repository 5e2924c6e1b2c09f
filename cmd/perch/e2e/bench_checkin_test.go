package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// BenchmarkCheckIn measures check-ins of a known robot over one connection: the CPU time of the appliance for each
// check-in, on which other programs have little influence, and the number of check-ins per second.
func BenchmarkCheckIn(b *testing.B) {
	a := start(b, b.TempDir())
	defer a.stop()
	checkIn := func() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, a.ota(),
			strings.NewReader(`{"application":{"name":"stack-chan","version":"2.0.3"},"board":{"name":"stack-chan","type":"m5stack-core-s3"}}`))
		must.Succeed(b, err)
		r.Header = http.Header{"Device-Id": {"a0:b1:c2:d3:e4:f5"}, "Client-Id": {"7b94d69a-9808-4c59-9c9b-704333b38aff"},
			"User-Agent": {"stack-chan/2.0.3"}}
		answer := must.Value(http.DefaultClient.Do(r))(b)
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"token"`) {
			b.Fatalf("%d %s %v", answer.StatusCode, body, err)
		}
	}
	checkIn()
	before, began, n := a.cpu(b), time.Now(), 0
	for b.Loop() {
		checkIn()
		n++
	}
	b.ReportMetric(float64((a.cpu(b)-before).Microseconds())/float64(n), "µs-cpu/check-in")
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "check-ins/s")
}
