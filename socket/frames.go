package socket

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"

	"perch/limit"
)

// Frames without a message cost as much to read as others: pings, pongs, and almost empty
// fragments. The library handles them itself, so their rate is limited per second; more
// wait in the network.
const (
	idleFrames = 50
	// leastFragment is the least payload, in bytes, of a fragment that is not idle.
	leastFragment = 128
)

// pacedConn is a connection whose idle frames are read at a limited rate.
type pacedConn struct {
	net.Conn
	frames frames
	pace   limit.Pace
	over   <-chan struct{}
}

// Read waits first if too many idle frames were read before.
func (c *pacedConn) Read(p []byte) (int, error) {
	c.pace.Wait(c.over)
	n, err := c.Conn.Read(p)
	if idle := c.frames.idle(p[:n]); idle > 0 {
		c.pace.Took(idle)
	}
	return n, err
}

// opening is a connection of Dial. Until it is open, Read returns one byte at a time, and at
// most limit.List in all, so that the library reads nothing beyond the answer to the upgrade
// and frames are counted from the first.
type opening struct {
	pacedConn
	left int
	open bool
}

func newOpening(c net.Conn, over <-chan struct{}) *opening {
	paced := pacedConn{Conn: buffered{c, bufio.NewReaderSize(c, usualBuffer)}, pace: limit.PerSecond(idleFrames), over: over}
	return &opening{pacedConn: paced, left: limit.List}
}

// Read implements net.Conn.
func (c *opening) Read(p []byte) (int, error) {
	if c.open {
		return c.pacedConn.Read(p)
	}
	if c.left <= 0 {
		return 0, errAnswer
	}
	n, err := c.Conn.Read(p[:min(len(p), 1)])
	c.left -= n
	return n, err
}

// buffered is a connection read through a buffer.
type buffered struct {
	net.Conn
	from *bufio.Reader
}

// Read implements net.Conn.
func (c buffered) Read(p []byte) (int, error) { return c.from.Read(p) }

// pacing passes a paced connection to an upgrade.
type pacing struct {
	http.ResponseWriter
	over <-chan struct{}
}

// Hijack implements http.Hijacker.
func (w pacing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &pacedConn{Conn: c, pace: limit.PerSecond(idleFrames), over: w.over}, buffered, nil
}

// frames tracks the other side's frames (RFC 6455 section 5.2) in the bytes read, however
// they are split. It checks nothing: the library does.
type frames struct {
	header [14]byte
	have   int    // of header
	skip   uint64 // left of the payload
}

// idle counts the frames that begin in p and have no message.
func (f *frames) idle(p []byte) (n int) {
	for len(p) > 0 {
		if f.skip > 0 {
			cut := min(f.skip, uint64(len(p)))
			p, f.skip = p[cut:], f.skip-cut
			continue
		}
		f.header[f.have] = p[0]
		f.have, p = f.have+1, p[1:]
		if f.have < f.length() {
			continue
		}
		f.have, f.skip = 0, f.payload()
		const final, control = 0x80, 0x08
		if f.header[0]&control != 0 || f.header[0]&final == 0 && f.skip < leastFragment {
			n++
		}
	}
	return n
}

// length returns the length of the header, as far as it is known.
func (f *frames) length() int {
	if f.have < 2 {
		return 2
	}
	n := 2
	switch f.header[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.header[1]&0x80 != 0 {
		n += 4 // the mask
	}
	return n
}

func (f *frames) payload() uint64 {
	switch n := f.header[1] & 0x7f; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.header[2:]))
	case 127:
		return binary.BigEndian.Uint64(f.header[2:])
	default:
		return uint64(n)
	}
}
