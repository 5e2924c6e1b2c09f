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

// serialPort is a USB serial port of this machine.
type serialPort struct {
	name   string // such as /dev/ttyACM0
	device string // manufacturer and product reported by the device; may be empty
	robot  bool   // the port belongs to an Espressif chip, not to a USB-to-serial bridge, which any device may have
}

// espressif is the USB vendor ID of Espressif, which makes the robots' chips.
const espressif = "303a"

// serialPorts returns the USB serial ports, sorted by name. sys is the mount point of sysfs,
// usually /sys.
func serialPorts(sys string) []serialPort {
	links, _ := filepath.Glob(filepath.Join(sys, "class/tty/tty*/device")) // the pattern is valid
	var found []serialPort
	for _, link := range links {
		dir, err := filepath.EvalSymlinks(link)
		if err != nil {
			continue // the device was just unplugged
		}
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(dir, name)) // not every device has every file
			return strings.TrimSpace(string(text))
		}
		for range 3 { // the USB device is one of the parent folders of the port
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

// checkPort returns an error with advice if a port cannot be used.
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
		return fmt.Errorf("open %s: permission denied: run `sudo adduser $USER dialout`, then log in again (on Debian and on a Raspberry Pi, "+
			"the group dialout may use serial ports)", name)
	}
	return nil
}

// romBaud is the initial speed of the loader in a chip's ROM, in bits per second.
const romBaud = 115200

// esptool runs Espressif's program esptool, which reads and writes the flash of the robot at a
// serial port. The option --no-stub makes esptool use only the loader in the chip's ROM: the
// esptool in Debian 13 does not contain its faster stub loader for the ESP32-S3.
type esptool struct {
	program string
	port    string
	chip    string // name of the chip as esptool spells it, or "auto"
	baud    int    // speed for reading and writing the flash, in bits per second
	dir     string // folder for temporary files
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

// run runs a command of esptool and returns its output, also if the command fails. esptool first
// resets the robot into the robot's loader. If after is "hard_reset", esptool starts the robot's
// firmware at the end. If after is "no_reset", the robot stays in its loader. progress may be nil.
// When ctx ends, run interrupts esptool.
func (e esptool) run(ctx context.Context, progress func(percent int), after, command string, args ...string) (string, error) {
	argv := []string{"--chip", e.chip, "--port", e.port, "--before", "default_reset", "--after", after, "--no-stub"}
	if command == "read_flash" || command == "write_flash" {
		argv = append(argv, "--baud", strconv.Itoa(e.baud))
	}
	c := exec.CommandContext(ctx, e.program, append(append(argv, command), args...)...)
	c.Env = append(os.Environ(), "PYTHONUNBUFFERED=1") // print the progress at once
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

// esptoolOutput collects the output of esptool, and reports the progress that esptool prints.
type esptoolOutput struct {
	text     strings.Builder
	progress func(percent int) // may be nil
}

// percentage matches the last percentage in the output.
var percentage = regexp.MustCompile(`(\d+)(\.\d+)? ?%[^%]*$`)

// Write implements io.Writer.
func (o *esptoolOutput) Write(b []byte) (int, error) {
	o.text.Write(b)
	text := o.text.String()
	found := percentage.FindStringSubmatch(text[max(0, len(text)-200):])
	if found != nil && o.progress != nil {
		percent, _ := strconv.Atoi(found[1]) // cannot fail: the match consists of digits
		o.progress(min(percent, 100))
	}
	return len(b), nil
}

// loaderByHand tells the user what to do if esptool cannot reset the robot.
const loaderByHand = "bring it into its loader by hand (hold BOOT, tap RESET; a CoreS3: hold RESET for three seconds, until its light is green) and " +
	"try again"

// esptoolError returns an error that explains to the user why esptool failed. It recognizes the
// messages of esptool 4.7 and 5.6 in output. err is the error from running esptool.
func esptoolError(output string, err error) error {
	for _, known := range []struct{ message, explanation string }{
		{"Could not exclusively lock port", "another program uses it: close that first (a serial monitor, or ModemManager)"},
		{"Device or resource busy", "another program uses it: close that first (a serial monitor, or ModemManager)"},
		{"Permission denied", "permission denied: run `sudo adduser $USER dialout`, then log in again"},
		{"Could not configure port: (25", "it is not a serial port"},
		{"Input/output error", "the port has disappeared: the robot was unplugged, or has lost power"},
		{"device disconnected", "the port has disappeared: the robot was unplugged, or has lost power"},
		{"No such file or directory: '/dev/", "the port has disappeared: the robot was unplugged, or has lost power"},
		{"Wrong boot mode detected", "the robot starts its firmware instead of its loader: " + loaderByHand},
		{"TX path seems to be down", "the robot waits in its loader, but receives no data: try another cable or adapter"},
		{"Failed to connect to", "no robot responds: is this the right port, and does the cable have data lines? If so, " + loaderByHand},
		{"MD5 of file does not match", "the flash does not contain the written data: try another cable, a port with more power or a lower --baud; if " +
			"that does not help, the flash is worn out"},
	} {
		if strings.Contains(output, known.message) {
			return errors.New(known.explanation)
		}
	}
	text := strings.TrimSpace(output)
	if _, message, found := strings.Cut(text, "A fatal error occurred: "); found {
		return errors.New("esptool: " + plain.Line(message))
	}
	if last := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]); last != "" { // the last line of a Python traceback
		return errors.New("esptool: " + plain.Line(last))
	}
	return fmt.Errorf("esptool: %w", err)
}

// read reads size bytes of the flash from an offset.
func (e esptool) read(ctx context.Context, offset, size int64, progress func(percent int)) ([]byte, error) {
	name := filepath.Join(e.dir, "read.bin")
	_, err := e.run(ctx, progress, "no_reset", "read_flash", strconv.FormatInt(offset, 10), strconv.FormatInt(size, 10), name)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("esptool read %d bytes of %d", len(data), size)
	}
	if err != nil {
		return nil, fmt.Errorf("read the flash at %#x: %w", offset, err)
	}
	return data, nil
}

// write writes data to the flash at an offset, which must be the beginning of a sector (a multiple of
// 4096). It returns an error unless esptool has verified the written data.
func (e esptool) write(ctx context.Context, offset int64, data []byte, progress func(percent int)) error {
	name := filepath.Join(e.dir, "write.bin")
	err := os.WriteFile(name, data, 0o600)
	var output string
	if err == nil {
		output, err = e.run(ctx, progress, "no_reset", "write_flash", strconv.FormatInt(offset, 10), name)
	}
	if err == nil && !strings.Contains(output, "Hash of data verified.") {
		err = errors.New("esptool did not verify the written data")
	}
	if err != nil {
		return fmt.Errorf("write the flash at %#x: %w", offset, err)
	}
	return nil
}
