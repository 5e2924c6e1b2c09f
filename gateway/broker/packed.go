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

// minPacked is the minimum size of a retained payload that is compressed, in bytes. The discovery of a robot for Home Assistant
// has about ten thousand bytes.
const minPacked = 1 << 10

// Headers of stored payloads.
const (
	header           = "\x00perch\x00"
	compressedHeader = header + "~" // precedes a compressed payload
	plainHeader      = header + "=" // precedes an uncompressed payload that itself begins with header
)

// packing is a hook that stores Perch's large retained messages compressed, and decompresses them when they are sent. It does
// not compress the messages of other clients: a program could otherwise store a message that needs a thousand times its size
// in memory for each subscriber.
type packing struct {
	mochi.HookBase
	prefix  string    // prefix of the client IDs of Perch's connections
	writers sync.Pool // holds values of type *flate.Writer
}

// ID returns the name of the hook.
func (*packing) ID() string { return "packing" }

// Provides reports whether the hook handles an event.
func (*packing) Provides(b byte) bool { return b == mochi.OnPublish || b == mochi.OnPacketEncode }

// OnPublish compresses a large retained payload that Perch has published. It also copies the topic, which refers to the
// memory of the whole packet, so that this memory can be freed. OnPublish prepends plainHeader to any other payload that
// begins with header.
func (k *packing) OnPublish(c *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	switch {
	case pk.FixedHeader.Retain && len(pk.Payload) >= minPacked && strings.HasPrefix(c.ID, k.prefix):
		pk.Payload, pk.TopicName = k.pack(pk.Payload), strings.Clone(pk.TopicName)
	case bytes.HasPrefix(pk.Payload, []byte(header)):
		pk.Payload = append([]byte(plainHeader), pk.Payload...)
	}
	return pk, nil
}

// OnPacketEncode restores the published payload. OnPublish is not called for a last will, so the payload of a last will that
// begins with one of the headers is changed; its size remains limited.
func (*packing) OnPacketEncode(_ *mochi.Client, pk packets.Packet) packets.Packet {
	if payload, found := bytes.CutPrefix(pk.Payload, []byte(plainHeader)); found {
		pk.Payload = payload
	} else if compressed, found := bytes.CutPrefix(pk.Payload, []byte(compressedHeader)); found {
		if payload, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(compressed)), limit.List)); err == nil {
			pk.Payload = payload
		}
	}
	return pk
}

// pack returns compressedHeader and the compressed payload.
func (k *packing) pack(payload []byte) []byte {
	out := bytes.NewBufferString(compressedHeader)
	w, reused := k.writers.Get().(*flate.Writer)
	if !reused {
		w, _ = flate.NewWriter(nil, flate.DefaultCompression) // fails only for an unknown level
	}
	defer k.writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(payload) // writing to memory cannot fail
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
