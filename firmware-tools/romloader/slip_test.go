package romloader

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlip(t *testing.T) {
	for in, want := range map[string][]string{
		"\xc0abc\xc0":                       {"abc"},
		"\xc0a\xdb\xdcb\xdb\xddc\xc0":       {"a\xc0b\xdbc"},
		"noise\xc0\xc0abc\xc0\xc0def\xc0":   {"noise", "abc", "def"},
		"\xc0a\xdbb\xc0\xc0def\xc0":         {"def"}, // an escape that there is not
		"\xc0a\xdb\xc0\xc0def\xc0":          {"def"},
		"\xc0" + string(make([]byte, 2049)): nil,
	} {
		var got []string
		u := unframer{}
		for _, c := range []byte(in + "\xc0") {
			if p, ended := u.next(c); ended {
				got = append(got, string(p))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// FuzzSlip: a packet is found after any bytes.
func FuzzSlip(f *testing.F) {
	f.Add([]byte("boot:0x0 waiting for download\r\n"), []byte("\x01\x08\x04\x00\x07\x07\x12\x20\x00\x00\x00\x00"))
	f.Add([]byte("\xc0\xdb"), []byte{0xC0, 0xDB, 0xDC, 0xDD})
	f.Fuzz(func(t *testing.T, noise, packet []byte) {
		u := unframer{}
		var last []byte
		for _, c := range appendFrame(noise, packet) {
			if p, ended := u.next(c); ended {
				last = bytes.Clone(p)
				if r, is := parseResponse(p); is {
					_, _ = r.payload(0)
					_, _ = r.payload(64)
				}
			}
			if len(u.packet) > mostFrame {
				t.Fatal("it keeps too much")
			}
		}
		if len(packet) > 0 && len(packet) <= mostFrame && !bytes.Equal(last, packet) {
			t.Errorf("%x: %x", packet, last)
		}
	})
}

func TestPayload(t *testing.T) {
	for _, c := range []struct {
		data string
		size int
		want string
		err  string
	}{
		{"\x00\x00\x00\x00", 0, "", ""},
		{"\x00\x00", 0, "", ""},
		{"abcd\x00\x00\x00\x00", 4, "abcd", ""},
		{"\x01\x06\x00\x00", 4, "", "refused to write: it failed (0x06)"},
		{"\x01\x08", 0, "", "something else than was written"},
		{"\x01\x99\x00\x00", 0, "", "not known (0x99)"},
		{"abc\x00\x00\x00\x00", 4, "", errDamaged.Error()},
		{"\x00\x00\x00\x00", 4, "", errDamaged.Error()},
	} {
		got, err := response{op: flashData, data: []byte(c.data)}.payload(c.size)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !bytes.Contains([]byte(err.Error()), []byte(c.err)) {
			t.Errorf("%q: %q %v", c.data, got, err)
		}
	}
}

// late is a line whose reads may end after the deadline, in the middle of a
// packet.
type late struct {
	Line
	reads [][]byte
}

func (l *late) SetReadTimeout(time.Duration) error { return nil }

func (l *late) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	n := copy(p, l.reads[0])
	l.reads = l.reads[1:]
	return n, nil
}

// TestLate: received data is parsed, also after the deadline.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		packet := appendFrame(nil, []byte{1, 0x0A, 4, 0, 9, 0, 0, 0, 0, 0, 0, 0})
		l := &Loader{line: &late{reads: [][]byte{packet[:1], packet[1:7], packet[7:]}}}
		if _, err := l.receive(t.Context(), time.Now().Add(1500*time.Millisecond)); err != errSilent {
			t.Fatal(err)
		}
		if r, err := l.receive(t.Context(), time.Now().Add(2*time.Second)); err != nil || r.op != readReg || r.value != 9 {
			t.Error(r, err)
		}
	})
}
