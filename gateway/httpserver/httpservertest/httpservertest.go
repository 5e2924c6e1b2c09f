// Package httpservertest helps tests of HTTP servers: it sends requests over the network, serves a handler over a
// pipe inside a synctest bubble, reads server-sent events and makes certificates.
package httpservertest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"perch/must"
)

// Ask sends a request, and returns the response and its body as text. The body of the response is closed
// already. Ask does not follow redirects. header holds names and values of headers, alternately.
func Ask(t testing.TB, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must.Succeed(t, err)
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response, string(text)
}

// Serve serves a handler over a pipe until the test ends, and returns the client's end of the pipe. In a
// synctest bubble, the server uses the bubble's clock.
func Serve(t testing.TB, h http.Handler) net.Conn {
	t.Helper()
	client, appliance := net.Pipe()
	l := &listener{conns: make(chan net.Conn, 1)}
	l.conns <- appliance
	server, served := &http.Server{Handler: h}, make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return client
}

// listener is a net.Listener with a single connection.
type listener struct {
	conns chan net.Conn
	once  sync.Once // closes conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, open := <-l.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (l *listener) Close() error { l.once.Do(func() { close(l.conns) }); return nil }

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }
