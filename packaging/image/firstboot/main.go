// Command perch-firstboot applies the settings that a user has chosen in Raspberry Pi Imager.
// The Imager writes the settings to rpi-preseed.toml on the first partition of the card. The
// command runs early at each boot, and does nothing if the file is missing.
//
// The file contains secrets. Once all settings are applied, the file is overwritten and
// removed. After an error or a power failure the file is applied again at the next boot.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"perch/packaging/image/board"
)

const (
	preseedFile = "rpi-preseed.toml"
	// reportFile is a file on the same partition. It describes an error to a person who opens the
	// card on a computer.
	reportFile = "perch-problem.txt"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: perch-firstboot /boot/firmware")
		os.Exit(2)
	}
	if err := boot(machine{board.Machine{Root: "/", Run: board.RunProgram}}, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// boot applies the preseed file in folder, if that file exists, and then removes the file. After an
// error it writes reportFile instead. folder is where the first partition of the card is mounted.
func boot(m machine, folder string) error {
	file := filepath.Join(folder, preseedFile)
	p, err := readPreseed(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = m.apply(p)
	}
	report := filepath.Join(folder, reportFile)
	if err != nil {
		err = fmt.Errorf("%s was not applied: %w", preseedFile, err)
		text := err.Error() + "\r\nCorrect the file on this card, or write the card again.\r\n"
		return errors.Join(err, os.WriteFile(report, []byte(text), 0o644))
	}
	syscall.Sync() // all changes must be on the card before the file is removed
	if err := shred(file); err != nil {
		return err
	}
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	syscall.Sync()
	return nil
}

// shred overwrites a file with zeros, and removes it.
func shred(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Write(make([]byte, info.Size()))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Remove(file)
}
