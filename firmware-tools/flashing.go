package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"perch/command"
	"perch/ota/espimage"
	"perch/plain"
)

// flasher reads and writes the flash of a robot. For this the robot runs its loader, the program in the
// chip's ROM that talks to esptool. (The boot loader is another program, in the flash.)
type flasher struct {
	flags  *flashFlags
	tool   esptool
	out    output
	stderr io.Writer
}

// run writes or reads the flash, and then restarts the robot's firmware. It does not restart the
// robot if a write failed, because the firmware may be incomplete, or if esptool's first command failed
// for another reason than the end of ctx, because no robot is known at the port then. file is not used with --save.
func (f *flasher) run(ctx context.Context, file flashFile) error {
	f.out.step("robot", "the robot at %s is reset into its loader", f.tool.port)
	output, err := f.tool.run(ctx, nil, "no_reset", "flash_id")
	if err != nil && !strings.Contains(output, secureDownload) {
		if ctx.Err() != nil {
			f.restart(ctx)
		}
		return fmt.Errorf("%s: %w", f.tool.port, err)
	}
	robot, err := identify(output)
	if err == nil {
		f.tool.chip = robot.chip.String()
		err = f.inspect(ctx, &robot)
	}
	var p flashPlan
	if err == nil && !f.flags.save {
		p, err = f.flags.plan(robot, file)
	}
	switch {
	case err != nil:
	case f.flags.save:
		err = f.save(ctx, robot)
	default:
		f.printPlan(p)
		if !f.flags.dry {
			return f.write(ctx, p)
		}
		f.out.step("dry run", "nothing is written")
	}
	f.restart(ctx)
	return err
}

// Patterns in the output of esptool 4.7 and 5.6.
var (
	chipName     = regexp.MustCompile(`(?:Detecting chip type\.\.\.|Connected to) (ESP[0-9A-Z-]+)`)
	chipRevision = regexp.MustCompile(`\(revision v(\d+)\.(\d+)\)`)
	flashSize    = regexp.MustCompile(`Detected flash size: (\d+)(K|M)B`)
	memoryWord   = regexp.MustCompile(`0x[0-9a-f]{8} = (0x[0-9a-f]{8})`)
)

// secureDownload is a part of esptool's output for a chip whose loader can neither read nor
// verify the flash.
const secureDownload = "in Secure Download Mode"

// bootLoaders returns the address of the boot loader in the flash of each supported chip: ESP32,
// ESP32-S2, ESP32-C3, ESP32-S3, ESP32-C6 and ESP32-P4, in this order.
func bootLoaders() map[espimage.Chip]int64 {
	return map[espimage.Chip]int64{0: 0x1000, 2: 0x1000, 5: 0, 9: 0, 13: 0, 18: 0x2000}
}

// identify reads the chip and the size of the flash from the output of esptool's command
// flash_id. It returns an error for an unsupported chip, for a chip in secure download mode, and
// for output that it does not recognize.
func identify(output string) (r robotFlash, err error) {
	if strings.Contains(output, secureDownload) {
		return r, securityError(true, false, false)
	}
	name, revision := chipName.FindStringSubmatch(output), chipRevision.FindStringSubmatch(output)
	if name == nil || revision == nil {
		return r, errors.New("the robot was not identified: the output of esptool differs from that of its versions 4.7 and 5.6")
	}
	chip := strings.ToLower(strings.ReplaceAll(name[1], "-", ""))
	supported := false
	if r.chip, supported = espimage.ParseChip(chip); supported {
		r.bootLoader, supported = bootLoaders()[r.chip]
	}
	if !supported {
		return r, fmt.Errorf("the robot has %s, a chip that this command does not support; esptool itself may support it", chip)
	}
	major, _ := strconv.Atoi(revision[1]) // cannot fail: the matches consist of digits
	minor, _ := strconv.Atoi(revision[2])
	r.revision = major*100 + minor
	size := flashSize.FindStringSubmatch(output)
	if size == nil {
		return r, errors.New("esptool could not detect the size of the robot's flash: is the cable sound?")
	}
	r.size, _ = strconv.ParseInt(size[1], 10, 64)
	r.size <<= map[string]int{"K": 10, "M": 20}[size[2]]
	return r, nil
}

// checkSecurity returns an error if the robot's security settings prevent writing. Chip 0 is the
// ESP32.
func (f *flasher) checkSecurity(ctx context.Context, chip espimage.Chip) error {
	if chip != 0 {
		output, err := f.tool.run(ctx, nil, "no_reset", "get_security_info")
		if err == nil && !strings.Contains(output, "Secure Boot: ") {
			err = errors.New("esptool does not print them")
		}
		if err != nil {
			return fmt.Errorf("read the robot's security settings: %w", err)
		}
		return securityError(false, strings.Contains(output, "Flash Encryption: Enabled"), strings.Contains(output, "Secure Boot: Enabled"))
	}
	// The loader of an ESP32 does not report the security settings. They are in the chip's eFuses,
	// bits that are never cleared. Flash encryption is on if an odd number of the bits 20 to 26 is
	// set in the 32-bit word at 0x3FF5A000, and secure boot is on if bit 4 or 5 is set in the word
	// at 0x3FF5A018.
	readFuses := func(address string) (uint64, error) {
		output, err := f.tool.run(ctx, nil, "no_reset", "read_mem", address)
		found := memoryWord.FindStringSubmatch(output)
		if err == nil && found == nil {
			err = errors.New("esptool does not print them")
		}
		if err != nil {
			return 0, fmt.Errorf("read the robot's security settings: %w", err)
		}
		return strconv.ParseUint(found[1], 0, 32)
	}
	encryption, err := readFuses("0x3FF5A000")
	if err != nil {
		return err
	}
	secureBoot, err := readFuses("0x3FF5A018")
	if err != nil {
		return err
	}
	return securityError(false, bits.OnesCount64(encryption>>20&0x7F)%2 == 1, secureBoot>>4&3 != 0)
}

