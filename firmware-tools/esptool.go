package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perch/plain"
)

// serialPort is a serial port of this machine that is on USB.
type serialPort struct {
	name   string // as in /dev/ttyACM0
	device string // as the device describes itself; plain characters, or ""
	robot  bool   // the device is a chip of Espressif's; a bridge may belong to something else
}

// espressif is the USB vendor of robots without a bridge.
const espressif = "303a"

// serialPorts returns the serial ports on USB, by name. The kernel describes them
// below sys, which is /sys.
func serialPorts(sys string) []serialPort {
	links, _ := filepath.Glob(filepath.Join(sys, "class/tty/tty*/device")) // the pattern is valid
	var found []serialPort
	for _, link := range links {
		dir, err := filepath.EvalSymlinks(link)
		if err != nil {
			continue // it was just unplugged
		}
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(dir, name)) // not every device has every file
			return strings.TrimSpace(string(text))
		}
		for range 3 { // the USB device is a parent of the port and its interface
			if vendor := read("idVendor"); vendor != "" {
				device := plain.Line(strings.TrimSpace(read("manufacturer") + " " + read("product")))
				name := "/dev/" + filepath.Base(filepath.Dir(link))
				found = append(found, serialPort{name, device[:min(len(device), 60)], vendor == espressif})
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return found
}

// checkPort returns an error, with a cure, if a port cannot be used.
func checkPort(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open %s: there is no such port: is the robot plugged in?", name)
	case err != nil:
		return err
	case info.Mode()&fs.ModeCharDevice == 0:
		return fmt.Errorf("open %s: it is not a serial port", name)
	}
	const readAndWrite = 4 | 2
	if syscall.Access(name, readAndWrite) != nil {
		return fmt.Errorf("open %s: you may not use it: `sudo adduser $USER dialout`, then log in again (on Debian and on a Raspberry Pi, the "+
			"group dialout may use serial ports)", name)
	}
	return nil
}

// romBaud is the initial speed of a chip's loader, in bits a second.
const romBaud = 115200

// esptool runs Espressif's program esptool, which writes the flash of the robot at a port. It
// uses only the loader in the chip's ROM: the version in Debian 13 has no stub loader for an
// ESP32-S3.
type esptool struct {
	program string
	port    string
	chip    string // its name for esptool, or "auto"
	baud    int    // of reads and writes, in bits a second
	dir     string // for the files that it reads and writes
}

// findESPTool returns the path of esptool.
func findESPTool() (string, error) {
	for _, name := range []string{"esptool", "esptool.py"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("esptool, which writes a robot's flash, is not installed: `sudo apt install esptool` on Debian 13, `pipx install " +
		"esptool` on Debian 12")
}

// run runs a command of esptool and returns what it prints. It first resets the robot
// into its loader, where it stays unless after is hard_reset, which starts its firmware.
// If ctx ends, esptool is interrupted.
func (e esptool) run(ctx context.Context, progress func(percent int), after, command string, args ...string) (string, error) {
	all := []string{"--chip", e.chip, "--port", e.port, "--before", "default_reset", "--after", after, "--no-stub"}
	if command == "read_flash" || command == "write_flash" {
		all = append(all, "--baud", strconv.Itoa(e.baud))
	}
	c := exec.CommandContext(ctx, e.program, append(append(all, command), args...)...)
	c.Env = append(os.Environ(), "PYTHONUNBUFFERED=1") // for the progress
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	out := &esptoolOutput{progress: progress}
	c.Stdout, c.Stderr = out, out
	err := c.Run()
	switch {
	case err == nil:
		return out.text.String(), nil
	case ctx.Err() != nil:
		return out.text.String(), ctx.Err()
	}
	return out.text.String(), esptoolError(out.text.String(), err)
}

// esptoolOutput collects what esptool prints, and reports its progress.
type esptoolOutput struct {
	text     strings.Builder
	progress func(percent int) // or nil
}

var percentage = regexp.MustCompile(`(\d+)(\.\d+)? ?%[^%]*$`)

func (o *esptoolOutput) Write(b []byte) (int, error) {
	o.text.Write(b)
	text := o.text.String()
	found := percentage.FindStringSubmatch(text[max(0, len(text)-200):])
	if found != nil && o.progress != nil {
		percent, _ := strconv.Atoi(found[1]) // digits
		o.progress(min(percent, 100))
	}
	return len(b), nil
}

const byHand = "bring it into its loader by hand (hold BOOT, tap RESET; a CoreS3: hold RESET for three seconds, until its light is green) and " +
	"try again"

// esptoolError returns an error with the cause and the cure of a failure, by what esptool 4.7
// and 5.6 print.
func esptoolError(printed string, failed error) error {
	for _, each := range []struct{ print, means string }{
		{"Could not exclusively lock port", "another program uses it: close that first (a serial monitor, or ModemManager)"},
		{"Device or resource busy", "another program uses it: close that first (a serial monitor, or ModemManager)"},
		{"Permission denied", "you may not use it: `sudo adduser $USER dialout`, then log in again"},
		{"Could not configure port: (25", "it is not a serial port"},
		{"Input/output error", "the port is gone: the robot was unplugged, or has lost power"},
		{"device disconnected", "the port is gone: the robot was unplugged, or has lost power"},
		{"No such file or directory: '/dev/", "the port is gone: the robot was unplugged, or has lost power"},
		{"Wrong boot mode detected", "the robot starts its firmware in place of its loader: " + byHand},
		{"TX path seems to be down", "the robot waits in its loader, but what is sent to it does not arrive: try another cable or adapter"},
		{"Failed to connect to", "no robot answers there: is it this port, and a cable with data lines? If so, " + byHand},
		{"MD5 of file does not match", "the flash does not hold what was written: try another cable, a port with more power or a lower --baud; if it " +
			"stays so, that flash is worn out"},
	} {
		if strings.Contains(printed, each.print) {
			return errors.New(each.means)
		}
	}
	text := strings.TrimSpace(printed)
	if _, said, is := strings.Cut(text, "A fatal error occurred: "); is {
		return errors.New("esptool: " + plain.Line(said))
	}
	if last := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]); last != "" { // of a traceback
		return errors.New("esptool: " + plain.Line(last))
	}
	return fmt.Errorf("esptool: %w", failed)
}

// read reads a part of the flash.
func (e esptool) read(ctx context.Context, at, size int64, progress func(percent int)) ([]byte, error) {
	name := filepath.Join(e.dir, "read.bin")
	_, err := e.run(ctx, progress, "no_reset", "read_flash", strconv.FormatInt(at, 10), strconv.FormatInt(size, 10), name)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("esptool read %d bytes of %d", len(data), size)
	}
	if err != nil {
		return nil, fmt.Errorf("read the flash at %#x: %w", at, err)
	}
	return data, nil
}

// write writes a part of the flash, from the beginning of a sector. esptool then
// verifies it.
func (e esptool) write(ctx context.Context, at int64, data []byte, progress func(percent int)) error {
	name := filepath.Join(e.dir, "write.bin")
	err := os.WriteFile(name, data, 0o600)
	var printed string
	if err == nil {
		printed, err = e.run(ctx, progress, "no_reset", "write_flash", strconv.FormatInt(at, 10), name)
	}
	if err == nil && !strings.Contains(printed, "Hash of data verified.") {
		err = errors.New("esptool did not verify it")
	}
	if err != nil {
		return fmt.Errorf("write the flash at %#x: %w", at, err)
	}
	return nil
}
