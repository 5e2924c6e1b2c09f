package broker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mochi-mqtt/server/v2/packets"

	"perch/limit"
)

// maxIdleBuffer is the maximum size of the buffer that a connection reuses for its next packet, in bytes.
const maxIdleBuffer = 16 << 10

// errPacket is the error for a packet that cannot be decoded.
var errPacket = errors.New("a packet that cannot be decoded")

// reader reads packets from a connection and passes on only whole packets that can be decoded.
type reader struct {
	in      *bufio.Reader // nil until the first read
	version byte          // version of the protocol, from the client's first packet
	whole   bytes.Buffer  // the bytes of the present packet that were not returned yet
}

// read reads into p from the connection from, which must be the same in all calls.
func (r *reader) read(from io.Reader, p []byte) (int, error) {
	if r.in == nil {
		r.in = bufio.NewReaderSize(from, 1<<10)
	}
	if r.whole.Len() == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	return r.whole.Read(p)
}

// next reads the next packet into whole. It returns an error for a packet that is longer than limit.List bytes or cannot
// be decoded.
func (r *reader) next() error {
	if r.whole.Reset(); r.whole.Cap() > maxIdleBuffer {
		r.whole = bytes.Buffer{}
	}
	first, err := r.in.ReadByte()
	if err != nil {
		return err
	}
	r.whole.WriteByte(first)
	length := 0
	for shift := 0; ; shift += 7 {
		b, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		r.whole.WriteByte(b)
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift == 21 {
			return fmt.Errorf("%w: its length has more than four bytes", errPacket)
		}
	}
	if length > limit.List {
		return fmt.Errorf("%w: it has %d bytes, more than %d", errPacket, length, limit.List)
	}
	head := r.whole.Len()
	if _, err := io.CopyN(&r.whole, r.in, int64(length)); err != nil { // the buffer grows with the received data, not with the announced length
		return err
	}
	version, err := checkPacket(r.version, first, r.whole.Bytes()[head:])
	if err != nil {
		r.whole.Reset()
		return err
	}
	r.version = version
	return nil
}

// checkPacket returns an error if the library cannot decode a packet or panics. So such a packet ends only its connection
// and not the broker. Recovering from the panic is safe, because decoding uses no shared state. checkPacket also returns
// the version of the protocol, which the first packet of a client sets.
func checkPacket(version, first byte, body []byte) (_ byte, err error) {
	defer func() {
		if recover() != nil {
			err = errPacket
		}
	}()
	pk := packets.Packet{ProtocolVersion: version}
	if err := pk.FixedHeader.Decode(first); err != nil {
		return version, fmt.Errorf("%w: %w", errPacket, err)
	}
	pk.FixedHeader.Remaining = len(body)
	body = bytes.Clone(body) // the decoded packet refers to parts of the body
	decode, known := map[byte]func(*packets.Packet, []byte) error{
		packets.Connect: (*packets.Packet).ConnectDecode, packets.Publish: (*packets.Packet).PublishDecode,
		packets.Puback: (*packets.Packet).PubackDecode, packets.Pubrec: (*packets.Packet).PubrecDecode,
		packets.Pubrel: (*packets.Packet).PubrelDecode, packets.Pubcomp: (*packets.Packet).PubcompDecode,
		packets.Subscribe: (*packets.Packet).SubscribeDecode, packets.Unsubscribe: (*packets.Packet).UnsubscribeDecode,
		packets.Disconnect: (*packets.Packet).DisconnectDecode, packets.Pingreq: (*packets.Packet).PingreqDecode,
	}[pk.FixedHeader.Type]
	if !known { // clients do not send the other types, except AUTH, which this broker does not support
		return version, fmt.Errorf("%w: type %d", errPacket, pk.FixedHeader.Type)
	}
	if err := decode(&pk, body); err != nil {
		return version, fmt.Errorf("%w: %w", errPacket, err)
	}
	return pk.ProtocolVersion, nil
}
