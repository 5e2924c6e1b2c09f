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

// flashing is a robot in its loader.
type flashing struct {
	flags  *flashFlags
	tool   esptool
	out    lines
	stderr io.Writer
}

// run writes or reads the flash. A robot that was not written to starts again as before.
func (s *flashing) run(ctx context.Context, file flashFile) error {
	s.out.step("robot", "at %s, is brought into its loader", s.tool.port)
	printed, err := s.tool.run(ctx, nil, "no_reset", "flash_id")
	if err != nil && !strings.Contains(printed, secureDownload) {
		return fmt.Errorf("%s: %w", s.tool.port, err)
	}
	robot, err := identify(printed)
	if err == nil {
		s.tool.chip = robot.chip.String()
		err = s.inspect(ctx, &robot)
	}
	var p flashPlan
	if err == nil && !s.flags.save {
		p, err = s.flags.plan(robot, file)
	}
	switch {
	case err != nil:
	case s.flags.save:
		err = s.save(ctx, robot)
	default:
		s.printPlan(p)
		if !s.flags.dry {
			return s.write(ctx, p)
		}
		s.out.step("dry run", "nothing is written")
	}
	s.restart(ctx)
	return err
}

// What esptool 4.7 and 5.6 print about a chip.
var (
	chipName     = regexp.MustCompile(`(?:Detecting chip type\.\.\.|Connected to) (ESP[0-9A-Z-]+)`)
	chipRevision = regexp.MustCompile(`\(revision v(\d+)\.(\d+)\)`)
	flashSize    = regexp.MustCompile(`Detected flash size: (\d+)(K|M)B`)
	memoryWord   = regexp.MustCompile(`0x[0-9a-f]{8} = (0x[0-9a-f]{8})`)
)

// secureDownload is printed for a chip whose loader can neither read nor verify.
const secureDownload = "in Secure Download Mode"

// bootLoaders returns the address of the boot loader in the flash of robots' chips.
func bootLoaders() map[espimage.Chip]int64 {
	return map[espimage.Chip]int64{0: 0x1000, 2: 0x1000, 5: 0, 9: 0, 13: 0, 18: 0x2000}
}

// identify returns the chip and the size of the flash from what esptool's flash_id
// prints. It returns an error for unsupported chips.
func identify(printed string) (r flashed, err error) {
	if strings.Contains(printed, secureDownload) {
		return r, locked(true, false, false)
	}
	name, revision := chipName.FindStringSubmatch(printed), chipRevision.FindStringSubmatch(printed)
	if name == nil || revision == nil {
		return r, errors.New("the robot is not known: esptool prints something else than its versions 4.7 and 5.6 do")
	}
	chip, known := strings.ToLower(strings.ReplaceAll(name[1], "-", "")), false
	if r.chip, known = espimage.ParseChip(chip); known {
		r.bootLoader, known = bootLoaders()[r.chip]
	}
	if !known {
		return r, fmt.Errorf("the robot has %s, whose flash is not written from here; esptool itself may know it", chip)
	}
	major, _ := strconv.Atoi(revision[1]) // digits
	minor, _ := strconv.Atoi(revision[2])
	r.revision = major*100 + minor
	size := flashSize.FindStringSubmatch(printed)
	if size == nil {
		return r, errors.New("the size of the robot's flash is not known: is its cable sound?")
	}
	r.size, _ = strconv.ParseInt(size[1], 10, 64)
	r.size <<= map[string]int{"K": 10, "M": 20}[size[2]]
	return r, nil
}

// security refuses a robot whose security settings would reject what is written.
func (s *flashing) security(ctx context.Context, chip espimage.Chip) error {
	if chip != 0 {
		printed, err := s.tool.run(ctx, nil, "no_reset", "get_security_info")
		if err == nil && !strings.Contains(printed, "Secure Boot: ") {
			err = errors.New("esptool does not print them")
		}
		if err != nil {
			return fmt.Errorf("read the robot's security settings: %w", err)
		}
		return locked(false, strings.Contains(printed, "Flash Encryption: Enabled"), strings.Contains(printed, "Secure Boot: Enabled"))
	}
	// The loader of an ESP32 does not report them: they are read from its eFuses.
	word := func(address string) (uint64, error) {
		printed, err := s.tool.run(ctx, nil, "no_reset", "read_mem", address)
		found := memoryWord.FindStringSubmatch(printed)
		if err == nil && found == nil {
			err = errors.New("esptool does not print them")
		}
		if err != nil {
			return 0, fmt.Errorf("read the robot's security settings: %w", err)
		}
		return strconv.ParseUint(found[1], 0, 32)
	}
	crypt, err := word("0x3FF5A000")
	if err != nil {
		return err
	}
	done, err := word("0x3FF5A018")
	if err != nil {
		return err
	}
	return locked(false, bits.OnesCount64(crypt>>20&0x7F)%2 == 1, done>>4&3 != 0)
}

