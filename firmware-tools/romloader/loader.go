// Package romloader writes a robot's flash over its serial line, through the
// loader that every chip of the ESP32 family has in its ROM. It uploads no
// program into the chip, and writes any data.
//
// The protocol is Espressif's (esptool's documentation, "Serial Protocol"):
// a command and its answer are SLIP packets.
package romloader

import (
	"bytes"
	"context"
	"crypto/md5" // the loader uses it; it detects damage, not forgery
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"perch/ota/espimage"
)

// Line is a serial line. A read returns 0 bytes after a silent timeout.
type Line interface {
	io.ReadWriter
	SetReadTimeout(d time.Duration) error
}

// Loader is a robot in its ROM's loader. It is for one goroutine.
type Loader struct {
	line     Line
	resetter Resetter
	usb      bool // the chip's own USB is the line
	in       unframer
	read     []byte // received, and not parsed yet
	buffer   [512]byte
	noise    []byte // the latest bytes that were not answers
	model    model
	Robot
}

// Robot is what a loader reports.
type Robot struct {
	Chip       espimage.Chip
	Revision   int   // of the chip: major * 100 + minor; -1 if it is not known
	BootLoader int64 // address of the boot loader in the flash
	Size       int64 // of the flash, in bytes; 0 before Attach
	Security   Security
}

// Security lists the security features that a chip has enabled.
type Security struct {
	Boot      bool // secure boot: it starts signed firmware only
	Encrypted bool // its flash is encrypted
	Download  bool // secure download: its loader neither reads nor verifies
}

const (
	commandTimeout = 3 * time.Second
	tries          = 3 // of a command whose answer was lost
)

// command sends a command and returns its answer, with a payload of known length.
func (l *Loader) command(ctx context.Context, o op, data []byte, answer int) (payload []byte, value uint32, err error) {
	err = l.ask(ctx, o, data, commandTimeout, func(r response) (err error) {
		payload, err = r.payload(answer)
		value = r.value
		return err
	})
	return payload, value, err
}

// ask sends a command, and repeats it if the answer was lost. It is for commands
// that may be carried out twice.
func (l *Loader) ask(ctx context.Context, o op, data []byte, timeout time.Duration, take func(response) error) (err error) {
	for range tries {
		var r response
		if r, err = l.once(ctx, o, data, 0, timeout); err == nil {
			err = take(r)
		}
		if !lost(err) {
			return err
		}
		if l.recover(ctx) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// lost reports whether a packet may have been lost or damaged on its way. A
// loader answers half a command like an unknown one.
func lost(err error) bool {
	f, refused := errors.AsType[*Fault](err)
	return errors.Is(err, errSilent) || errors.Is(err, errDamaged) || refused && (f.Code == badChecksum || f.Code == invalidMessage)
}

func (l *Loader) once(ctx context.Context, o op, data []byte, sum byte, timeout time.Duration) (response, error) {
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	if _, err := l.line.Write(appendFrame(nil, request(o, data, sum))); err != nil {
		return response{}, fmt.Errorf("write to the robot: %w", err)
	}
	deadline := time.Now().Add(timeout)
	for {
		r, err := l.receive(ctx, deadline)
		if err != nil {
			return r, err
		}
		if r.op == o {
			return r, nil
		}
		if r.data[0] != 0 && r.data[1] == invalidMessage {
			return r, &Fault{o, invalidMessage} // it sends that up to eight times
		}
	}
}

// receive returns the next answer.
func (l *Loader) receive(ctx context.Context, deadline time.Time) (response, error) {
	for {
		for n, c := range l.read {
			packet, ended := l.in.next(c)
			if !ended {
				continue
			}
			if r, is := parseResponse(packet); is {
				r.data = bytes.Clone(r.data)
				l.read = l.read[n+1:]
				return r, nil
			}
			l.keep(packet)
		}
		l.read = nil
		if err := l.fill(ctx, deadline); err != nil {
			return response{}, err
		}
	}
}

// keep stores noise: a robot's boot log shows what is wrong.
func (l *Loader) keep(noise []byte) {
	const most = 4096
	l.noise = append(l.noise, noise...)
	l.noise = l.noise[max(0, len(l.noise)-most):]
}

// fill reads from the line. An interruption ends it within a tenth of a second.
func (l *Loader) fill(ctx context.Context, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case left <= 0:
			return errSilent
		}
		n, err := 0, l.line.SetReadTimeout(min(left, 100*time.Millisecond))
		if err == nil {
			n, err = l.line.Read(l.buffer[:])
		}
		if err != nil {
			return fmt.Errorf("read from the robot: %w", gone(err))
		}
		if l.read = l.buffer[:n]; n > 0 {
			return nil
		}
	}
}

// drain discards what arrives until a silence, for ten times its length at most.
func (l *Loader) drain(ctx context.Context, silence time.Duration) {
	end := time.Now().Add(10 * silence)
	l.keep(l.in.packet)
	for time.Now().Before(end) {
		l.keep(l.read)
		l.read = nil
		if l.fill(ctx, time.Now().Add(silence)) != nil {
			break
		}
	}
	l.in, l.read = unframer{}, nil
}

