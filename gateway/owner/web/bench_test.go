package web_test

import (
	"cmp"
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

// mostToView is the maximum median of the time from opening the page to its first view.
const mostToView = 300 * time.Millisecond

// startProgram runs the built program, whose path make bench sets in PERCH_BINARY, until the benchmark ends. It
// returns the URL of its page.
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
	// Environment variables that begin with PERCH_ are settings of perch.
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERCH_") }),
		"PERCH_MQTT_BROKER=none", "PERCH_ROBOTS_MQTT_LISTEN=127.0.0.1:0", "PERCH_ROBOTS_UDP=127.0.0.1:0")
	must.Succeed(b, c.Start())
	b.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // an error, because the program was interrupted
	})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	waittest.For(b, binary+" serves its page at "+at, func() bool {
		answer, err := client.Get("http://" + at + "/")
		return err == nil && answer.Body.Close() == nil
	})
	return "http://" + at + "/"
}

// shown holds times in milliseconds, by the browser's clock, from the start of the navigation to the first and to the
// largest contentful paint, and to the frame after the home view was complete.
type shown struct{ FCP, LCP, View float64 }

// untilView opens the page, waits until all of it is painted, and leaves it.
func (b *tab) untilView(url string) shown {
	b.t.Helper()
	b.open("about:blank")
	b.open(url)
	found := value[shown](b, `(async () => {
		while (!see.has("main > p-home") || see.has("main >>> .loading")) await new Promise((r) => setTimeout(r, 2));
		const view = await new Promise((r) => requestAnimationFrame(() => r(performance.now())));
		await new Promise((r) => setTimeout(r, 300)); // the browser tells of a paint after it
		const last = (type) => new Promise((r) => new PerformanceObserver((all) => r(all.getEntries().at(-1).startTime)).observe({ type, buffered: true }));
		const [fcp] = performance.getEntriesByName("first-contentful-paint");
		return { FCP: fcp.startTime, LCP: await last("largest-contentful-paint"), View: view };
	})()`)
	b.open("about:blank") // so that the page does not disturb the next measurement
	return found
}

// BenchmarkFirstView measures the time from opening the page over the loopback interface to its first view, with an
// empty browser cache and with a filled one. It also reports the times if they are above mostToView.
func BenchmarkFirstView(b *testing.B) {
	url, c := startProgram(b), startChromium(b)
	c.browse(b).untilView(url) // not measured, because a new browser is slow at first
	var first, again []shown
	for b.Loop() {
		page := c.browse(b)
		first = append(first, page.untilView(url))
		again = append(again, page.untilView(url))
	}
	for name, all := range map[string][]shown{"first": first, "again": again} {
		for what, of := range map[string]func(shown) float64{
			"fcp": func(s shown) float64 { return s.FCP }, "lcp": func(s shown) float64 { return s.LCP }, "to-view": func(s shown) float64 { return s.View },
		} {
			slices.SortFunc(all, func(one, other shown) int { return cmp.Compare(of(one), of(other)) })
			median, most := of(all[len(all)/2]), of(all[len(all)-1])
			unit := "ms-" + what + "-" + name
			b.ReportMetric(median, unit+"-p50")
			b.ReportMetric(most, unit+"-max")
			b.Logf("%s: %.1f, at most %.1f, of %d", unit, median, most, len(all))
			if what == "to-view" && median > float64(mostToView.Milliseconds()) {
				b.Errorf("the page shows its first view (%s) after %.1f ms, at most %s", name, median, mostToView)
			}
		}
	}
}
