package admin_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/owner/admin"
)

// TestRequestsShareANetworkSearch checks that a second request gets the result of the search that is
// running.
func TestRequestsShareANetworkSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var searches atomic.Int32
		h := newAppliance(t, func(o *admin.Options) {
			o.Find = func(ctx context.Context) admin.Found {
				searches.Add(1)
				<-ctx.Done()
				return admin.Found{Wyoming: []admin.FoundServer{{Name: "<b>x</b>", URL: "tcp://192.168.1.9:10300"}}}
			}
		})
		began, done := time.Now(), make(chan string)
		for range 2 {
			go func() { _, body := h.ask(http.MethodGet, "/api/v1/found", ""); done <- body }()
			time.Sleep(time.Second)
		}
		for range 2 {
			body := <-done
			if !strings.Contains(body, `"wyoming":[{"name":"`) || strings.Contains(body, "<b>") || time.Since(began) != 4*time.Second {
				t.Errorf("after %s: %s", time.Since(began), body)
			}
		}
		if n := searches.Load(); n != 1 {
			t.Errorf("%d searches, want 1", n)
		}
	})
}
