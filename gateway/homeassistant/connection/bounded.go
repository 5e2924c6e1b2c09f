package connection

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"perch/limit"
)

// boundedConn is a connection to a broker that limits the size of packets to limit.List bytes. The client library
// allocates as many bytes as the header of a packet announces, which may be 268 million. A longer packet with a
// message is truncated, and Perch later refuses the message because it is still too long. An error instead would
// end the connection, and the broker would deliver the same message again on the next one.
type boundedConn struct {
	net.Conn
	in     *bufio.Reader
	header []byte // rest of the packet's header that Read has to return
	body   int    // number of bytes of the packet's body that Read has to return
	skip   int    // number of bytes to discard after the body, since the packet is too long
}

func newBoundedConn(c net.Conn) *boundedConn { return &boundedConn{Conn: c, in: bufio.NewReader(c)} }

// Read implements net.Conn.
func (b *boundedConn) Read(p []byte) (int, error) {
	if len(b.header) == 0 && b.body == 0 {
		if err := b.readHeader(); err != nil {
			return 0, err
		}
	}
	if len(b.header) > 0 {
		n := copy(p, b.header)
		b.header = b.header[n:]
		return n, nil
	}
	n, err := b.in.Read(p[:min(len(p), b.body)])
	b.body -= n
	return n, err
}

// readHeader reads the header of the next packet.
func (b *boundedConn) readHeader() error {
	const publish = 3
	if _, err := b.in.Discard(b.skip); err != nil {
		return err
	}
	kind, err := b.in.ReadByte()
	if err != nil {
		return err
	}
	announced, err := binary.ReadUvarint(b.in) // MQTT encodes a length as a varint of at most four bytes
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the server is not an MQTT broker: %w", err)
	}
	if err != nil {
		return err
	}
	if announced >= 1<<28 || announced > limit.List && kind>>4 != publish {
		return fmt.Errorf("the MQTT broker announces a packet of %d bytes, which is too long; check mqtt.broker", announced)
	}
	b.body = int(min(announced, limit.List))
	b.skip = int(announced) - b.body
	b.header = binary.AppendUvarint([]byte{kind}, uint64(b.body))
	return nil
}
