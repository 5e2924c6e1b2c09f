package broker

import (
	"bytes"
	"strings"
	"testing"
)

// TestWhatIsKeptIsSentAsItWasPublished, whatever it begins with, to who is there and to who
// comes later; a large one takes little memory.
func TestWhatIsKeptIsSentAsItWasPublished(t *testing.T) {
	b := started(t)
	publisher, err := login(b.address(), 4, "publisher")
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	subscribe := func(id string, version byte) *client {
		c, err := login(b.address(), version, id)
		if err != nil {
			t.Fatal(err)
		}
		properties := []byte{}
		if version == 5 {
			properties = []byte{0}
		}
		c.send(t, 0x82, []byte{0, 1}, properties, text("home/#"), []byte{0})
		c.got(t, 0x90)
		return c
	}
	there := subscribe("there", 4)
	defer there.Close()
	large := strings.Repeat(`{"platform":"sensor","state_topic":"perch/a0b1c2d3e4f5/state"},`, 200)
	for payload, kept := range map[string]bool{
		large: true, "small": true, large + "!": false, packedHead: true, packedHead + "small": false, packedHead + large: true,
		string((&packing{}).pack([]byte("inner"))): true,
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
		if p, _ := b.server.Topics.Retained.Get("home/x"); len(p.Payload) > len(payload)/10+len(packedHead)+40 {
			t.Errorf("%d bytes are kept in %d", len(payload), len(p.Payload))
		}
		for version, properties := range map[byte]int{4: 0, 5: 6} { // one, of the time that is left
			later := subscribe("later", version)
			if got := later.got(t, 0x31); !bytes.HasSuffix(got, []byte(payload)) || len(got) != 2+len("home/x"+payload)+properties {
				t.Errorf("%.20q... is sent later as %.40q...", payload, got)
			}
			later.Close()
		}
	}
}
