package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"perch/command"
	"perch/firmware-tools/romloader"
	"perch/ota/espimage"
)

// flashing is a robot in its loader.
type flashing struct {
	flags  *flashFlags
	loader *romloader.Loader
	port   *romloader.Port
	usb    bool
	out    lines
	stderr io.Writer
}

// run writes or reads. A robot that was not written to goes on as before.
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
		s.show(p)
		if !s.flags.dry {
			return s.write(ctx, p)
		}
		s.out.step("dry run", "nothing is written")
	}
	return errors.Join(err, s.restart(ctx))
}

// look reads the robot's chip and its partition table.
func (s *flashing) look(ctx context.Context) (r flashed, err error) {
	l := s.loader
	if err := locked(l.Security); err != nil {
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
	r.Robot = l.Robot
	s.out.step("chip", "%v, revision %d.%d, %d MB of flash", r.Chip, r.Revision/100, r.Revision%100, r.Size>>20)
	b, err := l.Read(ctx, espimage.TableOffset, espimage.TableSize)
	if err != nil {
		return r, err
	}
	r.table, err = espimage.ParseTable(b)
	if err == nil && r.table.End() > r.Size {
		err = fmt.Errorf("the robot's partition table speaks of %d bytes of flash, and it has %d", r.table.End(), r.Size)
	}
	if err != nil {
		r.noTable = fmt.Errorf("the robot's partitions are not known: %w; a merged image of its board, with --all, sets it up again", err)
		return r, nil
	}
	return r, s.running(ctx, &r)
}

// running reads which partition the robot starts, and its application.
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
		s.out.step("starts", "%s, which holds no application", starts.Name)
		return nil
	}
	s.out.step("starts", "%s: %s %s", starts.Name, r.app.Project, r.app.Version)
	return nil
}

func (s *flashing) show(p flashPlan) {
	s.out.step("file", "%s", p.what)
	for _, w := range p.writes {
		s.out.step("write", "%s: %#x to %#x", w.where, w.at, w.at+int64(len(w.data)))
	}
	if s.flags.board != "" {
		s.out.step("board", "%s, by --board", plainText(s.flags.board))
	}
	for _, n := range p.notes {
		s.out.step("note", "%s", n)
	}
}

// write carries a plan out. Its error says what state the robot is left in.
func (s *flashing) write(ctx context.Context, p flashPlan) error {
	for _, w := range p.writes {
		b := command.NewProgress(s.stderr, int64(len(w.data)))
		err := s.loader.Write(ctx, w.at, w.data, func(n int) { b.At(int64(n)) })
		b.End()
		if err != nil {
			return fmt.Errorf(
				"%w; %s is half written, and must be flashed again before the robot works: the same command goes on where this one stopped. "+
					"Nothing else in the robot was touched", err, w.where)
		}
	}
	s.out.step("verified", "its flash holds what was written")
	return s.restart(ctx)
}

// restart lets the robot go on, also after an interruption: a chip that stays
// in reset looks dead.
func (s *flashing) restart(ctx context.Context) error {
	err := s.loader.Restart(context.WithoutCancel(ctx))
	if _, dark := errors.AsType[*romloader.Unreachable](err); dark {
		s.out.step("restart", "the robot yourself, by its reset button or its power: this port cannot")
		return nil
	}
	return err
}

func (s *flashing) save(ctx context.Context, r flashed) error {
	where, err := s.flags.place(r, flashFile{})
	if err != nil {
		return err
	}
	out, b := make([]byte, 0, where.limit), command.NewProgress(s.stderr, where.limit)
	for at := where.at; at < where.at+where.limit; at += romloader.Sector {
		piece, err := s.loader.Read(ctx, at, int(min(romloader.Sector, where.at+where.limit-at)))
		if err != nil {
			b.End()
			return err
		}
		out = append(out, piece...)
		b.At(int64(len(out)))
	}
	b.End()
	if err := replace(s.flags.file, out, 0o600); err != nil { // settings hold passwords
		if path, is := errors.AsType[*fs.PathError](err); is {
			err = path.Err
		}
		return fmt.Errorf("write %s: %w", s.flags.file, err)
	}
	s.out.step("saved", "%s: %d bytes of %s, from %#x on", s.flags.file, len(out), where.name, where.at)
	return nil
}
