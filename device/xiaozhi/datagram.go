package xiaozhi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of the UDP transport in bytes, and values of header fields.
const (
	KeySize        = 16   // size of an AES-128 key
	NonceSize      = 16   // also the size of a datagram's header
	MaxDatagram    = 1400 // maximum size of a datagram
	datagramOpus   = 1    // type of a datagram with Opus
	flagsFromRobot = 0    // flags of a robot's datagrams
	flagsToRobot   = 1    // flags of the appliance's datagrams
)

// ErrDatagram is wrapped by the errors of Datagrams.Parse.
var ErrDatagram = errors.New("bad datagram")

// Datagram is a packet of sound with its sequence number, which starts at 1.
type Datagram struct {
	Sequence uint32
	Audio
}

// Datagrams encodes and decodes the datagrams of one direction of a conversation:
//
//	u8 type=1 | u8 flags | u16 payload size | u32 ssrc | u32 timestamp | u32 sequence | payload
//
// All numbers are big-endian. The payload is encrypted with AES-128 in counter mode, with the header
// as the first counter block. Datagrams are not authenticated: an attacker only has to guess ssrc and
// sequence. The robot copies type, flags and ssrc from the nonce into its headers, and checks only the
// type in the appliance's headers. The appliance can therefore send other flags, so that the two
// directions never use the same counter block.
//
// The cipher counts up from the sequence number, so two datagrams of one direction with the same size and
// timestamp, and sequence numbers close to each other, share a part of the key stream: a weakness of the
// protocol. The appliance's datagrams avoid it by timestamps that increase. So do the datagrams of a robot
// that leaves echo cancellation to the appliance; those of other robots have the timestamp 0.
//
// Datagrams is not safe for concurrent use.
type Datagrams struct {
	block             cipher.Block
	ssrc              [4]byte
	flags             byte
	counter, keyBlock [aes.BlockSize]byte // buffers of crypt
}

// NewNonce returns the nonce for hello: the header of a datagram whose size, timestamp and sequence
// are 0.
func NewNonce(ssrc [4]byte) (nonce [NonceSize]byte) {
	nonce[0] = datagramOpus
	copy(nonce[4:], ssrc[:])
	return nonce
}

// NewDatagrams returns the Datagrams of one direction. key and nonce are from the appliance's hello.
func NewDatagrams(key [KeySize]byte, nonce [NonceSize]byte, toRobot bool) *Datagrams {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // cannot happen with KeySize
	}
	d := &Datagrams{block: block, ssrc: [4]byte(nonce[4:8]), flags: flagsFromRobot}
	if toRobot {
		d.flags = flagsToRobot
	}
	return d
}

// Append appends an encrypted datagram.
func (d *Datagrams) Append(dst []byte, p Datagram) []byte {
	be := binary.BigEndian
	dst = append(dst, datagramOpus, d.flags)
	dst = be.AppendUint16(dst, uint16(len(p.Opus)))
	dst = append(dst, d.ssrc[:]...)
	dst = be.AppendUint32(dst, p.Timestamp)
	dst = be.AppendUint32(dst, p.Sequence)
	header := dst[len(dst)-NonceSize:]
	payload := len(dst)
	dst = append(dst, p.Opus...)
	d.crypt(dst[payload:], p.Opus, header)
	return dst
}

// Parse parses a datagram and decrypts it in place. The result shares memory with the argument.
func (d *Datagrams) Parse(datagram []byte) (Datagram, error) {
	if len(datagram) < NonceSize || len(datagram) > MaxDatagram {
		return Datagram{}, fmt.Errorf("%w: %d bytes", ErrDatagram, len(datagram))
	}
	be := binary.BigEndian
	header, payload := datagram[:NonceSize], datagram[NonceSize:]
	if n := be.Uint16(header[2:]); header[0] != datagramOpus || header[1] != d.flags || int(n) != len(payload) {
		return Datagram{}, fmt.Errorf("%w: type %d, flags %d, size field is %d, payload has %d bytes", ErrDatagram, header[0], header[1], n, len(payload))
	}
	if [4]byte(header[4:]) != d.ssrc {
		return Datagram{}, fmt.Errorf("%w: it belongs to another session", ErrDatagram)
	}
	p := Datagram{Sequence: be.Uint32(header[12:]), Audio: Audio{Timestamp: be.Uint32(header[8:]), Opus: payload}}
	d.crypt(payload, payload, header)
	return p, nil
}

// crypt encrypts or decrypts src in counter mode (NIST SP 800-38A section 6.5). Unlike cipher.NewCTR
// it does not allocate for each datagram.
func (d *Datagrams) crypt(dst, src, header []byte) {
	copy(d.counter[:], header)
	for len(src) > 0 {
		d.block.Encrypt(d.keyBlock[:], d.counter[:])
		n := subtle.XORBytes(dst, src, d.keyBlock[:])
		dst, src = dst[n:], src[n:]
		for i := len(d.counter) - 1; i >= 0; i-- {
			if d.counter[i]++; d.counter[i] != 0 {
				break
			}
		}
	}
}

// ReplayWindow detects datagrams that are repeated or too old (RFC 6479). The zero value is ready for
// use.
type ReplayWindow struct {
	highest  uint32 // highest accepted sequence number
	accepted uint64 // bit i is set if highest-i was accepted
}

// windowSize is the number of sequence numbers, counted back from the highest accepted one, that may still
// be accepted. It corresponds to about four seconds of the firmware's packets.
const windowSize = 64

// Accept reports whether a sequence number is new and not too old, and records it. 0 is invalid.
func (w *ReplayWindow) Accept(sequence uint32) bool {
	switch ahead := int64(sequence) - int64(w.highest); {
	case sequence == 0:
		return false
	case ahead > 0:
		if ahead >= windowSize {
			w.accepted = 0
		} else {
			w.accepted <<= uint(ahead)
		}
		w.highest, w.accepted = sequence, w.accepted|1
		return true
	case -ahead >= windowSize || w.accepted&(1<<uint(-ahead)) != 0:
		return false
	default:
		w.accepted |= 1 << uint(-ahead)
		return true
	}
}
