package xiaozhi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Framing is the layout of audio in binary messages: 1, 2 or 3. The OTA reply sets it in
// the robot's flash; it holds for both directions and cannot change within a session.
// The robot sends it in the Protocol-Version header and in hello.
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

// Valid reports whether f is a known framing.
func (f Framing) Valid() bool { return f >= Framing1 && f <= Framing3 }

// Audio is one packet of sound.
type Audio struct {
	Timestamp uint32 // milliseconds, framing 2 and UDP only; of the downlink packet played when this was recorded
	Opus      []byte
	Lost      bool // over UDP: the packet was lost, and its sound is to be concealed
}

// ErrFrame is wrapped by Framing.Parse for a binary message that is not a frame.
var ErrFrame = errors.New("bad audio frame")

// Append appends a frame with the packet. A payload too long for the framing's size
// field is a programmer's error and gives a frame that Parse refuses.
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

// Parse parses a binary message. The packet shares memory with frame. The sizes must
// match exactly: the firmware trusts them, and reads past its buffer on a wrong one.
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
