package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// Times of the embedded broker.
const (
	listenRetry  = 30 * time.Second // while another program has its port
	startTimeout = 5 * time.Second
	// lingerTime lets the broker deliver the bridge's last message: it confirms a message before
	// its subscribers have it.
	lingerTime = 300 * time.Millisecond

	// The pause before it is restarted doubles with each end, until it has run for steadyAfter.
	firstRestart   = 100 * time.Millisecond
	longestRestart = 30 * time.Second
)

// supervisor keeps the embedded broker running: it owns the port, tries again while that is taken,
// and restarts the broker. A client that connects in between waits at the port.
type supervisor struct {
	listen, user, password string
	serve                  func(ctx context.Context, l *net.TCPListener, user, password string) error
	log                    *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with each change of runs
	runs    brokerRuns
}

// brokerRuns records the attempts at running the broker.
type brokerRuns struct {
	tried   bool      // to listen
	address string    // that it listens on
	err     error     // why there is no broker now
	ends    int       // how often it has ended
	ended   time.Time // when it last did
	why     error     // the reason
}

func newSupervisor(o Options) *supervisor {
	return &supervisor{listen: cmp.Or(o.Listen, ":1883"), user: o.User, password: o.Password, serve: o.Serve, log: o.Log,
		changed: make(chan struct{})}
}

// listenTCP opens the embedded broker's port.
func (s *supervisor) listenTCP() (*net.TCPListener, error) {
	l, err := net.Listen("tcp", s.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the port of the embedded MQTT broker is taken by another program (%s); if it is a broker of your own, "+
			"name it as mqtt.broker with its user and password, else stop it or set mqtt.broker to none", s.listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for MQTT: %w", err)
	}
	return l.(*net.TCPListener), nil
}

func (s *supervisor) update(change func(*brokerRuns)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.runs)
	close(s.changed)
	s.changed = make(chan struct{})
}

// state returns the runs so far, and a channel that is closed with their next change.
func (s *supervisor) state() (brokerRuns, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs, s.changed
}

// run opens the port and runs the broker until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := s.listenTCP()
		s.update(func(r *brokerRuns) {
			if r.tried, r.err = true, err; err == nil {
				r.address = l.Addr().String()
			}
		})
		if err == nil {
			s.runBroker(ctx, l)
			_ = l.Close()
			return
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
		}
	}
}

// runBroker starts the broker, and restarts it, until ctx ends.
func (s *supervisor) runBroker(ctx context.Context, l *net.TCPListener) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var stopping sync.WaitGroup
	defer stopping.Wait()
	stopping.Go(func() {
		<-ctx.Done()
		time.Sleep(lingerTime)
		stop()
	})
	wait := firstRestart
	for {
		began := time.Now()
		err := s.serve(serving, l, s.user, s.password)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it gave no reason")
		}
		if time.Since(began) > steadyAfter {
			wait = firstRestart
		}
		s.log.Warn("the embedded MQTT broker has ended and is started again", "err", err)
		s.update(func(r *brokerRuns) {
			r.ends, r.why, r.ended = r.ends+1, err, time.Now()
			r.err = fmt.Errorf("the embedded MQTT broker has ended: %w", err)
		})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, longestRestart)
		s.update(func(r *brokerRuns) { r.err = nil })
	}
}

// address waits until the broker listens, and returns where it can be reached from this machine. It
// waits at most startTimeout, and not while another program has the port.
func (s *supervisor) address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		runs, changed := s.state()
		switch {
		case runs.tried && runs.err == nil:
			return loopback(runs.address), nil
		case runs.tried && runs.address == "":
			return "", runs.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", cmp.Or(runs.err, error(errors.New("the embedded broker has yet to start")))
		}
	}
}

// dialer returns a function that connects a client to the embedded broker once that listens.
func (s *supervisor) dialer(client *pahoDialer) func(context.Context, Session) (Link, error) {
	return func(ctx context.Context, session Session) (Link, error) {
		at, err := s.address(ctx)
		if err != nil {
			return nil, err
		}
		local := *client
		local.url = &url.URL{Scheme: "mqtt", Host: at}
		return local.dial(ctx, session)
	}
}

// loopback returns an address at which a listener of this machine is reached from within it.
func loopback(address string) string {
	host, port, _ := net.SplitHostPort(address) // a listener's address has both
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
