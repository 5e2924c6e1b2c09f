package web_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/waittest"
)

// mostToView bounds the time from opening the page to its first view.
const mostToView = 300 * time.Millisecond

// startProgram runs the program that people run, which make bench names in
// PERCH_BINARY, until the benchmark ends. It returns the address of its page.
func startProgram(b *testing.B) string {
	b.Helper()
	binary := os.Getenv("PERCH_BINARY")
	if binary == "" {
		b.Skip("PERCH_BINARY names no program; make bench does")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(b, err)
	at := free.Addr().String()
	_ = free.Close()
	c := exec.Command(binary, "serve", "--data", b.TempDir(), "--listen", "127.0.0.1:0", "--local", at)
	// Each PERCH_ of the environment is a setting.
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERCH_") }),
		"PERCH_MQTT_BROKER=none", "PERCH_ROBOTS_MQTT_LISTEN=127.0.0.1:0", "PERCH_ROBOTS_UDP=127.0.0.1:0")
	must.Succeed(b, c.Start())
	b.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // it was interrupted
	})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	waittest.For(b, binary+" serves its page at "+at, func() bool {
		answer, err := client.Get("http://" + at + "/")
		return err == nil && answer.Body.Close() == nil
	})
	return "http://" + at + "/"
}

// untilView is how long a page that is opened takes to show the home view, by the
// browser's own clock: from the start of the navigation to the frame after it.
func (b *tab) untilView(url string) time.Duration {
	b.t.Helper()
	b.open("about:blank")
	b.open(url)
	return time.Duration(value[float64](b, `(async () => {
		while (!see.has("main > p-home") || see.has("main >>> .loading")) await new Promise((r) => setTimeout(r, 2));
		return await new Promise((r) => requestAnimationFrame(() => r(performance.now())));
	})()`) * float64(time.Millisecond))
}

// BenchmarkFirstView is from opening the page on loopback to its first view, by a
// browser that has nothing of it and by one that has its files.
func BenchmarkFirstView(b *testing.B) {
	url, c := startProgram(b), startChromium(b)
	c.browse(b).untilView(url) // the browser itself is slow at first
	var first, again []time.Duration
	for b.Loop() {
		page := c.browse(b)
		first = append(first, page.untilView(url))
		again = append(again, page.untilView(url))
	}
	for name, all := range map[string][]time.Duration{"first": first, "again": again} {
		slices.Sort(all)
		median := all[len(all)/2]
		b.ReportMetric(float64(median.Microseconds())/1000, "ms-to-view-"+name+"-p50")
		b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "ms-to-view-"+name+"-max")
		if median > mostToView {
			b.Errorf("the page shows its first view (%s) after %s, at most %s", name, median, mostToView)
		}
	}
}
