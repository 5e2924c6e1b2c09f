package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// soakDialer returns a dialer that connects from the local address from, in 127.0.0.0/8. Each client uses a different
// address, like machines in a home, so that limits by address apply to each client alone. If from is empty, the system
// chooses 127.0.0.1.
func soakDialer(from string) *net.Dialer {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return d
}

// soakRequest sends one request on a new connection, and returns the status and up to 8 MiB of the body. header holds
// alternating names and values.
func soakRequest(ctx context.Context, from, method, url, body string, header ...string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, soakAnswerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Host = r.Header.Get("Host") // if empty, the host of the URL is sent
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: soakDialer(from).DialContext}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	return answer.StatusCode, string(text), err
}

// soakSocket is the client's end of a WebSocket. At most one goroutine may read and one may write at a time.
type soakSocket struct{ *websocket.Conn }

// dialSocket opens a WebSocket from the local address from. If buffer is not 0, it is the size in bytes of the kernel's
// receive buffer.
func dialSocket(ctx context.Context, from, address, path string, buffer int, header ...string) (soakSocket, error) {
	d := websocket.Dialer{HandshakeTimeout: soakAnswerWithin}
	d.NetDialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := soakDialer(from).DialContext(ctx, network, address)
		if err == nil && buffer > 0 {
			_ = conn.(*net.TCPConn).SetReadBuffer(buffer) // the kernel may choose another size
		}
		return conn, err
	}
	headers := http.Header{}
	for i := 0; i < len(header); i += 2 {
		headers.Set(header[i], header[i+1])
	}
	conn, answer, err := d.DialContext(ctx, "ws://"+address+path, headers)
	if errors.Is(err, websocket.ErrBadHandshake) {
		err = fmt.Errorf("%s is answered with %s", path, answer.Status)
	}
	if err == nil {
		conn.SetReadLimit(1 << 20)
	}
	return soakSocket{conn}, err
}

// write sends one message.
func (s soakSocket) write(kind int, payload []byte) error {
	_ = s.SetWriteDeadline(time.Now().Add(soakAnswerWithin))
	return s.WriteMessage(kind, payload)
}

func (s soakSocket) drop() { _ = s.Close() }

// soakWire forwards the connections between a robot and the appliance. It can simulate a robot that is switched off: the
// connections to the appliance then stay open, but carry nothing.
type soakWire struct {
	listener net.Listener
	from, to string
	mu       sync.Mutex
	links    map[*soakLink]bool
	wg       sync.WaitGroup
}

type soakLink struct {
	robot, appliance net.Conn
	cut              time.Time     // time of the call of vanish; zero before
	let              bool          // released is closed
	released         chan struct{} // closed when the connection to the appliance may be closed after a cut
}

func newSoakWire(from, to string) (*soakWire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &soakWire{listener: l, from: from, to: to, links: map[*soakLink]bool{}}
	w.wg.Go(w.serve)
	return w, nil
}

func (w *soakWire) address() string { return w.listener.Addr().String() }

func (w *soakWire) serve() {
	for {
		robot, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wg.Go(func() { w.link(robot) })
	}
}

// link forwards one connection until one side closes it, or until it is cut and released.
func (w *soakWire) link(robot net.Conn) {
	appliance, err := soakDialer(w.from).Dial("tcp", w.to)
	if err != nil {
		_ = robot.Close()
		return
	}
	l := &soakLink{robot: robot, appliance: appliance, released: make(chan struct{})}
	w.mu.Lock()
	w.links[l] = true
	w.mu.Unlock()
	ended := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // link closes both connections, whatever the error
		ended <- struct{}{}
	}
	go carry(appliance, robot)
	go carry(robot, appliance)
	<-ended
	w.mu.Lock()
	cut := !l.cut.IsZero()
	w.mu.Unlock()
	_ = robot.Close()
	if cut {
		<-l.released
	}
	_ = appliance.Close()
	<-ended
	w.mu.Lock()
	delete(w.links, l)
	w.mu.Unlock()
}

// vanish cuts all connections: it closes those of the robot, and leaves those to the appliance open and silent.
func (w *soakWire) vanish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		if l.cut.IsZero() {
			l.cut = time.Now()
			_ = l.robot.Close()
			_ = l.appliance.SetReadDeadline(time.Now())
		}
	}
}

// release closes the connections to the appliance that were cut after a time.
func (w *soakWire) release(after time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		if !l.cut.IsZero() && l.cut.After(after) && !l.let {
			l.let = true
			close(l.released)
		}
	}
}

func (w *soakWire) close() {
	_ = w.listener.Close()
	w.vanish()
	w.release(time.Time{})
	w.wg.Wait()
}
