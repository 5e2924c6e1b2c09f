package homeassistant

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
	brokerRetry = 30 * time.Second // while its port is taken
	brokerUpIn  = 5 * time.Second
	// lastWords is for the bridge's last message: the broker confirms it before its
	// subscribers have it.
	lastWords = 300 * time.Millisecond

	// How long after its end it is started again: the longer the more often it
	// ends, until it has held for a while.
	firstRestart   = 100 * time.Millisecond
	longestRestart = 30 * time.Second
)

// ErrBusy is wrapped where another program has the embedded broker's port.
var ErrBusy error = errors.New("the port of the embedded MQTT broker is taken by another program")

// listenMQTT opens the embedded broker's port.
func listenMQTT(at string) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w (%s); if it is a broker of your own, name it as mqtt.broker with its user and password, "+
			"else stop it or set mqtt.broker to none", ErrBusy, at)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for MQTT: %w", err)
	}
	return l.(*net.TCPListener), nil
}

// brokerSupervisor keeps the embedded broker running: it holds its port, tries
// again while that is taken, and starts the broker again when it has ended.
// A client that connects meanwhile waits at the port.
type brokerSupervisor struct {
	listen, user, password string
	serve                  func(ctx context.Context, l *net.TCPListener, user, password string) error
	log                    *slog.Logger

	mu   sync.Mutex
	news chan struct{} // closed and made anew with each change of the runs
	brokerRuns
}

// brokerRuns are the attempts at running the broker so far.
type brokerRuns struct {
	tried   bool      // to listen
	address string    // once it listens
	err     error     // why there is no broker now
	ends    int       // how often it has ended
	last    error     // why it did so last
	at      time.Time // when that was
}

func newBrokerSupervisor(o Options) *brokerSupervisor {
	return &brokerSupervisor{listen: o.Listen, user: o.User, password: o.Password, serve: o.Serve, log: o.Log, news: make(chan struct{})}
}

func (k *brokerSupervisor) change(to func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	to()
	close(k.news)
	k.news = make(chan struct{})
}

// run keeps the broker until ctx ends.
func (k *brokerSupervisor) run(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := listenMQTT(k.listen)
		k.change(func() {
			if k.tried, k.err = true, err; err == nil {
				k.address = l.Addr().String()
			}
		})
		if err == nil {
			k.keep(ctx, l)
			_ = l.Close()
			return
		}
		select {
		case <-time.After(brokerRetry):
		case <-ctx.Done():
		}
	}
}

// keep starts the broker, and starts it again, until ctx ends.
func (k *brokerSupervisor) keep(ctx context.Context, l *net.TCPListener) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var leaving sync.WaitGroup
	defer leaving.Wait()
	leaving.Go(func() {
		<-ctx.Done()
		time.Sleep(lastWords)
		stop()
	})
	wait := firstRestart
	for {
		began := time.Now()
		err := k.serve(serving, l, k.user, k.password)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it says not why")
		}
		if time.Since(began) > steadyAfter {
			wait = firstRestart
		}
		k.log.Warn("the embedded MQTT broker has ended and is started again", "err", err)
		k.change(func() {
			k.ends, k.last, k.at = k.ends+1, err, time.Now()
			k.err = fmt.Errorf("the embedded MQTT broker has ended: %w", err)
		})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, longestRestart)
		k.change(func() { k.err = nil })
	}
}

// await returns where the broker is reached from here once it is there. It waits no longer
// than a start may take, and not while the port is taken.
func (k *brokerSupervisor) await(ctx context.Context) (at string, err error) {
	ctx, cancel := context.WithTimeout(ctx, brokerUpIn)
	defer cancel()
	for {
		k.mu.Lock()
		runs, news := k.brokerRuns, k.news
		k.mu.Unlock()
		switch {
		case runs.tried && runs.err == nil:
			return reachable(runs.address), nil
		case runs.tried && runs.address == "":
			return "", runs.err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return "", cmp.Or(runs.err, error(errors.New("the embedded broker has yet to start")))
		}
	}
}

// reachable is where a listener of this machine is reached from within it.
func reachable(address string) string {
	host, port, _ := net.SplitHostPort(address) // as a listener writes it
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// ended is how often the broker has ended, and when and why it did so last.
func (k *brokerSupervisor) ended() (ends int, at time.Time, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends, k.at, k.last
}

// embeddedDialer connects to the embedded broker, once it is there.
type embeddedDialer struct {
	keeper *brokerSupervisor
	client *pahoDialer
}

func (d embeddedDialer) dial(ctx context.Context, s session) (link, error) {
	at, err := d.keeper.await(ctx)
	if err != nil {
		return nil, err
	}
	client := *d.client
	client.url = &url.URL{Scheme: "mqtt", Host: at}
	return client.dial(ctx, s)
}
