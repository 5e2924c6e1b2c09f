package appliance

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/event"
)

// manager stands for systemd: the socket it listens on for states.
func manager(t *testing.T) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		text := make([]byte, 4096)
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal("the service manager was not told: ", err)
		}
		return string(text[:n])
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	next := manager(t)
	t.Setenv("WATCHDOG_USEC", "300000")
	h := open(t, testConfig(), t.TempDir())
	seen := []string{next(), next()}
	if !strings.Contains(strings.Join(seen, " "), "READY=1") || !strings.Contains(strings.Join(seen, " "), "WATCHDOG=1") {
		t.Errorf("told %q", seen)
	}
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("told %q", got)
		}
	}
	h.stop()
	for got := next(); got != "STOPPING=1"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("told %q", got)
		}
	}
}

// What is alive is fed in time, what hangs or fails is not, and is fed again
// once it goes on.
func TestTheWatchdog(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "60000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var asked, fed []time.Duration
		begun := time.Now()
		answers := []func(context.Context) error{
			func(context.Context) error { return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, // hangs
			func(context.Context) error { return errors.New("broken") },
			func(context.Context) error { return nil },
			func(context.Context) error { stop(); return nil },
		}
		feed := func(state string) error {
			fed = append(fed, time.Since(begun))
			if state != "WATCHDOG=1" {
				t.Errorf("told %q", state)
			}
			return nil
		}
		supervisor{feed, slog.New(slog.DiscardHandler)}.watch(ctx, func(ctx context.Context) error {
			asked = append(asked, time.Since(begun))
			return answers[len(asked)-1](ctx)
		})
		if want := []time.Duration{0, 20 * time.Second, 60 * time.Second, 80 * time.Second, 100 * time.Second}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v, want %v", asked, want)
		}
		if want := []time.Duration{0, 80 * time.Second}; !slices.Equal(fed, want) {
			t.Errorf("fed at %v, want %v", fed, want)
		}
	})
}

func TestWhatHangsIsNamed(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	h.eventually("it serves", func() bool { return strings.Contains(h.log.String(), "perch is ready") })
	if err := h.alive(t.Context()); err != nil {
		t.Fatal("a healthy one: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	never := make(chan struct{})
	defer close(never)
	if err := answers(ctx, "the store", func() { <-never }); err == nil || err.Error() != "the store hangs" {
		t.Errorf("got %v", err)
	}
	// A listener that takes nobody in.
	l := h.Doors.Servers[0].Listener
	h.Doors.Servers[0].Listener = deaf{l}
	if err := h.alive(ctx); err == nil || !strings.Contains(err.Error(), "listener ") {
		t.Errorf("got %v", err)
	}
	h.Doors.Servers[0].Listener = l
	h.Bus.Publish("", "", event.Fault{})
	if err := h.alive(t.Context()); err != nil {
		t.Error(err)
	}
}

// deaf says it listens where nobody does.
type deaf struct{ net.Listener }

func (deaf) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
