package simrobot

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"sync"
	"time"

	"perch/ota/espimage"
)

// ROMOptions describe a robot's ROM and flash, and the faults of its cable.
type ROMOptions struct {
	Chip     espimage.Chip     // esp32 (0), 2, 5, 9, 13, 18; of others only the number is reported
	Flash    []byte            // its content; its length is a power of two
	Security uint32            // flags of GET_SECURITY_INFO; bit 0 secure boot, bit 2 secure download
	Crypt    byte              // flash encryption is on if an odd number of bits is set
	EFuse    map[uint32]uint32 // and other registers, by their address
	USB      bool              // the lines are those of the chip's own USB, not of a bridge's two transistors

	Stuck   bool                      // it is in its loader without a reset
	Mute    bool                      // it never answers
	Noise   string                    // it sends before its loader answers, in place of its boot log
	Lose    func(n int) bool          // whether byte number n that is sent to it is lost
	Swallow func(op byte, n int) bool // whether the answer to command number n is lost
	Forget  func(at int64) bool       // whether what is written at that address does not stay
	Fades   int64                     // address whose byte is erased with whatever else is; 0 is none
	Erase   time.Duration             // of 64 kB
}

// ROM is a chip of the ESP32 family, whose ROM holds a loader that writes its
// flash over the serial line. It behaves as Espressif's description of that
// protocol says.
type ROM struct {
	o ROMOptions

	mu        sync.Mutex
	flash     []byte
	registers map[uint32]uint32
	booted    int // times that it started its firmware
	writes    int // packets of data received

	romPins
	download bool   // it is in its loader
	log      string // to be sent
	romSession
}

// romPins are the lines that reset a chip.
type romPins struct {
	dtr, rts bool
	released time.Time // when a bridge let it out of reset
	starting bool      // it has not read its boot pin yet
	bootPin  bool      // is held, or was by USB
}

// romSession is the loader's state.
type romSession struct {
	attached bool
	limit    int64 // of the flash, in bytes
	write    romWrite
	took     int // bytes
	asked    int // commands
}

// romWrite is the write that FLASH_BEGIN began.
type romWrite struct{ at, left, block int64 }

// NewROM returns a chip that runs its firmware.
func NewROM(o ROMOptions) *ROM {
	r := &ROM{o: o, flash: bytes.Clone(o.Flash), registers: map[uint32]uint32{}}
	switch o.Chip {
	case 0:
		r.registers[0x40001000] = 0x00F01D83
	case 2:
		r.registers[0x40001000] = 0x000007C6
	}
	maps.Copy(r.registers, o.EFuse)
	r.start(o.Stuck)
	return r
}

func (r *ROM) start(download bool) {
	r.starting, r.download = false, download
	r.attached, r.limit, r.write = false, 4<<20, romWrite{}
	r.log = "ESP-ROM:esp32s3-20210327\r\nrst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)\r\nI (24) boot: ESP-IDF v5.5.1\r\n"
	if download {
		r.log = "ESP-ROM:esp32s3-20210327\r\nrst:0x1 (POWERON),boot:0x0 (DOWNLOAD(USB/UART0))\r\nwaiting for download\r\n"
	} else {
		r.booted++
	}
	if r.o.Noise != "" {
		r.log = r.o.Noise
	}
}

// Flash returns a copy of the flash.
func (r *ROM) Flash() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.flash)
}

// Boots counts the starts of its firmware.
func (r *ROM) Boots() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	return r.booted
}

// Running reports whether it runs its firmware, neither in its loader nor in reset.
func (r *ROM) Running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	return !r.download && (r.dtr || !r.rts)
}

// Writes counts the packets of data that it received.
func (r *ROM) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// Register returns the value of a register.
func (r *ROM) Register(address uint32) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.registers[address]
}

// SetDTR sets that line.
func (r *ROM) SetDTR(on bool) error { return r.pins(&r.dtr, on) }

// SetRTS sets that line.
func (r *ROM) SetRTS(on bool) error { return r.pins(&r.rts, on) }

