package homeassistant

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"perch/limit"
)

// bounded is a connection to a broker on which no packet is longer than
// limit.List. The library makes room for as many bytes as a packet announces,
// which may be 268 million. The end of a message that is longer is left out:
// what remains is too long still, and is refused where it is looked at. To
// hang up instead would have the broker give it again at every connection.
type bounded struct {
	net.Conn
	in   *bufio.Reader
	head []byte // of a packet, still to be given
	left int    // bytes of its body to give
	skip int    // and to leave out after them
}

func newBounded(c net.Conn) *bounded { return &bounded{Conn: c, in: bufio.NewReader(c)} }

// Read reads what was sent.
func (b *bounded) Read(p []byte) (int, error) {
	if len(b.head) == 0 && b.left == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// next reads the head of the next packet.
func (b *bounded) next() error {
	const publish = 3
	if _, err := b.in.Discard(b.skip); err != nil {
		return err
	}
	kind, err := b.in.ReadByte()
	if err != nil {
		return err
	}
	announced, err := binary.ReadUvarint(b.in) // MQTT's lengths are such numbers, of four bytes at the most
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("what answers speaks no MQTT: %w", err)
	}
	if err != nil {
		return err
	}
	if announced >= 1<<28 || announced > limit.List && kind>>4 != publish {
		return fmt.Errorf("the broker announces a packet of %d bytes, which none of its answers has; look at what is named as mqtt.broker", announced)
	}
	b.left = int(min(announced, limit.List))
	b.skip = int(announced) - b.left
	b.head = binary.AppendUvarint([]byte{kind}, uint64(b.left))
	return nil
}
