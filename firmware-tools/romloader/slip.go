package romloader

// SLIP (RFC 1055), as the loader speaks it: a packet stands between two bytes
// of 0xC0, and within it 0xC0 and 0xDB are written as two bytes.
const (
	slipEnd     = 0xC0
	slipEscape  = 0xDB
	slipEnded   = 0xDC // behind an escape: 0xC0
	slipEscaped = 0xDD // behind an escape: 0xDB
)

// mostFrame bounds a packet from a robot. The longest answer of a ROM has 80
// bytes; what is longer is the boot log, or noise.
const mostFrame = 2048

// appendFrame adds a packet to what is to be sent.
func appendFrame(to, packet []byte) []byte {
	to = append(to, slipEnd)
	for _, c := range packet {
		switch c {
		case slipEnd:
			to = append(to, slipEscape, slipEnded)
		case slipEscape:
			to = append(to, slipEscape, slipEscaped)
		default:
			to = append(to, c)
		}
	}
	return append(to, slipEnd)
}

// unframer finds packets in what is received. Every 0xC0 ends what came before
// it, so that noise in front of a packet costs nothing but itself.
type unframer struct {
	packet  []byte
	escaped bool
	broken  bool // no packet: too long, or an escape that there is not
}

// next takes a byte. It returns a packet where that byte has ended one; the
// packet is good until the next call.
func (u *unframer) next(c byte) (packet []byte, ended bool) {
	switch {
	case c == slipEnd:
		packet, ended = u.packet, len(u.packet) > 0 && !u.broken && !u.escaped
		u.packet, u.escaped, u.broken = u.packet[:0], false, false
		return packet, ended
	case u.escaped && c == slipEnded:
		c = slipEnd
	case u.escaped && c == slipEscaped:
		c = slipEscape
	case u.escaped:
		u.broken = true
	case c == slipEscape:
		u.escaped = true
		return nil, false
	}
	u.escaped = false
	if len(u.packet) == mostFrame {
		u.broken = true
	}
	if !u.broken {
		u.packet = append(u.packet, c)
	}
	return nil, false
}
