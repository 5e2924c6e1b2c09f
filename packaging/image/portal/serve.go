package main

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	mostConns       = 128
	mostConnsOfEach = 16 // per address
)

// limitedListener is a listener that bounds its connections, in total and per address.
type limitedListener struct {
	net.Listener
	mu    sync.Mutex
	all   int
	conns map[string]int
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		l.mu.Lock()
		full := l.all >= mostConns || l.conns[address] >= mostConnsOfEach
		if !full {
			l.all++
			l.conns[address]++
		}
		l.mu.Unlock()
		if !full {
			return &countedConn{Conn: c, l: l, address: address}, nil
		}
		_ = c.Close()
	}
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	l       *limitedListener
	address string
	once    sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.l.all--
		if c.l.conns[c.address]--; c.l.conns[c.address] <= 0 {
			delete(c.l.conns, c.address)
		}
	})
	return c.Conn.Close()
}

// serve serves a handler until stop is called, which waits for the end.
func serve(l net.Listener, h http.Handler) (stop func()) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second,
		IdleTimeout: 15 * time.Second, MaxHeaderBytes: 8 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(&limitedListener{Listener: l, conns: map[string]int{}}) // ends when the listener is closed
	}()
	return func() {
		_ = s.Close()
		<-done
	}
}
