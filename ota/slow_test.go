package ota_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
)

// line is a listener with one caller.
type line struct {
	calls chan net.Conn
	once  sync.Once
}

func (l *line) Accept() (net.Conn, error) {
	c, open := <-l.calls
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *line) Close() error   { l.once.Do(func() { close(l.calls) }); return nil }
func (l *line) Addr() net.Addr { return &net.TCPAddr{} }

// TestABodyThatNeverEnds: a robot that lost its Wi-Fi in the middle of a
// check-in holds nothing for long, and its headers are enough.
func TestABodyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, device.AdoptOpen)
		robot, appliance := net.Pipe()
		l := &line{calls: make(chan net.Conn, 1)}
		l.calls <- appliance
		server := &http.Server{Handler: h.handler}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		began := time.Now()
		fmt.Fprint(robot, "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: perch:8003\r\nDevice-Id: a0:b1:c2:d3:e4:f5\r\nContent-Length: 3000\r\n\r\n{")
		answer, err := http.ReadResponse(bufio.NewReader(robot), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("answered %v (%v)", answer, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it was waited for %v", took)
		}
		_ = robot.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}
