package simrobot

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"perch/device/xiaozhi"
)

// Network describes what happens to the datagrams of a talk, in both directions.
type Network struct {
	Loss    float64       // fraction that is lost, 0 to 1
	Reorder float64       // fraction that is overtaken by the next two
	Jitter  time.Duration // the longest delay of the others
	Rebind  time.Duration // when the robot changes its port, from the start of the talk; 0 is never
	Seed    uint64
}

// sound is the UDP socket of a talk. One goroutine sends.
type sound struct {
	server    string
	in, out   *xiaozhi.Datagrams
	number    uint32 // of the last datagram sent
	datagrams chan<- xiaozhi.Datagram
	network   Network
	rand      *rand.Rand // for datagrams that are sent
	started   time.Time

	mu       sync.Mutex
	conn     net.Conn
	closed   bool
	last     uint32     // number of the last datagram accepted
	randHere *rand.Rand // for datagrams that arrive
	tasks    sync.WaitGroup
}

func openSound(secret xiaozhi.UDP, n *Network, heard chan<- xiaozhi.Datagram) (*sound, error) {
	s := &sound{server: net.JoinHostPort(secret.Server, strconv.Itoa(secret.Port)), datagrams: heard,
		in: xiaozhi.NewDatagrams(secret.Key, secret.Nonce, true), out: xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false), started: time.Now()}
	if n != nil {
		s.network = *n
	}
	s.rand, s.randHere = rand.New(rand.NewPCG(s.network.Seed, 1)), rand.New(rand.NewPCG(s.network.Seed, 2))
	return s, s.bind()
}

// bind opens a port for the robot, replacing an earlier one.
func (s *sound) bind() error {
	conn, err := net.Dial("udp", s.server)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.conn
	s.conn = conn
	s.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	s.tasks.Go(func() { s.receive(conn) })
	return nil
}

func (s *sound) receive(conn net.Conn) {
	buffer := make([]byte, xiaozhi.MostDatagram+1)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return // closed, or bound again
		}
		datagram := append([]byte(nil), buffer[:n]...)
		s.mu.Lock()
		delay, lost := s.network.fate(s.randHere)
		s.mu.Unlock()
		if !lost {
			s.later(delay, func() { s.handleDatagram(datagram) })
		}
	}
}

// handleDatagram handles a datagram; like the firmware it drops one older than the last.
func (s *sound) handleDatagram(datagram []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.in.Parse(datagram)
	if err != nil || d.Sequence <= s.last || s.closed {
		return
	}
	s.last = d.Sequence
	d.Opus = append([]byte(nil), d.Opus...)
	select {
	case s.datagrams <- d:
	default: // nobody receives
	}
}

func (s *sound) send(a xiaozhi.Audio) {
	if after := s.network.Rebind; after > 0 && time.Since(s.started) > after {
		s.network.Rebind = 0
		_ = s.bind() // after an error the old port stays in use
	}
	s.number++
	datagram := s.out.Append(nil, xiaozhi.Datagram{Sequence: s.number, Audio: a})
	delay, lost := s.network.fate(s.rand)
	if lost {
		return
	}
	s.later(delay, func() {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		_, _ = conn.Write(datagram) // sound that is not sent is lost
	})
}

// fate decides at random what happens to a datagram.
func (n Network) fate(r *rand.Rand) (delay time.Duration, lost bool) {
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

// later calls do after a delay, or at once if it is 0.
func (s *sound) later(delay time.Duration, do func()) {
	if delay == 0 {
		do()
		return
	}
	s.tasks.Go(func() {
		time.Sleep(delay)
		do()
	})
}

func (s *sound) close() {
	s.mu.Lock()
	s.closed = true
	conn := s.conn
	s.mu.Unlock()
	_ = conn.Close()
	s.tasks.Wait()
}
