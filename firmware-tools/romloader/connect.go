package romloader

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// Resetter are the two lines beside a serial line, which hold a chip in reset
// (RTS) and choose what it starts (DTR). A port without them returns an error.
type Resetter interface {
	SetDTR(on bool) error
	SetRTS(on bool) error
}

// Unreachable is the error for a robot that did not enter its loader.
type Unreachable struct{ why string }

func (u *Unreachable) Error() string { return u.why }

const (
	byHand = "bring it into its loader by hand (hold BOOT, tap RESET; a CoreS3: hold RESET for three seconds, until its light is green) and try " +
		"again"
	noReset = "the port cannot reset the robot, and no loader answers there: " + byHand
)

// attempts is how often a robot is reset before Connect gives up.
const attempts = 7

// Connect resets a robot into its loader, and identifies its chip. The line is the
// chip's own USB Serial/JTAG, or a bridge to its UART. It gives up after about ten
// seconds. The error may be an *Unreachable.
func Connect(ctx context.Context, line Line, resetter Resetter, usb bool) (*Loader, error) {
	l := &Loader{line: line, resetter: resetter, usb: usb}
	err := l.enter(ctx)
	if err == nil {
		err = l.prepare(ctx)
	}
	if err != nil {
		_ = l.Restart(context.WithoutCancel(ctx)) // the robot goes on as before; the first error is returned
		return nil, err
	}
	return l, nil
}

// prepare identifies the chip, and stops its watchdogs.
func (l *Loader) prepare(ctx context.Context) error {
	if err := l.identify(ctx); err != nil {
		return fmt.Errorf("identify the robot: %w", err)
	}
	l.Chip, l.BootLoader = l.model.chip, l.model.bootLoader
	if l.Security.Download {
		return nil // it answers no other command
	}
	if err := l.quieten(ctx); err != nil {
		return fmt.Errorf("stop the robot's watchdogs: %w", err)
	}
	r := &registers{loader: l, base: l.model.efuse}
	if l.Revision = l.model.revision(ctx, r); r.err != nil {
		return fmt.Errorf("identify the robot: %w", r.err)
	}
	return nil
}

// enter resets the robot until its loader answers.
func (l *Loader) enter(ctx context.Context) error {
	dark := false
	for n := range attempts {
		l.noise, l.read, l.in = nil, nil, unframer{}
		if !dark && l.reset(ctx, n) != nil {
			dark = true // a pseudo terminal, or an adapter without those lines
		}
		for range 5 {
			if err := l.sync(ctx); !lost(err) {
				return err // or nil
			}
			if pause(ctx, 50*time.Millisecond) != nil {
				return ctx.Err()
			}
		}
	}
	return l.unreachable(dark)
}

// unreachable finds the cause in the boot log of the last start.
func (l *Loader) unreachable(dark bool) error {
	l.keep(l.in.packet)
	_, log, started := strings.Cut(string(l.noise), "boot:0x")
	switch {
	case bytes.Contains(l.noise, []byte("waiting for download")):
		return &Unreachable{"the robot waits in its loader, but what is sent to it does not arrive: try another cable or adapter"}
	case started && log != "":
		return &Unreachable{"the robot starts its firmware in place of its loader: " + byHand}
	case dark && !started: // the port has no lines for a reset
		return &Unreachable{noReset}
	}
	return &Unreachable{"no robot answers there: is it this port, and a cable with data lines? If so, " + byHand}
}

// reset brings the chip into its loader. A bridge's lines control the chip's pins
// by two transistors, which do nothing while both are on or both are off. Every
// second try gives more time to a board with a large capacitor at its reset pin.
func (l *Loader) reset(ctx context.Context, attempt int) error {
	if l.usb {
		return l.resetUSB(ctx)
	}
	after := 50 * time.Millisecond
	if attempt%2 == 1 {
		after = 550 * time.Millisecond
	}
	dtr, rts := l.resetter.SetDTR, l.resetter.SetRTS
	return pull(ctx, []pulled{
		{line: dtr}, {rts, true, 100 * time.Millisecond}, // in reset
		{dtr, true, 0}, {rts, false, after}, // out of it, with the boot pin low
		{line: dtr},
	})
}

// resetUSB enters the loader by the chip's USB, without both lines off in between.
func (l *Loader) resetUSB(ctx context.Context) error {
	const wait = 100 * time.Millisecond
	dtr, rts := l.resetter.SetDTR, l.resetter.SetRTS
	return pull(ctx, []pulled{
		{line: rts}, {dtr, false, wait},
		{dtr, true, 0}, {rts, false, wait},
		{rts, true, 0}, {dtr, false, wait},
		{line: dtr}, {line: rts},
	})
}

// pulled is a new state of a line, and how long it stays alone.
type pulled struct {
	line func(on bool) error
	on   bool
	wait time.Duration
}

func pull(ctx context.Context, steps []pulled) error {
	for _, s := range steps {
		if err := s.line(s.on); err != nil {
			return err
		}
		if s.wait > 0 && pause(ctx, s.wait) != nil {
			return ctx.Err()
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// quieten stops the watchdogs, which go on while the chip's own USB is the line.
func (l *Loader) quieten(ctx context.Context) error {
	w := l.model.watchdogs
	if !l.usb || w.config == 0 {
		return nil
	}
	swd, err := l.readRegister(ctx, w.swdConfig)
	if err != nil {
		return err
	}
	for _, each := range [][2]uint32{
		{w.protect, w.key}, {w.config, 0}, {w.protect, 0},
		{w.swdProtect, w.swdKey}, {w.swdConfig, swd | w.feed}, {w.swdProtect, 0},
	} {
		if err := l.writeRegister(ctx, each[0], each[1]); err != nil {
			return err
		}
	}
	return nil
}

// Restart starts the firmware. Without lines the error is an *Unreachable.
func (l *Loader) Restart(ctx context.Context) error {
	if l.model.efuse != 0 && l.model.chip == 9 && !l.Security.Download {
		// The ESP32-S3 remembers that USB has asked for its loader.
		const option1, forceLoader = 0x6000812C, 1
		if err := l.writeBits(ctx, option1, 0, forceLoader); err != nil {
			return fmt.Errorf("restart the robot: %w", err)
		}
	}
	wait := 100 * time.Millisecond
	if l.usb {
		wait *= 2
	}
	if pull(ctx, []pulled{{line: l.resetter.SetDTR}, {l.resetter.SetRTS, true, wait}, {l.resetter.SetRTS, false, wait}}) != nil {
		return &Unreachable{noReset}
	}
	return nil
}