const syncTimeout = 100 * time.Millisecond

// sync makes the loader answer, in any state. It answers eight times.
func (l *Loader) sync(ctx context.Context) error {
	greeting := append([]byte{7, 7, 0x12, 0x20}, bytes.Repeat([]byte{0x55}, 32)...)
	if _, err := l.once(ctx, syncUp, greeting, 0, syncTimeout); err != nil {
		return err
	}
	l.drain(ctx, syncTimeout/2)
	return ctx.Err()
}

// recover synchronizes a loader that has lost its place in the stream.
func (l *Loader) recover(ctx context.Context) (err error) {
	for range 5 {
		l.drain(ctx, syncTimeout)
		if err = l.sync(ctx); err == nil || !lost(err) {
			return err
		}
	}
	return err
}

func (l *Loader) readRegister(ctx context.Context, address uint32) (uint32, error) {
	_, value, err := l.command(ctx, readReg, words(address), 0)
	return value, err
}

func (l *Loader) writeRegister(ctx context.Context, address, value uint32) error {
	return l.writeBits(ctx, address, value, 0xFFFFFFFF)
}

func (l *Loader) writeBits(ctx context.Context, address, value, mask uint32) error {
	_, _, err := l.command(ctx, writeReg, words(address, value, mask, 0), 0)
	return err
}

// unknownChip is the error for a chip that is not supported.
func unknownChip(name string) error {
	return fmt.Errorf("the robot has %s, whose flash is not written from here; Espressif's esptool may know it", name)
}

// identify reads the chip's type and its security features.
func (l *Loader) identify(ctx context.Context) error {
	l.Revision = -1
	info, err := l.securityInfo(ctx)
	fault, refused := errors.AsType[*Fault](err)
	switch {
	case err == nil && len(info) >= 20:
		chip := espimage.Chip(min(binary.LittleEndian.Uint32(info[12:]), uint32(espimage.NoChip)))
		m, known := findModel(func(m model) bool { return m.chip == chip })
		if !known {
			return unknownChip(chip.String())
		}
		l.model = m
	case err == nil: // only the ESP32-S2's has this length
		l.model, _ = findModel(func(m model) bool { return m.chip == 2 })
	case refused && fault.Code == invalidMessage, errors.Is(err, errSilent): // it has no such command
		return l.identifyOld(ctx)
	default:
		return err
	}
	flags := binary.LittleEndian.Uint32(info)
	l.Security = Security{Boot: flags&1 != 0, Download: flags&4 != 0, Encrypted: bits.OnesCount8(info[4])%2 == 1}
	return nil
}

// securityInfo is 12 bytes of the ESP32-S2, and 20 of later chips.
func (l *Loader) securityInfo(ctx context.Context) (info []byte, err error) {
	err = l.ask(ctx, getSecurityInfo, nil, commandTimeout, func(r response) (err error) {
		if info, err = r.payload(20); errors.Is(err, errDamaged) {
			info, err = r.payload(12)
		}
		return err
	})
	return info, err
}

// identifyOld identifies an ESP32, whose loader does not report its security.
func (l *Loader) identifyOld(ctx context.Context) error {
	magic, err := l.readRegister(ctx, magicAddress)
	if err != nil {
		return err
	}
	m, known := findModel(func(m model) bool { return m.magic != 0 && m.magic == magic })
	if !known {
		return unknownChip(fmt.Sprintf("a chip with the number %#08x", magic))
	}
	l.model = m
	r := &registers{loader: l, base: m.efuse}
	crypt, done := r.word(ctx, 0, 0), r.word(ctx, 0, 6)
	l.Security = Security{Boot: done>>4&3 != 0, Encrypted: bits.OnesCount32(crypt>>20&0x7F)%2 == 1}
	return r.err
}

// Read reads a part of the flash, slowly: 64 bytes with each command.
func (l *Loader) Read(ctx context.Context, at int64, size int) ([]byte, error) {
	const most = 64
	if at < 0 || at+int64(size) > Reach {
		return nil, fmt.Errorf("read the flash at %#x: the loader does not reach beyond 16 MB", at)
	}
	var out []byte
	for len(out) < size {
		n := min(most, size-len(out))
		b, _, err := l.command(ctx, readFlashSlow, words(uint32(at)+uint32(len(out)), uint32(n)), most)
		if err != nil {
			return nil, fmt.Errorf("read the flash at %#x: %w", at+int64(len(out)), err)
		}
		out = append(out, b[:n]...)
	}
	return out, nil
}

// MD5 returns the loader's checksum of a part of the flash.
func (l *Loader) MD5(ctx context.Context, at, size int64) (sum [md5.Size]byte, err error) {
	const perMegabyte = 8 * time.Second
	timeout := commandTimeout + perMegabyte*time.Duration(size)/1e6
	err = l.ask(ctx, spiFlashMD5, words(uint32(at), uint32(size), 0, 0), timeout, func(r response) error {
		text, err := r.payload(2 * md5.Size)
		if err != nil {
			return err
		}
		if _, err := hex.Decode(sum[:], text); err != nil {
			return errDamaged
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("sum up the flash at %#x: %w", at, err)
	}
	return sum, err
}
