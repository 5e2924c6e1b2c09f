package admin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/owner/admin"
)

// TestOneNetworkSearchAtATime of the network, which ends by itself.
func TestOneNetworkSearchAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t, func(o *admin.Options) {
			o.Find = func(ctx context.Context) admin.Found {
				<-ctx.Done()
				return admin.Found{Wyoming: []admin.FoundServer{{Name: "<b>x</b>", URL: "tcp://192.168.1.9:10300"}}}
			}
		})
		began, done := time.Now(), make(chan string)
		go func() { _, body := h.ask(http.MethodGet, "/api/v1/found", ""); done <- body }()
		synctest.Wait()
		h.wants(t, http.MethodGet, "/api/v1/found", "", http.StatusConflict, `"busy"`)
		body := <-done
		if !strings.Contains(body, `"wyoming":[{"name":"`) || strings.Contains(body, "<b>") || time.Since(began) != 4*time.Second {
			t.Errorf("after %s: %s", time.Since(began), body)
		}
	})
}
