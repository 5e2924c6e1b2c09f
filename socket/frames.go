package socket

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"

	"perch/limit"
)

// Frames that carry no message cost as much to read as those that do, and the
// library deals with them by itself: pings, pongs, and fragments with next to
// nothing in them. So many are read in a second; more wait in the network.
const (
	idleFrames = 50
	// leastFragment is how many bytes a fragment holds that is worth its frame.
	leastFragment = 128
)

// pacedConn is a connection whose idle frames are read at a pace.
type pacedConn struct {
	net.Conn
	frames frames
	pace   limit.Pace
	over   <-chan struct{}
}

// Read waits first where too many idle frames were read before.
func (c *pacedConn) Read(p []byte) (int, error) {
	c.pace.Wait(c.over)
	n, err := c.Conn.Read(p)
	if idle := c.frames.idle(p[:n]); idle > 0 {
		c.pace.Took(idle)
	}
	return n, err
}

// opening is a connection of Dial. Until it is open, Read returns one byte at a
// time, and no more than limit.List in all, so that the library reads nothing
// behind the answer to the upgrade, and frames are counted from the first.
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

// buffered is a connection that is read through a buffer.
type buffered struct {
	net.Conn
	from *bufio.Reader
}

// Read implements net.Conn.
func (c buffered) Read(p []byte) (int, error) { return c.from.Read(p) }

// pacing hands an upgrade a paced connection.
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

// frames follows the other side's frames (RFC 6455 section 5.2) in what is read of
// them, however it is cut. It checks nothing: the library does.
type frames struct {
	header [14]byte
	have   int    // of header
	skip   uint64 // of the payload
}

// idle counts the frames that begin in p and carry no message.
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

// length is how long the header is, as far as that is known.
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
