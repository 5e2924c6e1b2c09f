package broker

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"perch/limit"
)

// leastPacked are the bytes from which a retained payload is kept compressed. Home
// Assistant's discovery has some ten thousand for each robot that was ever there.
const leastPacked = 1 << 10

// Heads of payloads that are kept otherwise than they came. One that comes with such a head
// gets another, so that what has it is always one of ours.
const (
	packedHead = "\x00perch\x00"
	packed     = packedHead + "~" // before a compressed payload
	asItCame   = packedHead + "="
)

// packing is a hook that keeps Perch's own large retained messages compressed in memory, and
// sends them as they were published. Others' are kept as they came: a program could keep a
// thousand times as much for each subscriber as the memory of this process is bounded to.
type packing struct {
	mochi.HookBase
	prefix  string // how the client ids of Perch's own connections begin
	writers sync.Pool
}

// ID is the hook's name within the broker.
func (*packing) ID() string { return "packing" }

// Provides are the moments that the hook is called at.
func (*packing) Provides(b byte) bool { return b == mochi.OnPublish || b == mochi.OnPacketEncode }

// OnPublish compresses a payload of Perch's that is kept. The library's topic is a part of the
// packet as it came, which would be kept too.
func (k *packing) OnPublish(c *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	switch {
	case pk.FixedHeader.Retain && len(pk.Payload) >= leastPacked && strings.HasPrefix(c.ID, k.prefix):
		pk.Payload, pk.TopicName = k.pack(pk.Payload), strings.Clone(pk.TopicName)
	case bytes.HasPrefix(pk.Payload, []byte(packedHead)):
		pk.Payload = append([]byte(asItCame), pk.Payload...)
	}
	return pk, nil
}

// OnPacketEncode has a client sent what was published. A last will has passed OnPublish by:
// one with such a head is sent without it, and not larger than any packet.
func (*packing) OnPacketEncode(_ *mochi.Client, pk packets.Packet) packets.Packet {
	if payload, is := bytes.CutPrefix(pk.Payload, []byte(asItCame)); is {
		pk.Payload = payload
	} else if compressed, is := bytes.CutPrefix(pk.Payload, []byte(packed)); is {
		if payload, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(compressed)), limit.List)); err == nil {
			pk.Payload = payload
		}
	}
	return pk
}

func (k *packing) pack(payload []byte) []byte {
	out := bytes.NewBufferString(packed)
	w, there := k.writers.Get().(*flate.Writer)
	if !there {
		w, _ = flate.NewWriter(nil, flate.DefaultCompression) // a level that there is
	}
	defer k.writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(payload) // into memory
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
