package broker

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// leastPacked are the bytes from which a retained payload is kept compressed. Home
// Assistant's discovery has some ten thousand for each robot that was ever there.
const leastPacked = 1 << 10

// packedHead begins a payload that is compressed. A payload that comes with it is
// compressed too, so that what has it is always one of ours.
const packedHead = "\x00perch\x00"

// packing is a hook that keeps large retained messages compressed in memory, and
// sends them as they were published.
type packing struct {
	mochi.HookBase
	writers sync.Pool
}

// ID is the hook's name within the broker.
func (*packing) ID() string { return "packing" }

// Provides are the moments that the hook is called at.
func (*packing) Provides(b byte) bool { return b == mochi.OnPublish || b == mochi.OnPacketEncode }

// OnPublish compresses a payload that is kept. The library's topic is a part of the packet
// as it came, which would be kept too.
func (k *packing) OnPublish(_ *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Retain && len(pk.Payload) >= leastPacked || bytes.HasPrefix(pk.Payload, []byte(packedHead)) {
		pk.Payload, pk.TopicName = k.pack(pk.Payload), strings.Clone(pk.TopicName)
	}
	return pk, nil
}

// OnPacketEncode has a client sent what was published.
func (*packing) OnPacketEncode(_ *mochi.Client, pk packets.Packet) packets.Packet {
	if packed, is := bytes.CutPrefix(pk.Payload, []byte(packedHead)); is {
		// A last will is not compressed: one that begins like this is sent as it is.
		if payload, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), mostPacket)); err == nil {
			pk.Payload = payload
		}
	}
	return pk
}

func (k *packing) pack(payload []byte) []byte {
	packed := bytes.NewBufferString(packedHead)
	w, there := k.writers.Get().(*flate.Writer)
	if !there {
		w, _ = flate.NewWriter(nil, flate.DefaultCompression) // a level that there is
	}
	defer k.writers.Put(w)
	w.Reset(packed)
	_, _ = w.Write(payload) // into memory
	_ = w.Close()
	return bytes.Clone(packed.Bytes())
}
