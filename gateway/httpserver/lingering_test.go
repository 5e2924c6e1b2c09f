package httpserver

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"perch/must"
	"perch/waittest"
)

// lastAnswers starts a server with two paths at which connections linger, /robot and /refused, and with another
// path, /other. It returns the address of the server.
func lastAnswers(t *testing.T, l *Lingering) (address string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := NewEngine(quiet)
	must.Succeed(t, err)
	hello := func(c *gin.Context) { c.String(http.StatusOK, "hello") }
	e.Group("", l.Last()).POST("/robot", hello)
	e.Group("", l.Last()).POST("/refused", func(c *gin.Context) {
		Unread(c.Writer)
		c.String(http.StatusUnauthorized, "no")
	})
	e.POST("/other", hello)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	s := &http.Server{Handler: e, ConnContext: l.ConnContext, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- s.Serve(LimitListener(listener, quiet)) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
		l.Close()
	})
	return listener.Addr().String()
}

// request sends a request over a new connection, and reads the response.
func request(t *testing.T, address, path, headers, body string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must.Value(io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: perch\r\n"+headers+"\r\n"+body))(t)
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	must.Succeed(t, err)
	must.Value(io.ReadAll(answer.Body))(t)
	_ = answer.Body.Close()
	return conn, r
}

// ended reports whether the server has closed the connection. If must is true, it waits for that, and otherwise
// for 50 ms only.
func ended(t *testing.T, conn net.Conn, r *bufio.Reader, must bool) bool {
	t.Helper()
	if !must {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	}
	_, err := r.ReadByte()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection ended with %v", err)
	}
	return errors.Is(err, io.EOF)
}

const lastOne = "Connection: close\r\nContent-Length: 2\r\n"

// TestRobotClosesFirst checks that after the response to the last request of a connection the server does not close
// the connection before the robot does.
func TestRobotClosesFirst(t *testing.T) {
	l := &Lingering{timeout: time.Hour}
	address := lastAnswers(t, l)
	for path, headers := range map[string]string{"/robot": lastOne, "/refused": "Connection: close\r\nContent-Length: 200000\r\n"} {
		conn, r := request(t, address, path, headers, "{}")
		if ended(t, conn, r, false) {
			t.Fatalf("%s: we have closed first", path)
		}
		waittest.For(t, "1 linger", func() bool { return l.Counts().Open == 1 })
		_ = conn.Close()
		waittest.For(t, "0 linger", func() bool { return l.Counts().Open == 0 })
	}
	if c := l.Counts(); c != (Lingered{Kept: 2}) {
		t.Errorf("%+v", c)
	}
}

// TestOthersAreClosedAtOnce checks that connections of other paths do not linger, and that keep-alive connections
// stay open.
func TestOthersAreClosedAtOnce(t *testing.T) {
	l := &Lingering{timeout: time.Hour}
	address := lastAnswers(t, l)
	if conn, r := request(t, address, "/other", lastOne, "{}"); !ended(t, conn, r, true) {
		t.Error("the connection of another address stays open")
	}
	conn, r := request(t, address, "/robot", "Content-Length: 2\r\n", "{}")
	if ended(t, conn, r, false) {
		t.Error("a connection that goes on is closed")
	}
	if c := l.Counts(); c != (Lingered{}) {
		t.Errorf("%+v", c)
	}
}

// TestLingeringIsBounded checks the limits of time and number, and that Close ends all lingering connections.
func TestLingeringIsBounded(t *testing.T) {
	short := &Lingering{timeout: time.Millisecond}
	if conn, r := request(t, lastAnswers(t, short), "/robot", lastOne, "{}"); !ended(t, conn, r, true) {
		t.Error("its time has no end")
	}
	if c := short.Counts(); c.TimedOut != 1 || c.Kept != 1 || c.Open != 0 {
		t.Errorf("in time: %+v", c)
	}

	few := &Lingering{timeout: time.Hour, maxOpen: 1}
	address := lastAnswers(t, few)
	first, r := request(t, address, "/robot", lastOne, "{}")
	waittest.For(t, "1 linger", func() bool { return few.Counts().Open == 1 })
	if conn, r := request(t, address, "/robot", lastOne, "{}"); !ended(t, conn, r, true) {
		t.Error("there is room for any number")
	}
	if c := few.Counts(); c != (Lingered{Open: 1, Kept: 1, ClosedAtOnce: 1}) {
		t.Errorf("in number: %+v", c)
	}
	few.Close()
	if !ended(t, first, r, true) || few.Counts() != (Lingered{Kept: 1, ClosedAtOnce: 1}) {
		t.Errorf("at the end: %+v", few.Counts())
	}
	if conn, r := request(t, address, "/robot", lastOne, "{}"); !ended(t, conn, r, true) {
		t.Error("after the end one is kept open")
	}
}
