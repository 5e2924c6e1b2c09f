package xiaozhi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Framing is how audio is laid into binary messages: 1, 2 or 3. It is set in
// the robot's flash through the OTA reply, holds for both directions, and
// cannot be changed within a session. The robot names it in the
// Protocol-Version header and in hello.
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

const (
	header2 = 16
	header3 = 4
)

// Valid reports whether f is one of the three.
func (f Framing) Valid() bool { return f >= Framing1 && f <= Framing3 }

// Audio is one packet of sound.
type Audio struct {
	Timestamp uint32 // milliseconds, framing 2 and UDP only; of the downlink packet played when this was recorded
	Opus      []byte
	Lost      bool // over UDP: the packet has not arrived, and its sound is to be concealed
}

// ErrFrame is wrapped by Parse for a binary message that is not a frame.
var ErrFrame = errors.New("bad audio frame")

// Append appends a frame that holds the packet. A payload too long for the
// framing's size field is a programmer's error and gives a frame that Parse
// refuses.
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

// Parse reads a binary message. The packet shares memory with frame. The
// sizes must match to the byte: the firmware itself trusts them, and a wrong
// one there reads past a buffer.
func (f Framing) Parse(frame []byte) (Audio, error) {
	switch f {
	case Framing2:
		if len(frame) < header2 {
			return Audio{}, fmt.Errorf("%w: %d bytes are no version 2 header", ErrFrame, len(frame))
		}
		be := binary.BigEndian
		payload := frame[header2:]
		if v, t, n := be.Uint16(frame), be.Uint16(frame[2:]), be.Uint32(frame[12:]); v != 2 || t != 0 || n != uint32(len(payload)) {
			return Audio{}, fmt.Errorf("%w: version %d, type %d, %d bytes announced, %d there", ErrFrame, v, t, n, len(payload))
		}
		return Audio{Timestamp: be.Uint32(frame[8:]), Opus: payload}, nil
	case Framing3:
		if len(frame) < header3 {
			return Audio{}, fmt.Errorf("%w: %d bytes are no version 3 header", ErrFrame, len(frame))
		}
		payload := frame[header3:]
		if t, n := frame[0], binary.BigEndian.Uint16(frame[2:]); t != 0 || int(n) != len(payload) {
			return Audio{}, fmt.Errorf("%w: type %d, %d bytes announced, %d there", ErrFrame, t, n, len(payload))
		}
		return Audio{Opus: payload}, nil
	}
	return Audio{Opus: frame}, nil
}
