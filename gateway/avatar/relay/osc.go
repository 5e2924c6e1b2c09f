package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// oscValue is an argument of an Open Sound Control message: its type tag and its bytes
// (https://opensoundcontrol.stanford.edu/spec-1_0.html).
type oscValue struct {
	tag  byte
	data string
}

func oscInt(n int32) oscValue {
	return oscValue{'i', string(binary.BigEndian.AppendUint32(nil, uint32(n)))}
}
func oscText(text string) oscValue { return oscValue{'s', oscString(text)} }

func oscFloat(x float64) oscValue {
	return oscValue{'f', string(binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(x))))}
}

func oscBool(yes bool) oscValue {
	if yes {
		return oscValue{'T', ""}
	}
	return oscValue{'F', ""}
}

// oscString pads text with one to four zero bytes. A zero byte within it is dropped.
func oscString(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return text + "\x00\x00\x00\x00"[:4-len(text)%4]
}

// oscMessage encodes a message.
func oscMessage(address string, values ...oscValue) string {
	tags, data := ",", ""
	for _, v := range values {
		tags += string(v.tag)
		data += v.data
	}
	return oscString(address) + oscString(tags) + data
}

// oscBundle encodes messages that take effect together and immediately.
func oscBundle(messages ...string) string {
	bundle := []byte("#bundle\x00\x00\x00\x00\x00\x00\x00\x00\x01") // the time tag 1 is now
	for _, m := range messages {
		bundle = binary.BigEndian.AppendUint32(bundle, uint32(len(m)))
		bundle = append(bundle, m...)
	}
	return string(bundle)
}

// datagrams is a UDP connection to a program, which confirms nothing.
type datagrams struct {
	nopLink
	conn    net.Conn
	address string
}

// refusedWithin is the time for a datagram to reach a machine on the same network and for its
// refusal (ICMP port unreachable) to come back.
const refusedWithin = 100 * time.Millisecond

// openDatagrams connects to a program and sends it first, which must be harmless. That a
// program is absent is known only if its system refuses the datagram.
func openDatagrams(ctx context.Context, address, first string) (*datagrams, error) {
	conn, err := dialHost(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	d := &datagrams{conn: conn, address: address}
	if err = d.send(first); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(refusedWithin))
		_, err = conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return d, nil
		}
	}
	d.close()
	return nil, unreachable(address, err)
}

// send sends datagrams. The error it returns may belong to an earlier datagram.
func (d *datagrams) send(packets ...string) error {
	for _, p := range packets {
		_ = d.conn.SetWriteDeadline(time.Now().Add(callWithin))
		if _, err := d.conn.Write([]byte(p)); err != nil {
			if errors.Is(err, syscall.ECONNREFUSED) {
				return unreachable(d.address, err)
			}
			return err
		}
	}
	return nil
}

func (d *datagrams) close() { _ = d.conn.Close() }

// warning says that delivery cannot be confirmed.
func (d *datagrams) warning() error {
	return errors.New("datagrams are sent, and nothing answers them; look at the avatar to see that they arrive")
}

// changed returns, in order, the keys whose values differ or were removed.
func changed(is, was map[string]oscValue) (keys []string) {
	for key, v := range is {
		if before, sent := was[key]; !sent || before != v {
			keys = append(keys, key)
		}
	}
	for key := range was {
		if _, still := is[key]; !still {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
