package xiaozhi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Framing is the layout of audio in binary messages: 1, 2 or 3. The robot stores the number that the
// response to a check-in contains, and sends it in the Protocol-Version header and in hello. Both
// directions use the same framing, which cannot change within a session.
//
//	1  payload
//	2  u16 version=2 | u16 type | u32 reserved | u32 timestamp | u32 payload size | payload
//	3  u8 type | u8 reserved | u16 payload size | payload
//
// All numbers are big-endian; type 0 is Opus, 1 is JSON (never used).
type Framing int

// The framings of the firmware.
const (
	Framing1 Framing = 1
	Framing2 Framing = 2
	Framing3 Framing = 3
)

// Sizes of the headers of framings 2 and 3, in bytes.
const (
	header2 = 16
	header3 = 4
)

// Valid reports whether f is one of the firmware's framings.
func (f Framing) Valid() bool { return f >= Framing1 && f <= Framing3 }

// Audio is one packet of sound.
type Audio struct {
	// Timestamp is in milliseconds, with framing 2 and UDP only. A packet from a robot has the
	// timestamp of the packet that the robot played while it recorded this one.
	Timestamp uint32
	Opus      []byte
	Lost      bool // whether the packet was lost, over UDP; the decoder then conceals the loss
}

// ErrFrame is wrapped by the errors of Framing.Parse.
var ErrFrame = errors.New("bad audio frame")

// Append appends a frame with the packet. If the payload is too long for the framing's size field, which
// is a bug of the caller, Parse refuses the frame.
func (f Framing) Append(dst []byte, a Audio) []byte {
	switch f {
	case Framing2:
		dst = append(dst, 0, 2, 0, 0, 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint32(dst, a.Timestamp)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(a.Opus)))
	case Framing3:
		dst = append(dst, 0, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(a.Opus)))
	}
	return append(dst, a.Opus...)
}

// Parse parses a binary message. The packet shares memory with frame. The size field must match the
// length of the payload; the firmware does not check this, and would read beyond its buffer.
func (f Framing) Parse(frame []byte) (Audio, error) {
	switch f {
	case Framing2:
		if len(frame) < header2 {
			return Audio{}, fmt.Errorf("%w: %d bytes are too few for a version 2 header", ErrFrame, len(frame))
		}
		be := binary.BigEndian
		payload := frame[header2:]
		if v, t, n := be.Uint16(frame), be.Uint16(frame[2:]), be.Uint32(frame[12:]); v != 2 || t != 0 || n != uint32(len(payload)) {
			return Audio{}, fmt.Errorf("%w: version %d, type %d, size field is %d, payload has %d bytes", ErrFrame, v, t, n, len(payload))
		}
		return Audio{Timestamp: be.Uint32(frame[8:]), Opus: payload}, nil
	case Framing3:
		if len(frame) < header3 {
			return Audio{}, fmt.Errorf("%w: %d bytes are too few for a version 3 header", ErrFrame, len(frame))
		}
		payload := frame[header3:]
		if t, n := frame[0], binary.BigEndian.Uint16(frame[2:]); t != 0 || int(n) != len(payload) {
			return Audio{}, fmt.Errorf("%w: type %d, size field is %d, payload has %d bytes", ErrFrame, t, n, len(payload))
		}
		return Audio{Opus: payload}, nil
	}
	return Audio{Opus: frame}, nil
}
