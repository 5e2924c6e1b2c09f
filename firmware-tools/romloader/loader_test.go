package romloader_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/firmware-tools/romloader"
	"perch/firmware-tools/simrobot"
	"perch/ota/espimage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a line that is silent after a timeout.
type pipe struct {
	net.Conn
	timeout time.Duration
}

func (p *pipe) SetReadTimeout(d time.Duration) error { p.timeout = d; return nil }

func (p *pipe) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(p.timeout))
	n, err := p.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

// line returns a robot, and a line with the robot at its other end.
func line(t *testing.T, o simrobot.ROMOptions) (*pipe, *simrobot.ROM) {
	t.Helper()
	if o.Flash == nil {
		o.Flash = bytes.Repeat([]byte{0xFF}, 1<<20)
	}
	ours, its := net.Pipe()
	rom := simrobot.NewROM(o)
	served := make(chan struct{})
	go func() { defer close(served); _ = rom.Serve(its) }()
	t.Cleanup(func() { ours.Close(); its.Close(); <-served })
	return &pipe{Conn: ours}, rom
}

// wired returns a robot at the other end of a line, and the error of Connect.
func wired(t *testing.T, o simrobot.ROMOptions) (*romloader.Loader, *simrobot.ROM, error) {
	t.Helper()
	ours, rom := line(t, o)
	l, err := romloader.Connect(t.Context(), ours, rom, o.USB)
	return l, rom, err
}

// attached returns a robot whose flash can be written.
func attached(t *testing.T, o simrobot.ROMOptions) (*romloader.Loader, *simrobot.ROM) {
	t.Helper()
	l, rom, err := wired(t, o)
	if err == nil {
		err = l.Attach(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, rom
}

func noise(size int) []byte {
	out := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range out {
		out[n] = byte(random.Uint32())
	}
	return out
}

// TestChips: each chip is reset into its loader, identified, read and written, and
// starts what was written.
func TestChips(t *testing.T) {
	for _, c := range []struct {
		chip     espimage.Chip
		usb      bool
		efuse    map[uint32]uint32
		revision int
		loader   int64
	}{
		{0, false, map[uint32]uint32{0x3FF5A00C: 1 << 15, 0x3FF5A014: 1<<20 | 1<<24, 0x3FF6607C: 1 << 31}, 301, 0x1000},
		{2, false, map[uint32]uint32{0x3F41A050: 1 << 18, 0x3F41A054: 2 << 4}, 102, 0x1000},
		{5, true, map[uint32]uint32{0x60008850: 4 << 18}, 4, 0},
		{9, true, map[uint32]uint32{0x60007050: 2 << 18}, 2, 0},
		{9, false, map[uint32]uint32{0x60007050: 1 << 24, 0x60007058: 1 << 24, 0x6000706C: 1}, 0, 0}, // of the first ones
		{13, false, map[uint32]uint32{0x600B0850: 1<<22 | 3<<18}, 103, 0},
		{18, true, map[uint32]uint32{0x5012D04C: 1<<4 | 1}, 101, 0x2000},
	} {
		synctest.Test(t, func(t *testing.T) {
			flash := noise(1 << 20)
			l, rom, err := wired(t, simrobot.ROMOptions{Chip: c.chip, USB: c.usb, EFuse: c.efuse, Flash: flash, Erase: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(c.chip, err)
			}
			err = l.Attach(t.Context())
			if want := (romloader.Robot{Chip: c.chip, Revision: c.revision, BootLoader: c.loader, Size: 1 << 20}); err != nil || l.Robot != want {
				t.Fatalf("%v: %+v %v", c.chip, l.Robot, err)
			}
			if b, err := l.Read(t.Context(), 0x8000, 200); err != nil || !bytes.Equal(b, flash[0x8000:0x8000+200]) {
				t.Error(c.chip, err)
			}
			data := noise(300_001)[1:]
			var done []int
			if err := l.Write(t.Context(), 0x20000, data, func(n int) { done = append(done, n) }); err != nil {
				t.Fatal(c.chip, err)
			}
			got := rom.Flash()
			if !bytes.Equal(got[:0x20000], flash[:0x20000]) || !bytes.Equal(got[0x20000:0x20000+len(data)], data) ||
				!bytes.Equal(got[0x6A000:], flash[0x6A000:]) {
				t.Error(c.chip, "the flash holds something else")
			}
			if done[0] != 1024 || done[len(done)-1] != len(data) {
				t.Error(done)
			}
			boots := rom.Boots()
			if err := l.Restart(t.Context()); err != nil || rom.Boots() != boots+1 {
				t.Error(c.chip, rom.Boots(), err)
			}
		})
	}
}

// TestWatchdogs: with the chip's own USB they would end a write.
func TestWatchdogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, rom, err := wired(t, simrobot.ROMOptions{Chip: 9, USB: true, EFuse: map[uint32]uint32{0x60008098: 1 << 31, 0x600080B4: 1}})
		if err != nil || rom.Register(0x60008098) != 0 || rom.Register(0x600080B4) != 1<<31|1 || rom.Register(0x600080B0) != 0 {
			t.Errorf("%v %#x %#x", err, rom.Register(0x60008098), rom.Register(0x600080B4))
		}
	})
}