// inspect reads the robot's partition table and start partition into r. If the table is invalid,
// inspect sets r.tableErr and returns nil. It returns an error if the robot's security settings
// prevent writing, or if the flash cannot be read.
func (f *flasher) inspect(ctx context.Context, r *robotFlash) error {
	if err := f.checkSecurity(ctx, r.chip); err != nil {
		return err
	}
	f.out.step("chip", "%v, revision %d.%d, %d MB of flash", r.chip, r.revision/100, r.revision%100, r.size>>20)
	b, err := f.tool.read(ctx, espimage.TableOffset, espimage.TableSize, nil)
	if err != nil {
		return fmt.Errorf("%w (if the cable is good, --baud %d may help: it is slower, but more reliable)", err, romBaud)
	}
	r.table, err = espimage.ParseTable(b)
	if err == nil && r.table.End() > r.size {
		err = fmt.Errorf("the robot's partition table needs %d bytes of flash, and the robot has %d", r.table.End(), r.size)
	}
	if err != nil {
		r.tableErr = fmt.Errorf("the robot's partitions could not be read: %w; to restore the robot, write a merged image of its board with --all", err)
		return nil
	}
	return f.readStartPartition(ctx, r)
}

// readStartPartition finds the partition that the robot starts next, and reads the description of
// the application in that partition.
func (f *flasher) readStartPartition(ctx context.Context, r *robotFlash) error {
	var records [2][]byte
	if otadata, ok := r.table.OTAData(); ok {
		const sector = 4096 // otadata holds two records about the partition to start, each at the beginning of a sector
		b, err := f.tool.read(ctx, otadata.Offset, sector+espimage.OTADataRecord, nil)
		if err != nil {
			return err
		}
		records = [2][]byte{b[:espimage.OTADataRecord], b[sector:]}
	}
	p, ok := r.table.StartPartition(records[0], records[1])
	if !ok {
		return nil
	}
	r.startPartition = p
	header, err := f.tool.read(ctx, p.Offset, espimage.AppStart, nil)
	if err != nil {
		return err
	}
	r.app, _ = espimage.AppOf(header)
	if r.app.Project == "" {
		f.out.step("starts", "%s, in which no description of an application was found", p.Name)
		return nil
	}
	f.out.step("starts", "%s: %s %s", p.Name, r.app.Project, r.app.Version)
	return nil
}

// printPlan prints the planned writes and the notes.
func (f *flasher) printPlan(p flashPlan) {
	f.out.step("file", "%s", p.file)
	for _, w := range p.writes {
		f.out.step("write", "%s: %#x to %#x", w.name, w.offset, w.offset+int64(len(w.data)))
	}
	if f.flags.board != "" {
		f.out.step("board", "%s, confirmed by --board", plain.Line(f.flags.board))
	}
	for _, n := range p.notes {
		f.out.step("note", "%s", n)
	}
}

// write carries out a plan and restarts the robot. If a write fails, the robot is not restarted, and
// the error says which areas were written.
func (f *flasher) write(ctx context.Context, p flashPlan) error {
	var complete []string
	for _, w := range p.writes {
		update, finish := f.progress(int64(len(w.data)))
		err := f.tool.write(ctx, w.offset, w.data, update)
		finish()
		if err != nil {
			others := "Nothing else in the robot has changed"
			if len(complete) > 0 {
				others = "Written completely before: " + strings.Join(complete, ", ")
			}
			return fmt.Errorf("%w; %s may be half written, and must be flashed again before the robot works: run the same command again. %s",
				err, w.name, others)
		}
		complete = append(complete, w.name)
	}
	f.out.step("verified", "the robot's flash contains what was written")
	f.restart(ctx)
	return nil
}

// progress returns a function that shows esptool's progress in a transfer of size bytes, and a
// function that ends this display.
func (f *flasher) progress(size int64) (update func(percent int), finish func()) {
	b := command.NewProgress(f.stderr, size)
	return func(percent int) { b.At(size * int64(percent) / 100) }, b.Finish
}

// restart starts the robot's firmware, even if ctx has ended, because a robot in its loader
// looks dead. If esptool fails, restart asks the user to reset the robot.
func (f *flasher) restart(ctx context.Context) {
	if _, err := f.tool.run(context.WithoutCancel(ctx), nil, "hard_reset", "read_mac"); err != nil {
		f.out.step("restart", "the robot could not be restarted from here; use its reset button or its power switch")
	}
}

// save copies the area that --at selects to a file: a partition, the boot loader or the partition table.
func (f *flasher) save(ctx context.Context, r robotFlash) error {
	dest, err := f.flags.destination(r, flashFile{})
	if err != nil {
		return err
	}
	update, finish := f.progress(dest.size)
	data, err := f.tool.read(ctx, dest.offset, dest.size, update)
	finish()
	if err != nil {
		return err
	}
	if err := replaceFile(f.flags.file, data, 0o600); err != nil { // settings contain passwords
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err // without the name of the temporary file
		}
		return fmt.Errorf("write %s: %w", f.flags.file, err)
	}
	f.out.step("saved", "%s: %d bytes of %s, from %#x on", f.flags.file, len(data), dest.name, dest.offset)
	return nil
}