// pins is the effect of the lines on the chip. On a bridge, RTS alone holds it in
// reset and DTR alone holds its boot pin, which is read as it comes out of
// reset, within what the capacitor at the reset pin takes. Its own USB takes
// RTS alone as a reset, into the loader if DTR alone came before it, and not
// both off in between.
func (r *ROM) pins(line *bool, on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	const capacitor = 5 * time.Millisecond
	wasReset := r.rts && !r.dtr
	*line = on
	isReset, held := r.rts && !r.dtr, r.dtr && !r.rts
	switch {
	case r.o.USB && isReset && !wasReset:
		r.start(r.bootPin)
		r.bootPin = false
	case r.o.USB && held:
		r.bootPin = true
	case r.o.USB && !r.rts && !r.dtr:
		r.bootPin = false
	case r.o.USB:
	case isReset:
		r.settle()
		r.download = false
	case wasReset:
		r.released, r.starting, r.bootPin = time.Now(), true, held
	case r.starting && time.Since(r.released) < capacitor:
		r.bootPin = held
	}
	return nil
}

// settle starts a chip that came out of reset.
func (r *ROM) settle() {
	if r.starting {
		r.start(r.bootPin)
	}
}

// Serve answers on a serial line until it is closed.
func (r *ROM) Serve(line io.ReadWriter) error {
	out := make(chan []byte, 256)
	var sends sync.WaitGroup
	sends.Go(func() {
		var broken error
		for b := range out {
			if broken == nil {
				_, broken = line.Write(b)
			}
		}
	})
	defer func() { close(out); sends.Wait() }()
	var frame []byte
	inside, escaped := false, false
	piece := make([]byte, 4096)
	for {
		n, err := line.Read(piece)
		if err != nil {
			return err
		}
		for _, c := range piece[:n] {
			switch {
			case !r.take():
			case c != 0xC0 && !inside:
			case c == 0xC0 && inside && len(frame) > 0:
				r.answer(frame, out)
				frame, inside, escaped = frame[:0], false, false
			case c == 0xC0:
				inside = true
			case escaped:
				frame, escaped = append(frame, map[byte]byte{0xDC: 0xC0, 0xDD: 0xDB}[c]), false
			case c == 0xDB:
				escaped = true
			default:
				frame = append(frame, c)
			}
		}
	}
}

// take counts a byte, and reports whether it was not lost.
func (r *ROM) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took++
	return r.o.Lose == nil || !r.o.Lose(r.took)
}

func (r *ROM) answer(frame []byte, out chan<- []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	if r.log != "" && !r.o.Mute {
		out <- []byte(r.log)
		r.log = ""
	}
	if !r.download || r.o.Mute {
		return
	}
	if len(frame) < 8 || frame[0] != 0 || int(binary.LittleEndian.Uint16(frame[2:])) != len(frame)-8 {
		out <- romPacket(0, 0, []byte{1, 5, 0, 0})
		return
	}
	r.asked++
	data, value, fault := r.carryOut(frame[1], frame[8:], binary.LittleEndian.Uint32(frame[4:]))
	if r.o.Swallow != nil && r.o.Swallow(frame[1], r.asked) {
		return
	}
	status := []byte{0, 0, 0, 0}
	if fault != 0 {
		data, status = nil, []byte{1, fault, 0, 0}
	}
	op, times := frame[1], 1
	switch {
	case op == 0x08:
		times = 8
	case fault == 5:
		op, times = 0, 8
	}
	for range times {
		out <- romPacket(op, value, append(bytes.Clone(data), status...))
	}
}

func romPacket(op byte, value uint32, data []byte) []byte {
	p := []byte{1, op}
	p = binary.LittleEndian.AppendUint16(p, uint16(len(data)))
	p = append(binary.LittleEndian.AppendUint32(p, value), data...)
	p = bytes.ReplaceAll(p, []byte{0xDB}, []byte{0xDB, 0xDD})
	p = bytes.ReplaceAll(p, []byte{0xC0}, []byte{0xDB, 0xDC})
	return append(append([]byte{0xC0}, p...), 0xC0)
}