// inspect reads the robot's security settings, its partition table, and its start partition.
func (s *flashing) inspect(ctx context.Context, r *flashed) error {
	if err := s.security(ctx, r.chip); err != nil {
		return err
	}
	s.out.step("chip", "%v, revision %d.%d, %d MB of flash", r.chip, r.revision/100, r.revision%100, r.size>>20)
	b, err := s.tool.read(ctx, espimage.TableOffset, espimage.TableSize, nil)
	if err != nil {
		return fmt.Errorf("%w (--baud %d is slow, and works everywhere)", err, romBaud)
	}
	r.table, err = espimage.ParseTable(b)
	if err == nil && r.table.End() > r.size {
		err = fmt.Errorf("the robot's partition table speaks of %d bytes of flash, and it has %d", r.table.End(), r.size)
	}
	if err != nil {
		r.noTable = fmt.Errorf("the robot's partitions are not known: %w; a merged image of its board, with --all, sets it up again", err)
		return nil
	}
	return s.running(ctx, r)
}

// running reads which partition the robot starts and which application is in it.
func (s *flashing) running(ctx context.Context, r *flashed) error {
	var records [2][]byte
	if choice, is := r.table.Choice(); is {
		const sector = 4096 // each record begins one
		b, err := s.tool.read(ctx, choice.Offset, sector+espimage.ChoiceRecord, nil)
		if err != nil {
			return err
		}
		records = [2][]byte{b[:espimage.ChoiceRecord], b[sector:]}
	}
	starts, is := r.table.Starts(records[0], records[1])
	if !is {
		return nil
	}
	r.starts = starts
	start, err := s.tool.read(ctx, starts.Offset, espimage.AppStart, nil)
	if err != nil {
		return err
	}
	r.app, _ = espimage.AppOf(start)
	if r.app.Project == "" {
		s.out.step("starts", "%s, which holds no application", starts.Name)
		return nil
	}
	s.out.step("starts", "%s: %s %s", starts.Name, r.app.Project, r.app.Version)
	return nil
}

func (s *flashing) printPlan(p flashPlan) {
	s.out.step("file", "%s", p.what)
	for _, w := range p.writes {
		s.out.step("write", "%s: %#x to %#x", w.where, w.at, w.at+int64(len(w.data)))
	}
	if s.flags.board != "" {
		s.out.step("board", "%s, by --board", plain.Line(s.flags.board))
	}
	for _, n := range p.notes {
		s.out.step("note", "%s", n)
	}
}

// write carries out a plan. Its error describes the state of the robot.
func (s *flashing) write(ctx context.Context, p flashPlan) error {
	for _, w := range p.writes {
		at, end := s.progress(int64(len(w.data)))
		err := s.tool.write(ctx, w.at, w.data, at)
		end()
		if err != nil {
			return fmt.Errorf(
				"%w; %s is half written, and must be flashed again before the robot works: run the same command again. "+
					"Nothing else in the robot was touched", err, w.where)
		}
	}
	s.out.step("verified", "its flash holds what was written")
	s.restart(ctx)
	return nil
}

// progress returns functions that show esptool's percentage of size bytes, and end
// the line.
func (s *flashing) progress(size int64) (at func(percent int), end func()) {
	b := command.NewProgress(s.stderr, size)
	return func(percent int) { b.At(size * int64(percent) / 100) }, b.Finish
}

// restart starts the robot's firmware, also after an interruption: a robot in its loader
// looks dead. Some ports have no line for a reset.
func (s *flashing) restart(ctx context.Context) {
	if _, err := s.tool.run(context.WithoutCancel(ctx), nil, "hard_reset", "read_mac"); err != nil {
		s.out.step("restart", "the robot yourself, by its reset button or its power: this port cannot")
	}
}

func (s *flashing) save(ctx context.Context, r flashed) error {
	where, err := s.flags.place(r, flashFile{})
	if err != nil {
		return err
	}
	at, end := s.progress(where.limit)
	out, err := s.tool.read(ctx, where.at, where.limit, at)
	end()
	if err != nil {
		return err
	}
	if err := replace(s.flags.file, out, 0o600); err != nil { // settings hold passwords
		if path, is := errors.AsType[*fs.PathError](err); is {
			err = path.Err
		}
		return fmt.Errorf("write %s: %w", s.flags.file, err)
	}
	s.out.step("saved", "%s: %d bytes of %s, from %#x on", s.flags.file, len(out), where.name, where.at)
	return nil
}
