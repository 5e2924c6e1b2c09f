package socket

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"

	"perch/limit"
)

// Idle frames are control frames, such as pings and pongs, and small frames that do not end a message. They cost as much
// time as other frames, but Options.PerSecond counts only whole messages. So the rate of idle frames is limited separately.
const (
	idleFrames  = 50  // maximum number of idle frames per second
	minFragment = 128 // a frame that does not end a message is idle if its payload has fewer bytes
)

// pacedConn is a connection that limits the rate at which idle frames are read.
type pacedConn struct {
	net.Conn
	frames frames
	pace   limit.Pace      // limits idle frames
	over   <-chan struct{} // closed when the connection is closed
}

// Read implements net.Conn. Before it reads, it waits until the rate of idle frames is within the limit.
func (c *pacedConn) Read(p []byte) (int, error) {
	c.pace.Wait(c.over)
	n, err := c.Conn.Read(p)
	if idle := c.frames.idle(p[:n]); idle > 0 {
		c.pace.Took(idle)
	}
	return n, err
}

// opening is a connection that Dial makes. During the handshake Read returns one byte at a time, so that the library
// does not read beyond the response to the upgrade request into frames, which have to be counted. The response is
// limited to limit.List bytes.
type opening struct {
	pacedConn
	left int  // number of bytes that may still be read during the handshake
	open bool // whether the handshake is over; set by Dial
}

// newOpening returns an opening for c. over is closed when the connection is closed.
func newOpening(c net.Conn, over <-chan struct{}) *opening {
	paced := pacedConn{Conn: buffered{c, bufio.NewReaderSize(c, defaultBuffer)}, pace: limit.PerSecond(idleFrames), over: over}
	return &opening{pacedConn: paced, left: limit.List}
}

// Read implements net.Conn.
func (c *opening) Read(p []byte) (int, error) {
	if c.open {
		return c.pacedConn.Read(p)
	}
	if c.left <= 0 {
		return 0, errResponseTooLong
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

// pacing is a ResponseWriter whose hijacked connection is a pacedConn.
type pacing struct {
	http.ResponseWriter
	over <-chan struct{} // closed when the connection is closed
}

// Hijack implements http.Hijacker.
func (w pacing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &pacedConn{Conn: c, pace: limit.PerSecond(idleFrames), over: w.over}, buffered, nil
}

// frames finds the headers of frames (RFC 6455 section 5.2) in the bytes that are read from a connection. It does not
// validate the frames; the WebSocket library does.
type frames struct {
	header [14]byte // header of the current frame
	have   int      // number of bytes of header that have been read
	skip   uint64   // number of bytes of the payload that have not been read yet
}

// idle returns the number of idle frames whose headers end in p, the next bytes of the connection.
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
		if f.header[0]&control != 0 || f.header[0]&final == 0 && f.skip < minFragment {
			n++
		}
	}
	return n
}

// length returns the length of the current header in bytes, or 2 until its first two bytes have been read.
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

// payload returns the length of the payload in bytes. The header must be complete.
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
