package connection

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/limit"
)

// framed returns an MQTT packet with the given first byte and body.
func framed(kind byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(body))), body...)
}

// readFrom is a connection that reads from a reader.
type readFrom struct {
	net.Conn
	io.Reader
}

func (r readFrom) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// TestPacketsOfABrokerAreBounded tests that the client library gets only the beginning of a message that is too long,
// and gets the packets after it unchanged.
func TestPacketsOfABrokerAreBounded(t *testing.T) {
	long := append([]byte{0, 1, 't', 0, 9}, bytes.Repeat([]byte("x"), 3*limit.List)...)
	sent := bytes.Join([][]byte{framed(0x32, long), framed(0xd0, nil), framed(0x30, []byte{0, 1, 't', 'y'}), framed(0x32, long)}, nil)
	for name, from := range map[string]io.Reader{"at once": bytes.NewReader(sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(sent))} {
		b := newBoundedConn(readFrom{Reader: from})
		var sizes []int
		for {
			p, err := packets.ReadPacket(b)
			if err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			size := 0
			if m, is := p.(*packets.PublishPacket); is {
				if size = len(m.Payload); size > 1 && m.MessageID != 9 {
					t.Errorf("%s: it is number %d, and cannot be confirmed", name, m.MessageID)
				}
			}
			sizes = append(sizes, size)
		}
		if len(sizes) != 4 || sizes[0] != limit.List-5 || sizes[2] != 1 || sizes[3] != sizes[0] || sizes[0] <= limit.Body {
			t.Errorf("%s: %v", name, sizes)
		}
	}
	for name, wrong := range map[string][]byte{
		"an answer of 200 MB": {0x90, 0xff, 0xff, 0xff, 0x5f}, "five bytes": {0x30, 0xff, 0xff, 0xff, 0xff, 0x01},
		"no end": bytes.Repeat([]byte{0xff}, 20),
	} {
		if _, err := packets.ReadPacket(newBoundedConn(readFrom{Reader: bytes.NewReader(wrong)})); err == nil || !strings.Contains(err.Error(), "MQTT") &&
			!strings.Contains(err.Error(), "mqtt") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
