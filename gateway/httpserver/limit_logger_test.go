package httpserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
)

// TestLimitLogger checks that repeated messages are limited and counted, and that other messages are written.
func TestLimitLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := httpserver.LimitLogger(slog.New(slog.NewTextHandler(&out, nil)))
		for n := range 57_000 {
			log.With("robot", n).Warn("a robot was turned away", "address", n)
			log.WithGroup("g").Debug("nobody reads this")
		}
		log.Info("something else")
		if n := strings.Count(out.String(), "\n"); n != 11 {
			t.Errorf("%d lines were written, want 11", n)
		}
		out.Reset()
		time.Sleep(6 * time.Second)
		log.Warn("a robot was turned away")
		log.Warn("a robot was turned away")
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "more=56990") {
			t.Errorf("later: %s", got)
		}
		out.Reset()
		time.Sleep(time.Minute)
		log.Warn("a robot was turned away")
		log.Warn("a robot was turned away")
		if got := out.String(); strings.Count(got, "more=") != 1 || !strings.Contains(got, "more=1\n") {
			t.Errorf("later still: %s", got)
		}
		out.Reset()
		for n := range 10_000 {
			log.Info(fmt.Sprint("invented ", n))
		}
		if n := strings.Count(out.String(), "\n"); n > 300 {
			t.Errorf("of 10000 messages that are each another %d were written", n)
		}
	})
}

// TestFailuresAreLoggedAtLimitedRate checks that failed requests are logged at a limited rate.
func TestFailuresAreLoggedAtLimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := newEngine(t)
		e.GET("/fails", func(c *gin.Context) { _ = c.Error(errors.New("the disk sleeps")) })
		e.GET("/panics", func(*gin.Context) { panic("oh") })
		e.GET("/breaks", func(c *gin.Context) {
			c.String(200, "half")
			_ = c.Error(errors.New("gone"))
		})
		for range 1000 {
			for _, path := range []string{"/fails", "/panics", "/breaks", "/not-there"} {
				serve(e, request("GET", path))
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 30 {
			t.Errorf("%d lines, want 30", n)
		}
	})
}