func TestLocked(t *testing.T) {
	for _, c := range []struct {
		o    simrobot.ROMOptions
		want romloader.Security
	}{
		{simrobot.ROMOptions{Chip: 9, Security: 1}, romloader.Security{Boot: true}},
		{simrobot.ROMOptions{Chip: 5, Crypt: 7}, romloader.Security{Encrypted: true}},
		{simrobot.ROMOptions{Chip: 5, Crypt: 3}, romloader.Security{}},
		{simrobot.ROMOptions{Chip: 9, Security: 5}, romloader.Security{Boot: true, Download: true}},
		{simrobot.ROMOptions{Chip: 2, Security: 5}, romloader.Security{Boot: true, Download: true}},
		{simrobot.ROMOptions{Chip: 0, EFuse: map[uint32]uint32{0x3FF5A000: 1 << 20}}, romloader.Security{Encrypted: true}},
		{simrobot.ROMOptions{Chip: 0, EFuse: map[uint32]uint32{0x3FF5A018: 1 << 4}}, romloader.Security{Boot: true}},
		// An ESP32 may not answer unknown commands at all.
		{simrobot.ROMOptions{Chip: 0, Swallow: func(op byte, _ int) bool { return op == 0x14 }}, romloader.Security{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _, err := wired(t, c.o)
			if err != nil || l.Chip != c.o.Chip || l.Security != c.want {
				t.Errorf("%v: %+v, not %v", err, l, c.want)
			}
		})
	}
}

// TestUnreachable: the error comes soon, with its cause and cure.
func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		name string
		o    simrobot.ROMOptions
		usb  bool // is what we take it for
		dark bool
		want string
	}{
		{"silent", simrobot.ROMOptions{Mute: true}, false, false, "no robot answers there"},
		{"another chip", simrobot.ROMOptions{Chip: 20}, false, false, "the robot has esp32c61"},
		{"no chip at all", simrobot.ROMOptions{Chip: 4711}, false, false, "the robot has chip 4711"},
		{"silent in the end", simrobot.ROMOptions{Chip: 0, Swallow: func(op byte, _ int) bool { return op != 0x08 }}, false, false,
			"is the cable still in?"},
		{"an unknown old one", simrobot.ROMOptions{Chip: 0, EFuse: map[uint32]uint32{0x40001000: 0xFFF0C101}}, false, false,
			"the robot has a chip with the number 0xfff0c101"},
		{"wrong reset", simrobot.ROMOptions{Chip: 9}, true, false, "starts its firmware"},
		{"deaf", simrobot.ROMOptions{Chip: 9, Swallow: func(byte, int) bool { return true }}, false, false, "waits in its loader"},
		{"no lines", simrobot.ROMOptions{Chip: 9, Mute: true}, false, true, "the port cannot reset the robot"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, rom := line(t, c.o)
			start := time.Now()
			_, err := romloader.Connect(t.Context(), ours, pulled{rom, c.dark}, c.usb)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("%s: took %v", c.name, took)
			}
			if !rom.Running() {
				t.Errorf("%s: the robot is left where it was brought", c.name)
			}
		})
	}
}

// pulled are the lines of a robot, or of a port without lines.
type pulled struct {
	*simrobot.ROM
	dark bool
}

func (p pulled) SetDTR(on bool) error {
	if p.dark {
		return errors.New("inappropriate ioctl for device")
	}
	return p.ROM.SetDTR(on)
}

// TestBadCable: noise, lost bytes and lost answers only cost time.
func TestBadCable(t *testing.T) {
	sums := 0
	for name, o := range map[string]simrobot.ROMOptions{
		"noise":             {Noise: "\x00\xc0\xff\xc0\xdb\x01\xc0garbage\xc0\x01\x08"},
		"a lost byte":       {Lose: func(n int) bool { return n%70_001 == 70_000 }},
		"another lost byte": {Lose: func(n int) bool { return n%33_333 == 100 }},
		"a lost answer":     {Swallow: func(_ byte, n int) bool { return n%200 == 50 }},
		"no MD5 at first":   {Swallow: func(op byte, _ int) bool { sums++; return op == 0x13 && sums%3 != 0 }},
	} {
		synctest.Test(t, func(t *testing.T) {
			o.Chip, o.Flash = 9, noise(1<<20)
			l, rom := attached(t, o)
			data := noise(200_000)
			if err := l.Write(t.Context(), 0x20000, data, func(int) {}); err != nil {
				t.Fatal(name, err)
			}
			if b, err := l.Read(t.Context(), 0x20000, 1000); err != nil || !bytes.Equal(b, data[:1000]) {
				t.Error(name, err)
			}
			if got := rom.Flash(); !bytes.Equal(got[0x20000:0x20000+len(data)], data) {
				t.Error(name, "the flash holds something else")
			}
		})
	}
}

