package appliance_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/httpserver/httpservertest"
)

// TestDebug checks that profiles are served only at debug.listen, and not to web pages.
func TestDebug(t *testing.T) {
	c := appliancetest.Config()
	c.Debug.Listen = "127.0.0.1:0"
	h := appliancetest.Start(t, c, t.TempDir())
	get := func(address, path string, header ...string) (int, string) {
		answer, body := httpservertest.Ask(t, http.MethodGet, "http://"+address+path, "", header...)
		return answer.StatusCode, string(body)
	}
	own := h.Listeners.At("debug.listen")[0]
	for path, holds := range map[string]string{
		"/debug/vars": "memstats", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline": ".test", "/debug/pprof/trace?seconds=0.01": "go 1.", "/debug/pprof/heap": "\x1f\x8b",
	} {
		if status, body := get(own, path); status != http.StatusOK || !strings.Contains(body, holds) {
			t.Errorf("%s: %d %.100q", path, status, body)
		}
		if status, _ := get(own, path, "Origin", "http://page.example"); status != http.StatusForbidden {
			t.Errorf("%s to a web page: %d", path, status)
		}
		for _, key := range []string{"listen", "local"} {
			if status, _ := get(h.Listeners.At(key)[0], path); status != http.StatusNotFound {
				t.Errorf("%s at %s: %d", path, key, status)
			}
		}
	}
	if status, _ := get(own, "/health"); status != http.StatusNotFound {
		t.Errorf("/health at debug.listen: %d", status)
	}
}
