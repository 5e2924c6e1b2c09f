package romloader

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.bug.st/serial"
	"go.bug.st/serial/enumerator"
)

// Found is a serial port of this machine that is on USB.
type Found struct {
	Name   string // for Open
	Device string // as the device describes itself; plain characters, or ""
	Robot  bool   // a chip of Espressif's; a bridge could belong to another device
	USB    bool   // the chip's own USB Serial/JTAG
}

// The USB ids of Espressif, and of the serial line in its chips.
const (
	espressif     = "303A"
	usbSerialJTAG = "1001"
)

// Ports returns the serial ports at which a robot may be.
func Ports() ([]Found, error) {
	all, err := enumerator.GetDetailedPortsList()
	if err != nil {
		return nil, fmt.Errorf("look for serial ports: %w", err)
	}
	var found []Found
	for _, p := range all {
		if p.IsUSB {
			own := strings.EqualFold(p.VID, espressif)
			found = append(found, Found{p.Name, describe(p), own, own && strings.EqualFold(p.PID, usbSerialJTAG)})
		}
	}
	slices.SortFunc(found, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// describe returns a device's own description, for a terminal.
func describe(p *enumerator.PortDetails) string {
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, strings.TrimSpace(p.Manufacturer+" "+p.Product))
	return plain[:min(len(plain), 60)]
}

// Port is an open serial port. Closing it leaves the robot as it is.
type Port struct {
	serial.Port
	name string
}

// RomBaud is the first speed, in bits a second: the loader measures the speed, and
// every adapter supports this one.
const RomBaud = 115200

// Open opens a port for this program alone. Errors name cause and cure.
func Open(name string) (*Port, error) {
	p, err := serial.Open(name, &serial.Mode{BaudRate: RomBaud, DataBits: 8})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, reasonOf(err))
	}
	return &Port{Port: p, name: name}, nil
}

// reasonOf returns the cause and the cure if a port cannot be opened.
func reasonOf(err error) error {
	code := serial.PortErrorCode(-1)
	if p, is := errors.AsType[*serial.PortError](err); is {
		code = p.Code()
	}
	switch {
	case code == serial.PermissionDenied, errors.Is(err, fs.ErrPermission):
		return errors.New(
			"you may not use it: `sudo adduser $USER dialout`, then log in anew (on a Debian and a Raspberry Pi, its users are the group " +
				"dialout)")
	case code == serial.PortBusy:
		return errors.New("another program uses it: close that first (a serial monitor, or ModemManager)")
	case code == serial.PortNotFound, errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such port: is the robot plugged in?")
	case code == serial.InvalidSerialPort:
		return fmt.Errorf("it is not a serial port (%w)", err)
	}
	return err
}

// writeTimeout is the limit of a write.
const writeTimeout = 10 * time.Second

// Write gives up on a port that accepts nothing; the system would wait forever.
func (p *Port) Write(b []byte) (int, error) {
	written := make(chan error, 1)
	data := slices.Clone(b)
	go func() {
		for len(data) > 0 {
			n, err := p.Port.Write(data)
			if err != nil {
				written <- fmt.Errorf("write to %s: %w", p.name, gone(err))
				return
			}
			data = data[n:]
		}
		written <- nil
	}()
	select {
	case err := <-written:
		if err != nil {
			return 0, err
		}
		return len(b), nil
	case <-time.After(writeTimeout):
		return 0, fmt.Errorf("write to %s: it has taken nothing for %v: unplug the robot and plug it in again", p.name, writeTimeout)
	}
}

// gone returns a clear error if the device was unplugged.
func gone(err error) error {
	if p, is := errors.AsType[*serial.PortError](err); is && p.Code() == serial.PortClosed ||
		errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) {
		return errors.New("the port is gone: the robot was unplugged, or has lost power")
	}
	return err
}

// SetBaud changes the speed of the port, in bits a second.
func (p *Port) SetBaud(baud int) error {
	if err := p.SetMode(&serial.Mode{BaudRate: baud, DataBits: 8}); err != nil {
		return fmt.Errorf("%s does not take that speed: %w", p.name, err)
	}
	return nil
}
