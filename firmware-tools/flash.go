package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/ota/espimage"
)

// flashFlags are the argument and the options of the command flash.
type flashFlags struct {
	file  string // file to write to the robot or, with save, file for the copy
	port  string // serial port; empty to choose the only one
	at    string // partition name or address; empty for the usual place
	board string // board that the user confirms; may be empty
	baud  int    // bits per second
	all   bool   // allow writing the boot loader, the partition table and settings
	boot  bool   // make the robot start the written application
	save  bool   // copy an area of the flash to file
	dry   bool   // only print the plan
	json  bool
}

// maxFlash is the maximum size of a file in bytes. No robot has more flash.
const maxFlash = 32 << 20

// flashCommand returns the command perch-tools robot flash.
func flashCommand() *cobra.Command {
	f := &flashFlags{}
	c := &cobra.Command{
		Use:   "flash FILE.bin",
		Short: "Write firmware, assets or settings to a robot over its USB cable",
		Example: `perch-tools robot flash stack-chan.bin
			perch-tools robot flash --save --at nvs nvs.bin`,
		RunE: func(c *cobra.Command, args []string) error {
			f.file = args[0]
			switch {
			case f.baud < 9600 || f.baud > 2_000_000:
				return command.Usagef("--baud %d is not between 9600 and 2000000", f.baud)
			case f.save && (f.at == "" || f.boot || f.all || f.dry || f.board != ""):
				return command.Usagef("--save goes with --at, and with no option for writing")
			}
			return f.flash(c.Context(), output{c.OutOrStdout(), f.json}, c.ErrOrStderr())
		},
	}
	s := c.Flags()
	s.StringVar(&f.port, "port", "", "serial `PORT` of the robot, such as /dev/ttyACM0; may be omitted if there is only one")
	s.StringVar(&f.at, "at", "", "`PARTITION|ADDRESS` to write to, such as ota_0; the usual place for this kind of file if omitted")
	s.BoolVar(&f.boot, "boot", false, "have the robot start the written application, whichever slot it starts now")
	s.StringVar(&f.board, "board", "", "`BOARD` that the firmware was built for; required if the robot runs firmware of another project")
	s.BoolVar(&f.all, "all", false, "allow writing the boot loader, the partition table and the settings; a merged image contains all of them")
	s.BoolVar(&f.save, "save", false, "read the partition of --at into FILE, and write nothing to the robot")
	s.BoolVar(&f.dry, "dry-run", false, "only show what would be written, and where")
	s.IntVar(&f.baud, "baud", 460800, "`SPEED` for boards with a USB bridge")
	s.BoolVar(&f.json, "json", false, "print JSON, one object per line")
	return c
}

// flash writes a file to a robot's flash or, with --save, copies an area of the flash to a new file.
func (f *flashFlags) flash(ctx context.Context, out output, stderr io.Writer) (err error) {
	var file flashFile
	if !f.save {
		if file, err = readFlashFile(f.file); err != nil { // fail before the robot is stopped
			return err
		}
	} else if _, err := os.Lstat(f.file); err == nil {
		return fmt.Errorf("%s already exists; --save does not replace a copy", f.file)
	}
	port, err := choosePort(serialPorts("/sys"), f.port)
	if err == nil {
		err = checkPort(port.name)
	}
	if err != nil {
		return err
	}
	program, err := findESPTool()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "perch-flash-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // the files may contain passwords
	fl := &flasher{flags: f, tool: esptool{program: program, port: port.name, chip: "auto", baud: f.baud, dir: dir}, out: out, stderr: stderr}
	return interruptionError(ctx, fl.run(ctx, file))
}

// interruptionError returns err, reworded if the user interrupted the command.
func interruptionError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s", strings.ReplaceAll(err.Error(), ctx.Err().Error(), "you stopped it"))
	}
	return err
}

// readFlashFile reads a file and determines its kind. It rejects files that cannot be
// written to a robot.
func readFlashFile(name string) (flashFile, error) {
	data, err := readUpTo(name, maxFlash)
	switch {
	case err != nil:
		return flashFile{}, fmt.Errorf("read the file: %w", err)
	case len(data) > maxFlash:
		return flashFile{}, fmt.Errorf("%s has more than %d MB, the largest flash of any robot", name, maxFlash>>20)
	}
	out := flashFile{name: filepath.Base(name), data: data}
	out.image, err = espimage.Read(bytes.NewReader(data), int64(len(data))) // err says why a robot would not run the image
	switch kind := out.image.Kind; {
	case kind == espimage.Application && err != nil:
		return out, fmt.Errorf("%s would not start: %w", out.name, err)
	case kind == espimage.Unknown, kind == espimage.ELF, kind == espimage.Archive:
		return out, fmt.Errorf("%s cannot be written to a robot: %w", out.name, err)
	}
	return out, nil
}

// choosePort returns the named port if a name is given. Otherwise it returns the only port with
// an Espressif chip or, without such a port, the only USB port.
func choosePort(ports []serialPort, named string) (serialPort, error) {
	if named != "" {
		path, err := filepath.EvalSymlinks(named) // named may be a symbolic link, such as /dev/serial/by-id/...
		if err != nil {
			path = named
		}
		for _, p := range ports {
			if p.name == named || p.name == path {
				return p, nil
			}
		}
		return serialPort{name: path}, nil
	}
	likely := slices.DeleteFunc(slices.Clone(ports), func(p serialPort) bool { return !p.robot })
	if len(likely) == 0 {
		likely = ports
	}
	switch len(likely) {
	case 0:
		return serialPort{}, errors.New("no robot is plugged in: use a USB cable with data lines, and switch the robot on. If its port " +
			"is not found, name it with --port")
	case 1:
		return likely[0], nil
	}
	var names []string
	for _, p := range likely {
		names = append(names, strings.TrimSpace(p.name+" "+p.device))
	}
	return serialPort{}, command.Usagef("there is more than one port: choose the robot's with --port, one of: %s", strings.Join(names, "; "))
}

// readUpTo reads a file. It reads at most limit+1 bytes, so that the caller can detect a
// longer file.
func readUpTo(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit+1))
}
