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

type flashFlags struct {
	file  string
	port  string
	at    string
	board string
	baud  int
	all   bool
	boot  bool
	save  bool
	dry   bool
	json  bool
}

// mostFlash bounds a file, in bytes: no robot has more flash.
const mostFlash = 32 << 20

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
				return command.Usagef("--baud %d: 9600 to 2000000", f.baud)
			case f.save && (f.at == "" || f.boot || f.all || f.dry || f.board != ""):
				return command.Usagef("--save goes with --at, and with no option for writing")
			}
			return f.flash(c.Context(), lines{c.OutOrStdout(), f.json}, c.ErrOrStderr())
		},
	}
	s := c.Flags()
	s.StringVar(&f.port, "port", "", "`PORT` that the robot is at, as in /dev/ttyACM0; without it, the only one that there is")
	s.StringVar(&f.at, "at", "", "`PARTITION|ADDRESS` to write to, as in ota_0; without it, where a file of its kind belongs")
	s.BoolVar(&f.boot, "boot", false, "have the robot start what is written, whichever slot it starts now")
	s.StringVar(&f.board, "board", "", "`BOARD` that the firmware was built for, if the robot has that of another project")
	s.BoolVar(&f.all, "all", false, "allow writing the boot loader, the partition table and the settings; a merged image is all of that")
	s.BoolVar(&f.save, "save", false, "read the partition of --at into FILE, and write nothing to the robot")
	s.BoolVar(&f.dry, "dry-run", false, "only show what would be written, and where")
	s.IntVar(&f.baud, "baud", 460800, "`SPEED` for boards with a USB bridge")
	s.BoolVar(&f.json, "json", false, "print JSON, an object a line")
	return c
}

// flash writes a file to a robot's flash, or reads a partition.
func (f *flashFlags) flash(ctx context.Context, out lines, stderr io.Writer) (err error) {
	var file flashFile
	if !f.save {
		if file, err = readFlashFile(f.file); err != nil { // before the robot is stopped
			return err
		}
	} else if _, err := os.Lstat(f.file); err == nil {
		return fmt.Errorf("%s is there already; --save does not replace a copy", f.file)
	}
	found, err := choosePort(serialPorts("/sys"), f.port)
	if err == nil {
		err = checkPort(found.name)
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
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // settings hold passwords
	s := &flashing{flags: f, tool: esptool{program: program, port: found.name, chip: "auto", baud: f.baud, dir: dir}, out: out, stderr: stderr}
	return interrupted(ctx, s.run(ctx, file))
}

// interrupted returns err, in plain words if it is caused by an interruption.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s", strings.ReplaceAll(err.Error(), ctx.Err().Error(), "you stopped it"))
	}
	return err
}

// readFlashFile reads a file and determines its kind.
func readFlashFile(name string) (flashFile, error) {
	data, err := readUpTo(name, mostFlash)
	switch {
	case err != nil:
		return flashFile{}, fmt.Errorf("read the file: %w", err)
	case len(data) > mostFlash:
		return flashFile{}, fmt.Errorf("%s has more than %d MB; no robot has so much flash", name, mostFlash>>20)
	}
	out := flashFile{name: filepath.Base(name), data: data}
	out.image, err = espimage.Read(bytes.NewReader(data), int64(len(data))) // err is a refusal
	switch kind := out.image.Kind; {
	case kind == espimage.Application && err != nil:
		return out, fmt.Errorf("%s would not start: %w", out.name, err)
	case kind == espimage.Unknown, kind == espimage.ELF, kind == espimage.Archive:
		return out, fmt.Errorf("%s cannot be written to a robot: %w", out.name, err)
	}
	return out, nil
}

// choosePort returns the named port; else the only one with a chip of
// Espressif's; else the only bridge, which may belong to a robot.
func choosePort(ports []serialPort, named string) (serialPort, error) {
	if named != "" {
		real, err := filepath.EvalSymlinks(named) // as in /dev/serial/by-id
		if err != nil {
			real = named
		}
		for _, p := range ports {
			if p.name == named || p.name == real {
				return p, nil
			}
		}
		return serialPort{name: real}, nil
	}
	likely := slices.DeleteFunc(slices.Clone(ports), func(p serialPort) bool { return !p.robot })
	if len(likely) == 0 {
		likely = ports
	}
	switch len(likely) {
	case 0:
		return serialPort{}, errors.New("no robot is plugged in: it takes a USB cable with data lines, and a robot that is on. --port names a " +
			"port that is not found")
	case 1:
		return likely[0], nil
	}
	var names []string
	for _, p := range likely {
		names = append(names, strings.TrimSpace(p.name+" "+p.device))
	}
	return serialPort{}, command.Usagef("there is more than one port: name the robot's with --port, one of: %s", strings.Join(names, "; "))
}

// readUpTo reads a file, but at most one byte more than most.
func readUpTo(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}
