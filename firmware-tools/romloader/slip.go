package romloader

// SLIP (RFC 1055), as the loader uses it: a packet is between two bytes of 0xC0,
// and within it 0xC0 and 0xDB are written as two bytes.
const (
	slipEnd     = 0xC0
	slipEscape  = 0xDB
	slipEnded   = 0xDC // behind an escape: 0xC0
	slipEscaped = 0xDD // behind an escape: 0xDB
)

// mostFrame bounds a packet from a robot. The longest answer of a ROM has 80
// bytes; what is longer is the boot log, or noise.
const mostFrame = 2048

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

// unframer finds packets in the received bytes. Every 0xC0 ends a packet, so that
// noise before a packet does not damage it.
type unframer struct {
	packet  []byte
	escaped bool
	broken  bool // not a packet: too long, or with an unknown escape
}

// next takes a byte, and returns the packet that it ends, valid until the next call.
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
