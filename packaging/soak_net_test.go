package packaging_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// soakDialer connects from an address of its own in 127/8, as machines of a
// home have: limits by address are for one of them, not for all. An empty one
// is 127.0.0.1.
func soakDialer(from string) *net.Dialer {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return d
}

// soakRequest sends one request on a connection of its own, and returns status
// and body.
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
	r.Host = r.Header.Get("Host") // or the URL's
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: soakDialer(from).DialContext}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	return answer.StatusCode, string(text), err
}

// soakSocket is the client's end of a WebSocket, as little of it as a skin
// needs. One goroutine reads.
type soakSocket struct {
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex // of writes
}

// Opcodes of RFC 6455 section 5.2.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// dialSocket opens one. A kernel buffer that is not 0 bounds what waits to be
// read, in bytes.
func dialSocket(ctx context.Context, from, address, path string, buffer int, header ...string) (*soakSocket, error) {
	conn, err := soakDialer(from).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if buffer > 0 {
		_ = conn.(*net.TCPConn).SetReadBuffer(buffer) // it is a wish
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:])
	request := "GET " + path + " HTTP/1.1\r\nHost: " + address +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
		base64.StdEncoding.EncodeToString(nonce[:]) + "\r\n"
	for i := 0; i < len(header); i += 2 {
		request += header[i] + ": " + header[i+1] + "\r\n"
	}
	_ = conn.SetDeadline(time.Now().Add(soakAnswerWithin)) // the connection is new
	_, err = io.WriteString(conn, request+"\r\n")
	s := &soakSocket{conn: conn, r: bufio.NewReaderSize(conn, 4096)}
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(s.r, nil)
	}
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("%s is answered with %s", path, answer.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return s, nil
}

// read returns the next message, and answers pings meanwhile.
func (s *soakSocket) read() (opcode int, message []byte, err error) {
	for {
		opcode, message, err = s.frame()
		switch {
		case err != nil:
			return 0, nil, err
		case opcode == opPing:
			if err := s.write(opPong, message); err != nil {
				return 0, nil, err
			}
		case opcode == opClose:
			return 0, nil, io.EOF
		case opcode != opPong:
			return opcode, message, nil
		}
	}
}

// frame reads one frame; the appliance sends a message in one.
func (s *soakSocket) frame() (opcode int, payload []byte, err error) {
	var head [10]byte
	if _, err := io.ReadFull(s.r, head[:2]); err != nil {
		return 0, nil, err
	}
	length := uint64(head[1] & 0x7f)
	switch length {
	case 126:
		_, err = io.ReadFull(s.r, head[2:4])
		length = uint64(binary.BigEndian.Uint16(head[2:4]))
	case 127:
		_, err = io.ReadFull(s.r, head[2:10])
		length = binary.BigEndian.Uint64(head[2:10])
	}
	if err != nil {
		return 0, nil, err
	}
	if length > 1<<20 {
		return 0, nil, errors.New("a frame of over a megabyte")
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(s.r, payload)
	return int(head[0] & 0x0f), payload, err
}

// write sends one message, masked with zeros.
func (s *soakSocket) write(opcode int, payload []byte) error {
	frame := []byte{0x80 | byte(opcode)}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	frame = append(append(frame, 0, 0, 0, 0), payload...)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(soakAnswerWithin)) // it is open, or the write fails
	_, err := s.conn.Write(frame)
	return err
}

func (s *soakSocket) drop() { _ = s.conn.Close() }

// soakWire is the network between a robot and the appliance, which can fail
// without a word: what was connected then stays so on the appliance's side,
// and nothing comes or goes any more.
type soakWire struct {
	listener net.Listener
	from, to string
	mu       sync.Mutex
	links    map[*soakLink]bool
	wg       sync.WaitGroup
}

type soakLink struct {
	robot, appliance net.Conn
	cut              time.Time     // when it fell silent; zero while it works
	let              bool          // its far end may be let go of
	released         chan struct{} // closed then
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

// link carries one connection, until one side ends it or it is cut.
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
		_, _ = io.Copy(to, from) // however it ends, both ends are closed
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

// vanish cuts what is connected. The robot's end is closed, and the appliance
// hears nothing of it.
func (w *soakWire) vanish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		if l.cut.IsZero() {
			l.cut = time.Now()
			_ = l.robot.Close() // which ends both directions, but not the far end
			_ = l.appliance.SetReadDeadline(time.Now())
		}
	}
}

// release lets go of what was cut after a time.
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
