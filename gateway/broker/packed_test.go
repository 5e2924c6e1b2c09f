package broker

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"testing"

	"perch/limit"
	"perch/must"
)

// reading returns a client that subscribes to the topics below "home". version is 4 for MQTT 3.1.1, or 5.
func reading(t *testing.T, b *broker, id string, version byte) *client {
	t.Helper()
	c := connect(t, b, version, id)
	var properties []byte
	if version == 5 {
		properties = []byte{0}
	}
	c.subscribe(t, properties, "home/#", 0)
	return c
}

// TestRetainedPayloadsAreRestored tests that present and later subscribers get each payload unchanged, whatever it begins
// with, and that a large payload is stored compressed.
func TestRetainedPayloadsAreRestored(t *testing.T) {
	b := started(t)
	publisher := connect(t, b, 4, perchClient+".publisher")
	there := reading(t, b, "there", 4)
	there.ping(t) // the broker sends retained messages after its SUBACK
	large := strings.Repeat(`{"platform":"sensor","state_topic":"perch/a0b1c2d3e4f5/state"},`, 200)
	for payload, kept := range map[string]bool{
		large: true, "small": true, large + "!": false, header: true, header + "small": false, header + large: true,
		string((&packing{}).pack([]byte("inner"))): true, plainHeader: false, compressedHeader + "none": true,
	} {
		kind := byte(0x30)
		if kept {
			kind = 0x31
		}
		publisher.send(t, kind, text("home/x"), []byte(payload))
		if got := there.got(t, 0x30); !bytes.HasSuffix(got, []byte("home/x"+payload)) || len(got) != 2+len("home/x"+payload) {
			t.Errorf("%.20q... is sent as %.40q...", payload, got)
		}
		if !kept {
			continue
		}
		if p, _ := b.server.Topics.Retained.Get("home/x"); len(p.Payload) > len(payload)/10+len(header)+40 {
			t.Errorf("%d bytes are kept in %d", len(payload), len(p.Payload))
		}
		for version, properties := range map[byte]int{4: 0, 5: 6} { // length of the properties: in MQTT 5, the message expiry interval
			later := reading(t, b, "later", version)
			if got := later.got(t, 0x31); !bytes.HasSuffix(got, []byte(payload)) || len(got) != 2+len("home/x"+payload)+properties {
				t.Errorf("%.20q... is sent later as %.40q...", payload, got)
			}
			later.Close()
		}
	}
}

// TestOtherClientsAreNotCompressed tests that messages of clients other than Perch are stored as they are, so that no
// subscriber gets more bytes than the broker stores.
func TestOtherClientsAreNotCompressed(t *testing.T) {
	b := started(t)
	hoarder := connect(t, b, 4, "hoarder")
	there := reading(t, b, "there", 4)
	there.ping(t) // the broker sends retained messages after its SUBACK
	for _, head := range []string{"", header, compressedHeader, plainHeader, string((&packing{}).pack(make([]byte, 1<<20)))} {
		large := head + strings.Repeat("x", 100<<10)
		hoarder.send(t, 0x31, text("home/x"), []byte(large))
		if got := there.got(t, 0x30); string(got) != string(text("home/x"))+large {
			t.Errorf("%.20q... is sent as %.40q...", large, got)
		}
		if p, _ := b.server.Topics.Retained.Get("home/x"); len(p.Payload) < len(large) {
			t.Errorf("%d bytes are kept in %d", len(large), len(p.Payload))
		}
	}
}

// TestLastWillIsBounded tests that a last will that looks like a compressed payload is sent with at most limit.List bytes.
func TestLastWillIsBounded(t *testing.T) {
	b := started(t)
	there := reading(t, b, "there", 4)
	there.ping(t)                                   // the broker sends retained messages after its SUBACK
	bomb := (&packing{}).pack(make([]byte, 32<<20)) // takes seconds, so it is made before the login
	will := append([]byte{byte(len(bomb) >> 8), byte(len(bomb))}, bomb...)
	conn, err := net.Dial("tcp", b.address())
	must.Succeed(t, err)
	dying := &client{conn, bufio.NewReader(conn)}
	dying.send(t, 0x10, text("MQTT"), []byte{4, 0xc6, 0, 60}, text("dying"), text("home/x"), will, text("perch"), text(password))
	dying.got(t, 0x20)
	conn.Close()
	if got := there.got(t, 0x30); len(got) > limit.List+len("home/x")+2 {
		t.Errorf("%d bytes of a will are sent as %d", len(bomb), len(got))
	}
}
