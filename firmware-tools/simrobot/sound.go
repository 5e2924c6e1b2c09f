package simrobot

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"perch/device/xiaozhi"
)

// Network describes what happens to datagrams with sound, in both directions.
type Network struct {
	Loss    float64       // fraction of the datagrams that is lost, 0 to 1
	Reorder float64       // fraction of the datagrams that is delayed by 75 ms, so that later datagrams overtake it, 0 to 1
	Jitter  time.Duration // maximum random delay of every datagram
	Rebind  time.Duration // time after the opening of a channel at which the robot changes its port; 0 for never
	Seed    uint64        // seed of the random decisions
}

// sound is the UDP socket of a channel with MQTT. Only one goroutine may send.
type sound struct {
	server    string // host:port
	in, out   *xiaozhi.Datagrams
	sent      uint32                  // sequence number of the latest sent datagram
	datagrams chan<- xiaozhi.Datagram // receives the accepted datagrams
	network   Network
	randOut   *rand.Rand // decides what happens to sent datagrams
	started   time.Time

	mu       sync.Mutex // guards the fields below, except for tasks
	conn     net.Conn
	closed   bool
	accepted uint32     // sequence number of the latest accepted datagram
	randIn   *rand.Rand // decides what happens to received datagrams
	tasks    sync.WaitGroup
}

// openSound opens a UDP socket to the server in udp. It sends received datagrams to the Go channel
// datagrams, and drops them while that channel is full.
func openSound(udp xiaozhi.UDP, n *Network, datagrams chan<- xiaozhi.Datagram) (*sound, error) {
	s := &sound{server: net.JoinHostPort(udp.Server, strconv.Itoa(udp.Port)), datagrams: datagrams,
		in: xiaozhi.NewDatagrams(udp.Key, udp.Nonce, true), out: xiaozhi.NewDatagrams(udp.Key, udp.Nonce, false), started: time.Now()}
	if n != nil {
		s.network = *n
	}
	s.randOut, s.randIn = rand.New(rand.NewPCG(s.network.Seed, 1)), rand.New(rand.NewPCG(s.network.Seed, 2))
	return s, s.bind()
}

// bind opens a socket with a new local port and closes the previous socket, if any.
func (s *sound) bind() error {
	conn, err := net.Dial("udp", s.server)
	if err != nil {
		return err
	}
	s.mu.Lock()
	previous := s.conn
	s.conn = conn
	s.mu.Unlock()
	if previous != nil {
		_ = previous.Close()
	}
	s.tasks.Go(func() { s.receive(conn) })
	return nil
}

// receive receives datagrams until conn is closed. It applies the delays and losses of the simulated
// network.
func (s *sound) receive(conn net.Conn) {
	buffer := make([]byte, xiaozhi.MaxDatagram+1)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return // close or bind has closed conn
		}
		datagram := append([]byte(nil), buffer[:n]...)
		s.mu.Lock()
		delay, lost := s.network.drawDelay(s.randIn)
		s.mu.Unlock()
		if !lost {
			s.callAfter(delay, func() { s.handleDatagram(datagram) })
		}
	}
}

// handleDatagram decrypts a datagram and sends it to s.datagrams. Like the firmware it drops a datagram
// whose sequence number is not higher than the latest accepted number.
func (s *sound) handleDatagram(datagram []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.in.Parse(datagram)
	if err != nil || d.Sequence <= s.accepted || s.closed {
		return
	}
	s.accepted = d.Sequence
	d.Opus = append([]byte(nil), d.Opus...)
	select {
	case s.datagrams <- d:
	default: // the receiver is too slow
	}
}

// send encrypts a packet and sends it as a datagram, subject to the simulated network. It changes the
// port once Network.Rebind has passed.
func (s *sound) send(a xiaozhi.Audio) {
	if after := s.network.Rebind; after > 0 && time.Since(s.started) > after {
		s.network.Rebind = 0
		_ = s.bind() // if that fails, the old port stays in use
	}
	s.sent++
	datagram := s.out.Append(nil, xiaozhi.Datagram{Sequence: s.sent, Audio: a})
	delay, lost := s.network.drawDelay(s.randOut)
	if lost {
		return
	}
	s.callAfter(delay, func() {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		_, _ = conn.Write(datagram) // after an error the sound is lost, as on a real network
	})
}

// drawDelay decides at random whether a datagram is lost, and for how long it is delayed otherwise.
func (n Network) drawDelay(r *rand.Rand) (delay time.Duration, lost bool) {
	if n.Loss == 0 && n.Reorder == 0 && n.Jitter == 0 {
		return 0, false
	}
	if r.Float64() < n.Loss {
		return 0, true
	}
	if n.Jitter > 0 {
		delay = time.Duration(r.Int64N(int64(n.Jitter)))
	}
	if r.Float64() < n.Reorder {
		delay += 75 * time.Millisecond
	}
	return delay, false
}

// callAfter calls f after a delay on another goroutine, or directly if the delay is 0.
func (s *sound) callAfter(delay time.Duration, f func()) {
	if delay == 0 {
		f()
		return
	}
	s.tasks.Go(func() {
		time.Sleep(delay)
		f()
	})
}

// close closes the socket and waits for all goroutines.
func (s *sound) close() {
	s.mu.Lock()
	s.closed = true
	conn := s.conn
	s.mu.Unlock()
	_ = conn.Close()
	s.tasks.Wait()
}
