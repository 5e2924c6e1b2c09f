package httpserver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/must"
)

// TestDownloadsFinishBeforeAStop checks that Finish waits for running downloads until a deadline and refuses new
// ones, and that other requests are not affected.
func TestDownloadsFinishBeforeAStop(t *testing.T) {
	const deadline = 10 * time.Second
	for name, c := range map[string]struct {
		takes, waits time.Duration
		left         int
	}{
		"none":          {0, 0, 0},
		"one that ends": {3 * time.Second, 3 * time.Second, 0},
		"one too long":  {time.Minute, deadline, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d Downloads
				e, err := NewEngine(slog.New(slog.NewTextHandler(io.Discard, nil)))
				must.Succeed(t, err)
				g := e.Group("", d.Below("/firmware/", "/notify/"))
				g.GET("/firmware/:name", func(g *gin.Context) { time.Sleep(c.takes); g.String(http.StatusOK, "image") })
				g.GET("/check-in", func(g *gin.Context) { g.String(http.StatusOK, "ok") })
				ask := func(path string) int {
					w := httptest.NewRecorder()
					r := httptest.NewRequest(http.MethodGet, path, nil)
					e.ServeHTTP(w, r)
					return w.Code
				}
				ended := make(chan int, 1)
				go func() { ended <- ask("/firmware/a.bin") }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				began := time.Now()
				left := d.Finish(ctx)
				if waited := time.Since(began); waited != c.waits || left != c.left {
					t.Errorf("after %s there are %d left, want %d after %s", waited, left, c.left, c.waits)
				}
				if status := ask("/firmware/b.bin"); status != http.StatusServiceUnavailable {
					t.Errorf("a new download is answered with %d", status)
				}
				if status := ask("/check-in"); status != http.StatusOK {
					t.Errorf("another request is answered with %d", status)
				}
				if status := <-ended; status != http.StatusOK {
					t.Errorf("the first download has ended with %d", status)
				}
			})
		})
	}
}
