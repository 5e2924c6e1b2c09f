package udp

import "time"

// duration returns how much sound an Opus packet holds according to its header, and whether the sound is
// mono (RFC 6716 sections 3.1 and 3.2). The duration is 0 if the bytes are not an Opus packet. Of packets that
// were decrypted with a wrong key, about one in 70 is by chance mono and 60 ms long, like a robot's packets.
func duration(opus []byte) (d time.Duration, mono bool) {
	if len(opus) == 0 {
		return 0, false
	}
	toc := opus[0]
	frames := 1
	switch toc & 3 {
	case 1, 2:
		frames = 2
	case 3:
		if len(opus) < 2 || opus[1]&0x3f == 0 {
			return 0, false
		}
		frames = int(opus[1] & 0x3f)
	}
	var frame time.Duration
	switch config := toc >> 3; {
	case config < 12: // SILK
		frame = [...]time.Duration{10, 20, 40, 60}[config&3] * time.Millisecond
	case config < 16: // hybrid
		frame = [...]time.Duration{10, 20}[config&1] * time.Millisecond
	default: // CELT
		frame = 2500 * time.Microsecond << (config & 3)
	}
	return time.Duration(frames) * frame, toc&4 == 0
}
