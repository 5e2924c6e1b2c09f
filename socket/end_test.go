package socket_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"perch/must"
	"perch/socket"
)

// TestTheOtherSideIsGone checks that Receive returns io.EOF however the other side ends the connection. A robot ends
// each conversation by closing the TCP connection. That causes a FIN, or a reset if the robot had unread data.
func TestTheOtherSideIsGone(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *websocket.Conn, *net.TCPConn){
		"without a close frame": func(t *testing.T, _ *websocket.Conn, tcp *net.TCPConn) { must.Succeed(t, tcp.Close()) },
		"with a reset": func(t *testing.T, _ *websocket.Conn, tcp *net.TCPConn) {
			must.Succeed(t, tcp.SetLinger(0))
			must.Succeed(t, tcp.Close())
		},
		"in the middle of a frame": func(t *testing.T, _ *websocket.Conn, tcp *net.TCPConn) {
			_, err := tcp.Write([]byte("\x82\x8a\x00\x00\x00\x00abc"))
			must.Succeed(t, err)
			must.Succeed(t, tcp.Close())
		},
		"with a reset in the middle of a frame": func(t *testing.T, _ *websocket.Conn, tcp *net.TCPConn) {
			_, err := tcp.Write([]byte("\x82\x8a\x00\x00\x00\x00abc"))
			must.Succeed(t, err)
			must.Succeed(t, tcp.SetLinger(0))
			must.Succeed(t, tcp.Close())
		},
		"with a close frame": func(t *testing.T, peer *websocket.Conn, _ *net.TCPConn) {
			must.Succeed(t, peer.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Minute)))
		},
		"with an empty close frame": func(t *testing.T, peer *websocket.Conn, _ *net.TCPConn) {
			must.Succeed(t, peer.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Minute)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			appliance, peer, tcp := raw(t, socket.Options{MaxMessage: 100})
			leave(t, peer, tcp)
			if _, got, err := appliance.Receive(); err != io.EOF || got != nil {
				t.Errorf("received %q with %v, want io.EOF", got, err)
			}
		})
	}
}

func TestDropSendsNoCloseFrame(t *testing.T) {
	appliance, peer, tcp := raw(t, socket.Options{MaxMessage: 100})
	appliance.Drop()
	appliance.Drop()
	appliance.Close(socket.Normal, "too late")
	must.Succeed(t, tcp.SetReadDeadline(time.Now().Add(time.Minute)))
	if rest, err := io.ReadAll(peer.NetConn()); err != nil || len(rest) != 0 {
		t.Errorf("the other side read %x (%v), want the end of TCP", rest, err)
	}
	if _, _, err := appliance.Receive(); err == nil {
		t.Error("a dropped socket received")
	}
	if err := appliance.SendText([]byte("x")); err == nil {
		t.Error("a dropped socket sent")
	}
}

func TestCloseSendsTheReason(t *testing.T) {
	long := strings.Repeat("é", 300)
	for _, c := range []struct {
		code         int
		reason, want string
	}{
		{socket.Normal, "", ""},
		{socket.GoingAway, "the appliance stops", "the appliance stops"},
		{socket.Violation, long, long[:120]},
		{socket.ServerError, "x" + long, "x" + long[:118]}, // the reason must be valid UTF-8: RFC 6455 section 5.5.1
		{websocket.CloseUnsupportedData, "a\xffb", "ab"},
	} {
		appliance, peer, tcp := raw(t, socket.Options{MaxMessage: 100})
		appliance.Close(c.code, c.reason)
		_, _, err := peer.ReadMessage()
		var closed *websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != c.code || closed.Text != c.want || !utf8.ValidString(c.want) {
			t.Errorf("close %d %.20q arrives as %v", c.code, c.reason, err)
		}
		// After a close frame a robot waits for the server to close the TCP connection.
		must.Succeed(t, tcp.SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := tcp.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("TCP is open after the close frame: %v", err)
		}
	}
}

func TestCloseWakesReceive(t *testing.T) {
	for name, end := range map[string]func(*socket.Conn){
		"Close": func(c *socket.Conn) { c.Close(socket.GoingAway, "bye") },
		"Drop":  (*socket.Conn).Drop,
	} {
		appliance, robot := pair(t, socket.Options{MaxMessage: 100})
		received := make(chan error)
		go func() {
			_, _, _ = appliance.Receive() // returns the message; the next Receive waits until the connection is closed
			_, _, err := appliance.Receive()
			received <- err
		}()
		must.Succeed(t, robot.SendText([]byte("x")))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { end(appliance) })
		}
		wg.Wait()
		select {
		case err := <-received:
			if err == nil {
				t.Errorf("%s: a message was received", name)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s does not end Receive", name)
		}
		if _, _, err := robot.Receive(); err != io.EOF {
			t.Errorf("%s: the other side sees %v", name, err)
		}
	}
}

// TestSendTimesOut checks that a send to a robot that has stopped reading fails after SendWithin.
func TestSendTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const within = 10 * time.Second
		appliance, _, tcp := piped(t, socket.Options{MaxMessage: 100, SendWithin: within})
		go func() { _, _ = io.ReadFull(tcp, make([]byte, 1000)) }() // the robot reads only 1000 bytes
		began := time.Now()
		err := appliance.SendBinary(make([]byte, 1<<20))
		var late net.Error
		if took := time.Since(began); !errors.As(err, &late) || !late.Timeout() || took != within {
			t.Errorf("the send took %v and ended with %v", took, err)
		}
		if err := appliance.SendText([]byte("x")); err == nil {
			t.Error("after half a frame another one was sent")
		}
	})
}

func TestCloseDuringASend(t *testing.T) {
	appliance, _, _ := raw(t, socket.Options{MaxMessage: 100, SendWithin: time.Hour})
	sent := make(chan error)
	go func() {
		var err error
		for err == nil {
			err = appliance.SendBinary(make([]byte, 1<<20))
		}
		sent <- err
	}()
	closed := make(chan struct{})
	go func() { appliance.Close(socket.GoingAway, ""); close(closed) }()
	for _, ended := range []func() bool{
		func() bool { <-closed; return true },
		func() bool { return <-sent != nil },
	} {
		done := make(chan bool, 1)
		go func() { done <- ended() }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("Close waits for one that does not read")
		}
	}
}

// TestCloseReason checks that the reason of the other side's close frame can be read, and that there is none without a frame.
func TestCloseReason(t *testing.T) {
	for want, end := range map[string]func(*socket.Conn){
		"the quota is exceeded": func(c *socket.Conn) { c.Close(socket.ServerError, "the quota is exceeded") },
		"":                      func(c *socket.Conn) { c.Drop() },
	} {
		appliance, robot := pair(t, socket.Options{})
		end(appliance)
		if _, _, err := robot.Receive(); !errors.Is(err, io.EOF) || robot.CloseReason() != want {
			t.Errorf("%v, reason %q, want %q", err, robot.CloseReason(), want)
		}
	}
}
