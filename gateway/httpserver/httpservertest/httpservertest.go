// Package httpservertest sends requests to a server in tests: over loopback, or over a pipe
// on virtual time.
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

// Ask sends a request and returns its answer, which may be a redirect, and the body as
// text. header holds names and values in turn.
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
	answer, err := client.Do(r)
	must.Succeed(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.Succeed(t, err)
	return answer, string(text)
}

// Serve serves over a pipe until the test ends, on the test's virtual time, and returns
// the client's end.
func Serve(t testing.TB, h http.Handler) net.Conn {
	t.Helper()
	client, appliance := net.Pipe()
	l := &listener{calls: make(chan net.Conn, 1)}
	l.calls <- appliance
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

// listener has one caller.
type listener struct {
	calls chan net.Conn
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	c, open := <-l.calls
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.calls) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }
