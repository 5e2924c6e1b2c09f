package xiaozhi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of the UDP transport, in bytes.
const (
	KeySize        = 16 // AES-128
	NonceSize      = 16 // also the header of a datagram
	MostDatagram   = 1400
	datagramOpus   = 1
	flagsFromRobot = 0
	flagsToRobot   = 1
)

// ErrDatagram is wrapped by Datagrams.Parse for an invalid datagram.
var ErrDatagram = errors.New("bad datagram")

// Datagram is a packet of sound with its sequence number. The first of a talk is 1.
type Datagram struct {
	Sequence uint32
	Audio
}

// Datagrams reads and writes the datagrams of one direction of a talk:
//
//	u8 type=1 | u8 flags | u16 payload size | u32 ssrc | u32 timestamp | u32 sequence | payload
//
// All numbers are big-endian. The payload is encrypted with AES-128 in counter
// mode, and the header is the first counter block. Nothing authenticates a
// datagram: an attacker who does not know ssrc and sequence can only guess them. The
// robot copies type, flags and ssrc from the nonce, and reads only the type of the
// appliance's datagrams. So the flags tell the directions apart, and both never use
// the same counter block.
//
// Two datagrams of one direction share key stream if they have the same size
// and timestamp and neighbouring numbers. A robot without the appliance's echo
// cancellation leaves the timestamp at 0; the appliance counts it up.
//
// A value is not safe for concurrent use.
type Datagrams struct {
	block             cipher.Block
	ssrc              [4]byte
	flags             byte
	counter, keyBlock [aes.BlockSize]byte
}

// NewNonce returns the nonce of a talk for hello: a header without size, timestamp and
// sequence.
func NewNonce(ssrc [4]byte) (nonce [NonceSize]byte) {
	nonce[0] = datagramOpus
	copy(nonce[4:], ssrc[:])
	return nonce
}

// NewDatagrams returns a reader or writer of the datagrams of one direction. The key
// and the nonce are those of the appliance's hello.
func NewDatagrams(key [KeySize]byte, nonce [NonceSize]byte, toRobot bool) *Datagrams {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for another key size
	}
	d := &Datagrams{block: block, ssrc: [4]byte(nonce[4:8]), flags: flagsFromRobot}
	if toRobot {
		d.flags = flagsToRobot
	}
	return d
}

// Append appends a datagram.
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

// Parse decrypts a datagram in place: the packet shares memory with it.
func (d *Datagrams) Parse(datagram []byte) (Datagram, error) {
	if len(datagram) < NonceSize || len(datagram) > MostDatagram {
		return Datagram{}, fmt.Errorf("%w: %d bytes", ErrDatagram, len(datagram))
	}
	be := binary.BigEndian
	header, payload := datagram[:NonceSize], datagram[NonceSize:]
	if n := be.Uint16(header[2:]); header[0] != datagramOpus || header[1] != d.flags || int(n) != len(payload) {
		return Datagram{}, fmt.Errorf("%w: type %d, flags %d, %d bytes announced, %d there", ErrDatagram, header[0], header[1], n, len(payload))
	}
	if [4]byte(header[4:]) != d.ssrc {
		return Datagram{}, fmt.Errorf("%w: it belongs to another talk", ErrDatagram)
	}
	p := Datagram{Sequence: be.Uint32(header[12:]), Audio: Audio{Timestamp: be.Uint32(header[8:]), Opus: payload}}
	d.crypt(payload, payload, header)
	return p, nil
}

// crypt is counter mode (NIST SP 800-38A section 6.5), without the allocation
// of cipher.NewCTR for each datagram.
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

// ReplayWindow detects datagrams that are repeated or too old (RFC 6479). The zero
// value has accepted none.
type ReplayWindow struct {
	highest uint32
	taken   uint64 // bit i: highest-i
}

// windowSize is how many numbers back a late datagram is accepted: four seconds of the
// firmware's packets.
const windowSize = 64

// Accept reports whether the sequence number is new, and remembers it. 0 is invalid.
func (w *ReplayWindow) Accept(sequence uint32) bool {
	switch ahead := int64(sequence) - int64(w.highest); {
	case sequence == 0:
		return false
	case ahead > 0:
		if ahead >= windowSize {
			w.taken = 0
		} else {
			w.taken <<= uint(ahead)
		}
		w.highest, w.taken = sequence, w.taken|1
		return true
	case -ahead >= windowSize || w.taken&(1<<uint(-ahead)) != 0:
		return false
	default:
		w.taken |= 1 << uint(-ahead)
		return true
	}
}
