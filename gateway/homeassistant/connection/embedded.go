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

// Time limits and pauses of the embedded broker.
const (
	listenRetryPause = 30 * time.Second // pause between attempts while another program uses the port
	startTimeout     = 5 * time.Second  // how long an attempt to connect waits for the broker to start
	// lingerTimeout is how long the broker continues to run after ctx has ended. Subscribers need this time to receive
	// the last message of the bridge, because the broker confirms a message before it delivers the message.
	lingerTimeout = 300 * time.Millisecond

	// The pause before a restart doubles each time. After a run of more than stableAfter, it is the minimum again.
	minRestartPause = 100 * time.Millisecond
	maxRestartPause = 30 * time.Second
)

// embeddedBroker keeps the embedded broker running: it opens the port, and restarts a broker that has ended. The port
// stays open during a restart, so that connecting clients wait and get no error.
type embeddedBroker struct {
	listen, user, password string
	serve                  func(ctx context.Context, l *net.TCPListener, user, password string) error
	log                    *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when runs changes
	runs    brokerRuns
}

// brokerRuns is the record of the attempts to run the broker.
type brokerRuns struct {
	tried   bool      // an attempt to open the port was made
	address string    // address of the listener; empty until the port is open
	err     error     // why the broker is not running; nil while it is running, and before the first attempt
	ends    int       // how often the broker has ended
	ended   time.Time // when the broker ended last
	why     error     // why the broker ended last
}

func newEmbeddedBroker(o Options) *embeddedBroker {
	return &embeddedBroker{listen: cmp.Or(o.Listen, ":1883"), user: o.User, password: o.Password, serve: o.Serve, log: o.Log,
		changed: make(chan struct{})}
}

// listenTCP opens the port of the embedded broker.
func (b *embeddedBroker) listenTCP() (*net.TCPListener, error) {
	l, err := net.Listen("tcp", b.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the port of the embedded MQTT broker is taken by another program (%s); if it is a broker of your own, "+
			"name it as mqtt.broker with its user and password, else stop it or set mqtt.broker to none", b.listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for MQTT: %w", err)
	}
	return l.(*net.TCPListener), nil
}

// update changes the record and notifies the callers of state.
func (b *embeddedBroker) update(change func(*brokerRuns)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.runs)
	close(b.changed)
	b.changed = make(chan struct{})
}

// state returns the present record, and a channel that is closed when the record changes.
func (b *embeddedBroker) state() (brokerRuns, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs, b.changed
}

// run opens the port and runs the broker until ctx ends. If the port cannot be opened, run tries again every
// listenRetryPause.
func (b *embeddedBroker) run(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := b.listenTCP()
		b.update(func(r *brokerRuns) {
			if r.tried, r.err = true, err; err == nil {
				r.address = l.Addr().String()
			}
		})
		if err == nil {
			b.runBroker(ctx, l)
			_ = l.Close()
			return
		}
		select {
		case <-time.After(listenRetryPause):
		case <-ctx.Done():
		}
	}
}

// runBroker runs the broker on a listener until ctx ends. It restarts a broker that has ended.
func (b *embeddedBroker) runBroker(ctx context.Context, l *net.TCPListener) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var stopping sync.WaitGroup
	defer stopping.Wait()
	stopping.Go(func() {
		<-ctx.Done()
		time.Sleep(lingerTimeout)
		stop()
	})
	wait := minRestartPause
	for {
		began := time.Now()
		err := b.serve(serving, l, b.user, b.password)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it gave no reason")
		}
		if time.Since(began) > stableAfter {
			wait = minRestartPause
		}
		b.log.Warn("the embedded MQTT broker has ended and is started again", "err", err)
		b.update(func(r *brokerRuns) {
			r.ends, r.why, r.ended = r.ends+1, err, time.Now()
			r.err = fmt.Errorf("the embedded MQTT broker has ended: %w", err)
		})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, maxRestartPause)
		b.update(func(r *brokerRuns) { r.err = nil })
	}
}

// address waits until the broker is running, and returns the address at which this machine can reach the broker. It waits
// at most for startTimeout, and returns an error at once if the port could not be opened.
func (b *embeddedBroker) address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		runs, changed := b.state()
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

// dialer returns a function that connects a client to the embedded broker once the broker is running.
func (b *embeddedBroker) dialer(client *pahoDialer) func(context.Context, Session) (Link, error) {
	return func(ctx context.Context, session Session) (Link, error) {
		address, err := b.address(ctx)
		if err != nil {
			return nil, err
		}
		local := *client
		local.url = &url.URL{Scheme: "mqtt", Host: address}
		return local.dial(ctx, session)
	}
}

// loopback returns the address at which this machine can reach a listener of the appliance.
func loopback(address string) string {
	host, port, _ := net.SplitHostPort(address) // the address of a listener is valid
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