// TestWornOut: the error for flash that keeps nothing names the address. Data
// verified in pieces is also verified as a whole.
func TestWornOut(t *testing.T) {
	for _, c := range []struct {
		o    simrobot.ROMOptions
		data []byte
	}{
		{simrobot.ROMOptions{Chip: 9, Flash: make([]byte, 1<<20), Forget: func(at int64) bool { return at == 0x20500 }}, noise(4096)},
		{simrobot.ROMOptions{Chip: 9, Fades: 0x20005}, make([]byte, 200_000)},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := attached(t, c.o)
			err := l.Write(t.Context(), 0x20000, c.data, func(int) {})
			if err == nil || !strings.Contains(err.Error(), "the flash at 0x20000 does not hold what was written") {
				t.Error(err)
			}
		})
	}
}

// TestBounds: nothing is written past the end of the flash.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, rom := attached(t, simrobot.ROMOptions{Chip: 9})
		for at, size := range map[int64]int{1<<20 - 4096: 4097, -4096: 1, 4095: 1, 1 << 20: 1} {
			if err := l.Write(t.Context(), at, make([]byte, size), func(int) {}); err == nil ||
				!strings.Contains(err.Error(), "are not within the flash") ||
				rom.Writes() != 0 {
				t.Errorf("%#x: %v", at, err)
			}
		}
		if err := l.Write(t.Context(), 1<<20-4096, make([]byte, 4096), func(int) {}); err != nil {
			t.Error(err)
		}
		if err := l.Write(t.Context(), 16<<20-4096, make([]byte, 4097), func(int) {}); err == nil || !strings.Contains(err.Error(), "beyond 16 MB") {
			t.Error(err)
		}
		var fault *romloader.Fault
		if _, err := l.Read(t.Context(), 1<<20-10, 20); !errors.As(err, &fault) || fault.Code != 0x0A {
			t.Error(err)
		}
	})
}

// TestAgain: data that the flash holds already is not written again, so that an
// interrupted write goes on where it stopped.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, rom := attached(t, simrobot.ROMOptions{Chip: 9})
		data := noise(400_000)
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Write(ctx, 0, data, func(n int) {
			if n == 200*1024 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || rom.Writes() != 200 {
			t.Fatal(err, rom.Writes())
		}
		if err := l.Write(t.Context(), 0, data, func(int) {}); err != nil || rom.Writes() != 200+391-128 {
			t.Error(err, rom.Writes())
		}
		if err := l.Write(t.Context(), 0, data, func(int) {}); err != nil || rom.Writes() != 200+391-128 {
			t.Error(err, rom.Writes())
		}
	})
}

// TestSilent: a robot that falls silent is given up soon.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := false
		l, _ := attached(t, simrobot.ROMOptions{Chip: 9, Swallow: func(op byte, n int) bool { gone = gone || op == 0x03 && n > 100; return gone }})
		start := time.Now()
		if err := l.Write(t.Context(), 0, noise(100_000), func(int) {}); err == nil || !strings.Contains(err.Error(), "is the cable still in?") {
			t.Error(err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestFaster(t *testing.T) {
	for _, c := range []struct {
		chip  espimage.Chip
		efuse map[uint32]uint32
	}{{9, nil}, {0, nil}, {0, map[uint32]uint32{0x3FF5F06C: 500 << 7, 0x3FF5A010: 200}}} {
		synctest.Test(t, func(t *testing.T) {
			l, _, err := wired(t, simrobot.ROMOptions{Chip: c.chip, EFuse: c.efuse})
			if err != nil {
				t.Fatal(err)
			}
			port := 0
			if err := l.Faster(t.Context(), 460800, func(baud int) error { port = baud; return nil }); err != nil || port != 460800 {
				t.Error(port, err)
			}
			bad := errors.New("no such speed")
			if err := l.Faster(t.Context(), 1, func(int) error { return bad }); !errors.Is(err, bad) {
				t.Error(err)
			}
		})
	}
}

// TestStop: Connect can be interrupted, and the robot is not left in reset.
func TestStop(t *testing.T) {
	for _, after := range []time.Duration{50 * time.Millisecond, 120 * time.Millisecond, 450 * time.Millisecond, 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ours, rom := line(t, simrobot.ROMOptions{Mute: true})
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			start := time.Now()
			if _, err := romloader.Connect(ctx, ours, rom, false); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(start) > after+time.Second {
				t.Error(err, time.Since(start))
			}
			if !rom.Running() {
				t.Errorf("after %v the robot is left in reset, or in its loader", after)
			}
		})
	}
}
