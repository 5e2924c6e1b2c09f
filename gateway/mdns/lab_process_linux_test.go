package mdns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"perch/waittest"
)

// runAs runs the program of the given name inside a namespace, and returns the exit code of the test binary.
func runAs(as string) int {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	switch as {
	case "appliance":
		return runAppliance(ctx)
	case "browser", "osc browser":
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		kind := Service
		if as == "osc browser" {
			kind = OSC
		}
		found, err := Search{Type: kind}.All(ctx)
		for _, f := range found {
			print1(f)
		}
		return say(err)
	case "finder":
		return findWyoming(ctx, 10*time.Second)
	case "finder of none":
		return findWyoming(ctx, 4*time.Second)
	case "robot":
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		ip, err := Resolve(ctx, os.Args[1])
		print1(map[string]any{"address": ip.String()})
		return say(err)
	case "asker over IPv6":
		return say(askOverIPv6(ctx, os.Args[1]))
	case "leaks":
		return say(lookForLeaks(ctx))
	}
	return 2
}

// findWyoming searches for Wyoming servers as an appliance does. The argument of the process, if there is one, is an
// instance to skip.
func findWyoming(ctx context.Context, within time.Duration) int {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s := Search{Type: Wyoming}
	if len(os.Args) > 1 {
		s.Except = os.Args[1]
	}
	had, err := count()
	if err != nil {
		return say(err)
	}
	began := time.Now()
	found, err := s.All(ctx)
	for _, f := range found {
		print1(f)
	}
	if err != nil {
		return say(err)
	}
	took := time.Since(began)
	targets, err := s.Targets(ctx)
	if left := had.left(); left != nil {
		return say(left)
	}
	print1(map[string]any{"found": fmt.Sprint(len(found)), "targets": targets, "ms": took.Milliseconds()})
	return say(err)
}

// askOverIPv6 sends legacy queries for AAAA records over IPv6 and prints the addresses of the first response.
func askOverIPv6(ctx context.Context, host string) error {
	links, err := machineLinks(nil)
	if err != nil {
		return err
	}
	query := new(dns.Msg).SetQuestion(dns.Fqdn(host), dns.TypeAAAA)
	udp, err := net.ListenUDP("udp6", nil)
	if err != nil {
		return err
	}
	defer udp.Close()
	buf := make([]byte, maxPacket)
	for ctx.Err() == nil {
		conn{udp, "udp6"}.write(query, links[0], nil)
		if err := udp.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := udp.Read(buf)
		if err != nil {
			continue
		}
		if msg := parse(buf[:n]); msg != nil {
			print1(map[string]any{"addresses": fmt.Sprint(addressesFor(msg.Answer, dns.Fqdn(host)))})
			return nil
		}
	}
	return ctx.Err()
}

func print1(v any) { _ = json.NewEncoder(os.Stdout).Encode(v) }

func say(err error) int {
	if err == nil {
		return 0
	}
	print1(map[string]any{"error": err.Error(), "no_multicast": errors.Is(err, ErrNoMulticast)})
	return 1
}

// newImpatient returns an announcer that polls and retries more often than that of an appliance.
func newImpatient(log *slog.Logger) *Announcer {
	a := New(Options{Name: "perch", ID: "c0ffee", Version: "1.2.3", Port: 8003, Wyoming: 10300, Log: log})
	a.poll, a.retry = 150*time.Millisecond, time.Second
	return a
}

// runAppliance announces until ctx ends, and writes the log to stdout for the test.
func runAppliance(ctx context.Context) int {
	a := newImpatient(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if len(os.Args) > 1 { // the argument is a file; while the file exists, two more services are announced
		a.opts.Offers = func() []Offer {
			if _, err := os.Stat(os.Args[1]); err != nil {
				return nil
			}
			return []Offer{{"perch-c0ffee", OSCQuery, 41001}, {"perch-c0ffee", OSC, 41002}}
		}
	}
	return say(a.Run(ctx))
}

// lookForLeaks changes the machine's address six times while an announcer runs, and returns an error if files or
// goroutines remain after the announcer has ended.
func lookForLeaks(ctx context.Context) error {
	lines := make(chan string, 100)
	a := newImpatient(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	had, err := count()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-lines
	peak := openFiles()
	for i := range 6 {
		verb := [...]string{"add", "del"}[i%2]
		if out, err := exec.Command("ip", "addr", verb, "10.78.0.1/24", "dev", "eth0").CombinedOutput(); err != nil {
			return fmt.Errorf("ip addr %s: %w: %s", verb, err, out)
		}
		<-lines
	}
	if !waittest.Until(10*time.Second, func() bool { return openFiles() <= peak }) {
		return fmt.Errorf("%d files are open after 6 registrations, %d after the first", openFiles(), peak)
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	if err := had.left(); err != nil {
		return err
	}
	print1(map[string]any{"leaks": "none", "fds_first": peak, "fds_before": had.files})
	return nil
}

// held holds the numbers of open files and goroutines of the process.
type held struct{ files, goroutines int }

// count returns the present numbers, after the runtime's network poller has been started.
func count() (held, error) {
	warm, err := net.ListenUDP("udp4", nil) // the first socket starts the runtime's poller, whose file stays open
	if err != nil {
		return held{}, err
	}
	_ = warm.Close()
	return held{openFiles(), runtime.NumGoroutine()}, nil
}

// left returns an error if more files or goroutines than h remain 10 s after the end. A goroutine of zeroconf may run,
// and keep a file open, for some seconds after the end.
func (h held) left() error {
	if !waittest.Until(10*time.Second, func() bool { return openFiles() <= h.files }) {
		return fmt.Errorf("%d files are open at the end, %d before the start", openFiles(), h.files)
	}
	if !waittest.Until(10*time.Second, func() bool { return runtime.NumGoroutine() <= h.goroutines }) {
		buf := make([]byte, 1<<16)
		return fmt.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
	}
	return nil
}

// lineWriter sends each line of a log to a channel.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }

func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
