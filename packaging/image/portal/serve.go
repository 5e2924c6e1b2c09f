package main

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Maximum numbers of open connections.
const (
	maxConns           = 128
	maxConnsPerAddress = 16
)

// limitedListener is a listener that limits the number of open connections, in total and per
// address.
type limitedListener struct {
	net.Listener
	mu    sync.Mutex
	total int
	conns map[string]int // key: IP address
}

// Accept waits for a connection. It closes connections beyond the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		l.mu.Lock()
		full := l.total >= maxConns || l.conns[address] >= maxConnsPerAddress
		if !full {
			l.total++
			l.conns[address]++
		}
		l.mu.Unlock()
		if !full {
			return &countedConn{Conn: c, l: l, address: address}, nil
		}
		_ = c.Close()
	}
}

// countedConn is a connection that counts as open until Close is called.
type countedConn struct {
	net.Conn
	l       *limitedListener
	address string
	once    sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.l.total--
		if c.l.conns[c.address]--; c.l.conns[c.address] <= 0 {
			delete(c.l.conns, c.address)
		}
	})
	return c.Conn.Close()
}

// serve starts an HTTP server for a handler. The returned function stops the server, and waits until
// it has stopped.
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
