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

// oscInt, oscText, oscFloat and oscBool convert a Go value to an argument.
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

// oscString encodes a string: it removes zero bytes, and appends one to four zero bytes to make the
// length a multiple of four.
func oscString(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return text + "\x00\x00\x00\x00"[:4-len(text)%4]
}

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
	bundle := []byte("#bundle\x00\x00\x00\x00\x00\x00\x00\x00\x01") // the time tag 1 means immediately
	for _, m := range messages {
		bundle = binary.BigEndian.AppendUint32(bundle, uint32(len(m)))
		bundle = append(bundle, m...)
	}
	return string(bundle)
}

// datagrams is a UDP connection to a program that sends no responses. It is embedded by links that
// use UDP.
type datagrams struct {
	nopLink
	conn    net.Conn
	address string
}

// refusalTimeout is how long to wait for the refusal of a datagram (ICMP port unreachable) by a
// machine on the same network.
const refusalTimeout = 100 * time.Millisecond

// openDatagrams connects to a program, and sends it a first datagram, which must have no effect. It
// returns an error if the program's machine refuses that datagram. Some machines do not refuse a
// datagram although no program listens.
func openDatagrams(ctx context.Context, address, first string) (*datagrams, error) {
	conn, err := dialHost(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	d := &datagrams{conn: conn, address: address}
	if err = d.send(first); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(refusalTimeout))
		_, err = conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return d, nil
		}
	}
	d.close()
	return nil, unreachable(address, err)
}

// send sends datagrams. The error may be about an earlier datagram.
func (d *datagrams) send(packets ...string) error {
	for _, p := range packets {
		_ = d.conn.SetWriteDeadline(time.Now().Add(callTimeout))
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

// warning returns a note that delivery is uncertain.
func (d *datagrams) warning() error {
	return errors.New("messages are sent by UDP, which has no responses; look at the avatar to see whether they arrive")
}

// changedKeys returns the keys whose values were added, changed or removed, sorted.
func changedKeys(current, previous map[string]oscValue) (keys []string) {
	for key, v := range current {
		if old, ok := previous[key]; !ok || old != v {
			keys = append(keys, key)
		}
	}
	for key := range previous {
		if _, ok := current[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
