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

// mostSmall is the largest buffer that a connection keeps for its next packet, in bytes.
const mostSmall = 16 << 10

// errPacket is a packet that cannot be decoded.
var errPacket = errors.New("a packet that cannot be decoded")

// reader reads a connection packet by packet, and returns only whole ones that can be decoded.
type reader struct {
	in      *bufio.Reader
	version byte         // of the protocol, from the client's first packet
	whole   bytes.Buffer // the rest of a packet
}

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

// next reads one packet.
func (r *reader) next() error {
	if r.whole.Reset(); r.whole.Cap() > mostSmall {
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
	if _, err := io.CopyN(&r.whole, r.in, int64(length)); err != nil { // it grows with the data, not with the announced length
		return err
	}
	version, err := decodes(r.version, first, r.whole.Bytes()[head:])
	if err != nil {
		r.whole.Reset()
		return err
	}
	r.version = version
	return nil
}

// decodes returns an error if the library cannot decode a packet, and the version of
// the protocol after it. The library panics on some packets, which here ends their
// connection and not the broker: decoding uses nothing shared.
func decodes(version, first byte, body []byte) (_ byte, err error) {
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
	body = bytes.Clone(body) // decoding retains parts of it
	decode, known := map[byte]func(*packets.Packet, []byte) error{
		packets.Connect: (*packets.Packet).ConnectDecode, packets.Publish: (*packets.Packet).PublishDecode,
		packets.Puback: (*packets.Packet).PubackDecode, packets.Pubrec: (*packets.Packet).PubrecDecode,
		packets.Pubrel: (*packets.Packet).PubrelDecode, packets.Pubcomp: (*packets.Packet).PubcompDecode,
		packets.Subscribe: (*packets.Packet).SubscribeDecode, packets.Unsubscribe: (*packets.Packet).UnsubscribeDecode,
		packets.Disconnect: (*packets.Packet).DisconnectDecode, packets.Pingreq: (*packets.Packet).PingreqDecode,
	}[pk.FixedHeader.Type]
	if !known { // clients may not send it; none authenticates by AUTH here
		return version, fmt.Errorf("%w: type %d", errPacket, pk.FixedHeader.Type)
	}
	if err := decode(&pk, body); err != nil {
		return version, fmt.Errorf("%w: %w", errPacket, err)
	}
	return pk.ProtocolVersion, nil
}
