package homeassistant

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"
)

// Times of the embedded broker's start.
const (
	brokerRetry = 30 * time.Second // while its port is taken
	brokerUpIn  = 5 * time.Second
	// lastWords is for what the bridge has said last: the broker confirms it
	// before those who listen have it.
	lastWords = 300 * time.Millisecond
)

// brokerKeeper starts the embedded broker, and tries again while its port is
// taken.
type brokerKeeper struct {
	listen, user, password string
	log                    *slog.Logger
	tried                  chan struct{} // closed once it was tried

	mu      sync.Mutex
	address string // while it runs
	err     error
}

func newBrokerKeeper(listen, user, password string, log *slog.Logger) *brokerKeeper {
	return &brokerKeeper{listen: listen, user: user, password: password, log: log, tried: make(chan struct{})}
}

// run keeps the broker until ctx ends.
func (k *brokerKeeper) run(ctx context.Context) {
	tried := sync.OnceFunc(func() { close(k.tried) })
	for ctx.Err() == nil {
		b, err := NewBroker(k.listen, k.user, k.password, k.log)
		k.mu.Lock()
		if k.err = err; err == nil {
			k.address = b.Address()
		}
		k.mu.Unlock()
		tried()
		if err == nil {
			<-ctx.Done()
			time.Sleep(lastWords)
			b.Close()
			return
		}
		select {
		case <-time.After(brokerRetry):
		case <-ctx.Done():
		}
	}
}

// where is the address of the broker, as it is reached from here.
func (k *brokerKeeper) where() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return "", k.err
	}
	host, port, err := net.SplitHostPort(k.address)
	if err != nil {
		return "", errors.New("the embedded broker has yet to start")
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// embeddedDialer connects to the broker in this process, once it is there.
type embeddedDialer struct {
	keeper *brokerKeeper
	client *pahoDialer
}

func (d embeddedDialer) dial(ctx context.Context, will *message, take func(incoming)) (link, error) {
	select {
	case <-d.keeper.tried:
	case <-time.After(brokerUpIn):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	at, err := d.keeper.where()
	if err != nil {
		return nil, err
	}
	client := *d.client
	client.url = &url.URL{Scheme: "mqtt", Host: at}
	return client.dial(ctx, will, take)
}
