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

// leastPacked is the least size of a retained payload to compress, in bytes. Home
// Assistant's discovery has some ten thousand bytes for each robot that was ever connected.
const leastPacked = 1 << 10

// Heads of stored payloads. A published payload with such a head gets asItCame, so that packed
// always means a compressed payload of ours.
const (
	packedHead = "\x00perch\x00"
	packed     = packedHead + "~" // before a compressed payload
	asItCame   = packedHead + "="
)

// packing is a hook that compresses Perch's own large retained messages in memory, and sends
// them as they were published. Messages of other clients are not compressed: a program could
// otherwise store a thousand times the memory limit of this process for each subscriber.
type packing struct {
	mochi.HookBase
	prefix  string // of the client ids of Perch's connections
	writers sync.Pool
}

// ID is the hook's name within the broker.
func (*packing) ID() string { return "packing" }

// Provides reports which events the hook handles.
func (*packing) Provides(b byte) bool { return b == mochi.OnPublish || b == mochi.OnPacketEncode }

// OnPublish compresses a retained payload of Perch's. The topic is copied since it is a part of the
// whole packet, which would otherwise be kept in memory.
func (k *packing) OnPublish(c *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	switch {
	case pk.FixedHeader.Retain && len(pk.Payload) >= leastPacked && strings.HasPrefix(c.ID, k.prefix):
		pk.Payload, pk.TopicName = k.pack(pk.Payload), strings.Clone(pk.TopicName)
	case bytes.HasPrefix(pk.Payload, []byte(packedHead)):
		pk.Payload = append([]byte(asItCame), pk.Payload...)
	}
	return pk, nil
}

// OnPacketEncode restores the published payload. A last will does not pass OnPublish:
// with such a head it is sent without it, and not larger than any packet.
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
	w, reused := k.writers.Get().(*flate.Writer)
	if !reused {
		w, _ = flate.NewWriter(nil, flate.DefaultCompression) // fails only for an unknown level
	}
	defer k.writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(payload) // into memory
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
