package appliance_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/event"
	"perch/must"
	"perch/waittest"
)

// manager replaces systemd's notification socket (see sd_notify(3)). next returns the next message to it.
func manager(t *testing.T) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn := must.Value(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		text := make([]byte, 4096)
		must.Succeed(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal("the service manager was not told: ", err)
		}
		return string(text[:n])
	}
}

func TestServiceManagerNotifications(t *testing.T) {
	next := manager(t)
	t.Setenv("WATCHDOG_USEC", "300000")
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	seen := []string{next(), next()}
	if !strings.Contains(strings.Join(seen, " "), "READY=1") || !strings.Contains(strings.Join(seen, " "), "WATCHDOG=1") {
		t.Errorf("told %q", seen)
	}
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("told %q", got)
		}
	}
	h.Stop()
	for got := next(); got != "STOPPING=1"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("told %q", got)
		}
	}
}

// TestAListenerThatHangsIsNamed checks that the error of Alive names a listener that accepts no connections.
func TestAListenerThatHangsIsNamed(t *testing.T) {
	c := appliancetest.Config()
	a := must.Value(appliance.New(&c, appliancetest.Options(t.TempDir())))(t)
	defer a.Close()
	l := &movable{Listener: a.Listeners.Servers[0].Listener}
	a.Listeners.Servers[0].Listener = l // before Run, whose parts read it
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		cancel()
		must.Succeed(t, <-ended)
	}()
	waittest.For(t, "it is alive", func() bool { return a.Alive(ctx) == nil })
	l.moved.Store(true)
	if err := a.Alive(ctx); err == nil || !strings.HasPrefix(err.Error(), "listener 127.0.0.1:1: ") {
		t.Errorf("got %v", err)
	}
	l.moved.Store(false)
	a.Bus.Publish("", "", event.Fault{})
	if err := a.Alive(ctx); err != nil {
		t.Error(err)
	}
}

// TestAppliancesThatEndAreAlive checks that Alive ignores closed listeners once the appliance is stopping.
func TestAppliancesThatEndAreAlive(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	h.Restart()
	_ = h.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // without a timeout, Alive would wait for the board, which has ended
	defer cancel()
	if err := h.Alive(ctx); err != nil && strings.Contains(err.Error(), "listener") {
		t.Error(err)
	}
}

// movable is a listener that, once moved, has an address at which nothing listens.
type movable struct {
	net.Listener
	moved atomic.Bool
}

func (l *movable) Addr() net.Addr {
	if l.moved.Load() {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	}
	return l.Listener.Addr()
}

// TestHealthOfSocketDiskAndClock checks the conditions of the commands' socket, the disk and the clock in /ready. The
// disk and the clock are not vital.
func TestHealthOfSocketDiskAndClock(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	if p := h.Part("doors"); !p.OK {
		t.Errorf("the listeners: %+v", p)
	}
	must.Succeed(t, os.Remove(filepath.Join(h.Data, "perch.sock")))
	if p := h.Part("doors"); p.OK || !strings.Contains(p.Note, "perch.sock") || !strings.Contains(p.Note, "restart") {
		t.Errorf("the listeners without a socket: %+v", p)
	}
	for _, name := range []string{"disk", "clock"} {
		if p := h.Part(name); p.Name != name || p.Vital || p.Note == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
