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

// Options describe the connection to a robot.
type Options struct {
	Resetter Resetter // nil if the robot is in its loader already
	USB      bool     // the line is the chip's own USB Serial/JTAG, not a bridge to its UART
}

// Unreachable is the error for a robot that did not enter its loader.
type Unreachable struct {
	Runs bool // it started its firmware instead
	Deaf bool // its loader sends, but does not receive
	Dark bool // the port has no lines for a reset
}

func (u *Unreachable) Error() string {
	const hold = "bring it into its loader by hand (hold BOOT, tap RESET; a CoreS3: hold RESET for three seconds, until its light is green) and try " +
		"again"
	switch {
	case u.Deaf:
		return "the robot waits in its loader, but what is sent to it does not arrive: try another cable or adapter"
	case u.Runs:
		return "the robot starts its firmware in place of its loader: " + hold
	case u.Dark:
		return "the port cannot reset the robot, and no loader answers there: " + hold
	}
	return "no robot answers there: is it this port, and a cable with data lines? If so, " + hold
}

// attempts is how often a robot is reset before Connect gives up.
const attempts = 7

// Connect resets a robot into its loader, and identifies its chip. It gives up
// after about ten seconds. The error may be an *Unreachable or an *UnknownChip.
func Connect(ctx context.Context, line Line, o Options) (*Loader, error) {
	l := &Loader{line: line, resetter: o.Resetter, usb: o.USB}
	err := l.enter(ctx)
	if err == nil {
		err = l.prepare(ctx)
	}
	if err != nil && l.resetter != nil {
		_ = l.Restart(context.WithoutCancel(ctx)) // the robot goes on as before; the first error is returned
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// prepare identifies the chip, and stops its watchdogs.
func (l *Loader) prepare(ctx context.Context) error {
	if err := l.identify(ctx); err != nil {
		return fmt.Errorf("identify the robot: %w", err)
	}
	if l.security.Download {
		return nil // it answers no other command
	}
	if err := l.quieten(ctx); err != nil {
		return fmt.Errorf("stop the robot's watchdogs: %w", err)
	}
	r := &registers{loader: l, base: l.model.efuse}
	if l.revision = l.model.revision(ctx, r); r.err != nil {
		return fmt.Errorf("identify the robot: %w", r.err)
	}
	return nil
}

// enter resets the robot until its loader answers.
func (l *Loader) enter(ctx context.Context) error {
	dark := l.resetter == nil
	for n := range attempts {
		l.noise, l.read, l.in = nil, nil, unframer{}
		if !dark && l.reset(ctx, n) != nil {
			dark = true // a pseudo terminal, or an adapter without those lines
		}
		for range 5 {
			err := l.sync(ctx)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !lost(err) {
				return err
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
	waits := bytes.Contains(l.noise, []byte("waiting for download"))
	_, log, started := strings.Cut(string(l.noise), "boot:0x")
	return &Unreachable{Deaf: waits, Runs: !waits && started && log != "", Dark: dark && !waits && !started}
}

// reset brings the chip into its loader. A bridge's lines control the chip's pins
// by two transistors, which do nothing while both are on or both are off. Every
// second try gives more time to a board with a large capacitor at its reset pin.
func (l *Loader) reset(ctx context.Context, attempt int) error {
	if l.usb {
		return l.pull(ctx, resetUSB())
	}
	after := 50 * time.Millisecond
	if attempt%2 == 1 {
		after = 550 * time.Millisecond
	}
	return l.pull(ctx, []pulls{
		{dtr: off, rts: on, wait: 100 * time.Millisecond}, // in reset
		{dtr: on, rts: off, wait: after},                  // out of it, with the boot pin low
		{dtr: off},
	})
}

// resetUSB is the order of lines by which a chip's own USB enters the loader. Both
// lines must not be off in between.
func resetUSB() []pulls {
	const wait = 100 * time.Millisecond
	return []pulls{
		{rts: off, dtr: off, wait: wait, rtsFirst: true},
		{dtr: on, rts: off, wait: wait},
		{rts: on, dtr: off, wait: wait, rtsFirst: true},
		{dtr: off, rts: off},
	}
}

type pull byte

const (
	leave pull = iota
	on
	off
)

// pulls is a setting of both lines, DTR before RTS by default, and how long it
// stays.
type pulls struct {
	dtr, rts pull
	rtsFirst bool
	wait     time.Duration
}

func (l *Loader) pull(ctx context.Context, steps []pulls) error {
	set := func(p pull, line func(bool) error) error {
		if p == leave {
			return nil
		}
		return line(p == on)
	}
	for _, s := range steps {
		dtr := func() error { return set(s.dtr, l.resetter.SetDTR) }
		rts := func() error { return set(s.rts, l.resetter.SetRTS) }
		first, second := dtr, rts
		if s.rtsFirst {
			first, second = rts, dtr
		}
		err := first()
		if err == nil {
			err = second()
		}
		if err != nil {
			return err
		}
		if err := pause(ctx, s.wait); err != nil {
			return err
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

// Restart lets the robot start its firmware. The error is an *Unreachable if
// the port has no lines for it.
func (l *Loader) Restart(ctx context.Context) error {
	if l.resetter == nil {
		return &Unreachable{Dark: true}
	}
	if l.model.efuse != 0 && l.model.chip == 9 && !l.security.Download {
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
	if l.pull(ctx, []pulls{{dtr: off, rts: on, wait: wait}, {rts: off, wait: wait}}) != nil {
		return &Unreachable{Dark: true}
	}
	return nil
}
