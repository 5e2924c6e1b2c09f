package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"perch/cmd/perch/config"
	"perch/must"
)

// openSet opens the listeners of a configuration, and serves them until the test ends.
func openSet(t *testing.T, change func(*config.Config)) *Set {
	t.Helper()
	c := config.Default()
	c.Listen, c.Local, c.Skins.VCCP = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}, ""
	change(&c)
	data, log := t.TempDir(), slog.New(slog.DiscardHandler)
	s := must.Value(Open(&c, data, "test", func() []string { return []string{"perch.local"} }, log))(t)
	for _, key := range []string{Network, Local, TLS, Socket} {
		must.Succeed(t, s.Handle(key, func(e *gin.Engine) { e.GET("/", func(c *gin.Context) { c.Status(http.StatusNoContent) }) }))
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestHTTPSIsOpenedOnce: the https address is closed until Open is called. Further calls of Open do not open another address.
func TestHTTPSIsOpenedOnce(t *testing.T) {
	s := openSet(t, func(*config.Config) {})
	if at := s.At(TLS); len(at) != 0 || s.Check(t.Context()) != nil {
		t.Errorf("it listens on %s (%v)", at, s.Check(t.Context()))
	}
	port := must.Value(s.HTTPS.Open())(t)
	if again := must.Value(s.HTTPS.Open())(t); again != port || len(s.At(TLS)) != 1 {
		t.Errorf("it listens on %d, %d and %s", port, again, s.At(TLS))
	}
	must.Succeed(t, s.Check(t.Context()))
	conn := must.Value(tls.Dial("tcp", s.At(TLS)[0], &tls.Config{InsecureSkipVerify: true}))(t)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	// Stop closes a connection on which the client sends nothing.
	silent := must.Value(net.Dial("tcp", s.At(TLS)[0]))(t)
	defer silent.Close()
	s.Stop()
	must.Succeed(t, silent.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := silent.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection stays: %v", err)
	}
}

// TestHouseIsOff: there is no https address if the page is disabled, and Open does not use a port of another program.
func TestHouseIsOff(t *testing.T) {
	s := openSet(t, func(c *config.Config) { c.Web.Enabled = false })
	if s.HTTPS != nil {
		t.Error("it serves the page that is off")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:8443")
	if err == nil {
		defer taken.Close()
	}
	other := openSet(t, func(c *config.Config) { c.Listen = []string{must.Value(free())(t)} })
	if port := must.Value(other.HTTPS.Open())(t); port <= 8443 || port >= 8453 {
		t.Errorf("it takes the port %d", port)
	}
}

// free returns a free address.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
