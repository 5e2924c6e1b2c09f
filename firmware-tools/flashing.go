package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"perch/firmware-tools/romloader"
	"perch/ota/espimage"
)

// flashing is a robot in its loader.
type flashing struct {
	flags          *flashFlags
	loader         *romloader.Loader
	port           *romloader.Port
	usb            bool
	stdout, stderr io.Writer
}

// run does what was asked for. A robot that was not written to is let go on
// with what it did.
func (s *flashing) run(ctx context.Context, file flashFile) error {
	robot, err := s.look(ctx)
	var p flashPlan
	if err == nil && !s.flags.save {
		p, err = s.flags.plan(robot, file)
	}
	switch {
	case err != nil:
	case s.flags.save:
		err = s.save(ctx, robot)
	default:
		s.tell(p)
		if !s.flags.dry {
			return s.write(ctx, p)
		}
		fmt.Fprintln(s.stdout, "nothing is written: --dry-run")
	}
	return errors.Join(err, s.restart(ctx))
}

// look finds out what the robot is, and what its flash is divided into.
func (s *flashing) look(ctx context.Context) (r flashed, err error) {
	l := s.loader
	if err := locked(l.Security()); err != nil {
		return r, err
	}
	if err := l.Attach(ctx); err != nil {
		return r, err
	}
	if !s.usb && s.flags.baud != romloader.RomBaud {
		if err := l.Faster(ctx, s.flags.baud, s.port.SetBaud); err != nil {
			return r, fmt.Errorf("%w (--baud %d is slow, and works everywhere)", err, romloader.RomBaud)
		}
	}
	r = flashed{chip: l.Chip(), revision: l.Revision(), bootLoader: l.BootLoader(), size: l.Size()}
	fmt.Fprintf(s.stdout, "chip      %v, revision %d.%d, %d MB of flash\n", r.chip, r.revision/100, r.revision%100, r.size>>20)
	b, err := l.Read(ctx, espimage.TableOffset, espimage.TableSize)
	if err != nil {
		return r, err
	}
	r.table, err = espimage.ParseTable(b)
	if err == nil && r.table.End() > r.size {
		err = fmt.Errorf("the robot's partition table speaks of %d bytes of flash, and it has %d", r.table.End(), r.size)
	}
	if err != nil {
		r.noTable = fmt.Errorf("what lies where in this robot is not known: %w; a merged image of its board, with --all, sets it up anew", err)
		return r, nil
	}
	return r, s.running(ctx, &r)
}

// running finds out what the robot starts, and what that is.
func (s *flashing) running(ctx context.Context, r *flashed) error {
	var records [2][]byte
	if choice, is := r.table.Choice(); is {
		for n := range records {
			var err error
			if records[n], err = s.loader.Read(ctx, choice.Offset+int64(n*romloader.Sector), espimage.ChoiceRecord); err != nil {
				return err
			}
		}
	}
	starts, is := r.table.Starts(records[0], records[1])
	if !is {
		return nil
	}
	r.starts = starts
	start, err := s.loader.Read(ctx, starts.Offset, espimage.AppStart)
	if err != nil {
		return err
	}
	r.app, _ = espimage.AppOf(start)
	if r.app.Project == "" {
		fmt.Fprintf(s.stdout, "starts    %s, which holds no application\n", starts.Name)
		return nil
	}
	fmt.Fprintf(s.stdout, "starts    %s: %s %s\n", starts.Name, r.app.Project, r.app.Version)
	return nil
}

func (s *flashing) tell(p flashPlan) {
	fmt.Fprintf(s.stdout, "file      %s\n", p.what)
	for _, w := range p.writes {
		fmt.Fprintf(s.stdout, "write     %s: %#x to %#x\n", w.where, w.at, w.at+int64(len(w.data)))
	}
	if s.flags.board != "" {
		fmt.Fprintf(s.stdout, "board     %s, as you say\n", plainText(s.flags.board))
	}
	for _, n := range p.notes {
		fmt.Fprintf(s.stdout, "note      %s\n", n)
	}
}

// write carries a plan out, and says what is left of the robot where it does
// not come to its end.
func (s *flashing) write(ctx context.Context, p flashPlan) error {
	for _, w := range p.writes {
		b := &bar{size: int64(len(w.data)), to: s.stderr, shown: -1, live: isTerminal(s.stderr)}
		err := s.loader.Write(ctx, w.at, w.data, func(n int) { b.at(int64(n)) })
		b.end()
		if err != nil {
			return fmt.Errorf("%w; %s is half written, and must be flashed again before the robot works: the same command goes on where this one stopped. Nothing else in the robot was touched", err, w.where)
		}
	}
	fmt.Fprintln(s.stdout, "verified  its flash holds what was written")
	return s.restart(ctx)
}

// restart lets the robot go on, also where the person does not want to wait
// any longer: a chip that is left in reset would look dead.
func (s *flashing) restart(ctx context.Context) error {
	err := s.loader.Restart(context.WithoutCancel(ctx))
	var dark *romloader.Unreachable
	if errors.As(err, &dark) {
		fmt.Fprintln(s.stdout, "restart   the robot yourself, by its reset button or its power: this port cannot")
		return nil
	}
	return err
}

// save reads a partition into a file.
func (s *flashing) save(ctx context.Context, r flashed) error {
	where, err := s.flags.place(r, flashFile{})
	if err != nil {
		return err
	}
	out, b := make([]byte, 0, where.limit), &bar{size: where.limit, to: s.stderr, shown: -1, live: isTerminal(s.stderr)}
	for at := where.at; at < where.at+where.limit; at += romloader.Sector {
		piece, err := s.loader.Read(ctx, at, int(min(romloader.Sector, where.at+where.limit-at)))
		if err != nil {
			b.end()
			return err
		}
		out = append(out, piece...)
		b.at(int64(len(out)))
	}
	b.end()
	if err := saved(s.flags.file, out); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "saved     %s: %d bytes of %s, from %#x on\n", s.flags.file, len(out), where.name, where.at)
	return nil
}
