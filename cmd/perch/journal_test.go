package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"perch/must"
)

// TestJournal checks that lines for systemd's journal have a priority and no time, and that other lines have a
// time and a level.
func TestJournal(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logTo(&out, slog.LevelInfo, true)).With("robot", "a0b1c2d3e4f5")
	log.Debug("left out")
	log.Info("one", "why", "two words")
	log.Warn("two")
	log.WithGroup("g").Error("three", "err", "x")
	want := "<6>msg=one robot=a0b1c2d3e4f5 why=\"two words\"\n<4>msg=two robot=a0b1c2d3e4f5\n<3>msg=three robot=a0b1c2d3e4f5 g.err=x\n"
	if out.String() != want {
		t.Errorf("the journal is given\n%s, want\n%s", out.String(), want)
	}
	out.Reset()
	slog.New(logTo(&out, slog.LevelInfo, false)).Info("one")
	if !bytes.HasPrefix(out.Bytes(), []byte("time=")) || !bytes.Contains(out.Bytes(), []byte("level=INFO")) {
		t.Errorf("a terminal is given %s", out.String())
	}
}

func TestTheJournalsStream(t *testing.T) {
	file := must.Value(os.CreateTemp(t.TempDir(), ""))(t)
	defer file.Close()
	about := must.Value(file.Stat())(t)
	is := about.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]bool{
		fmt.Sprintf("%d:%d", is.Dev, is.Ino):   true,
		fmt.Sprintf("%d:%d", is.Dev, is.Ino+1): false,
		"":                                     false,
		"x":                                    false,
	} {
		if got := isJournal(stream, file); got != want {
			t.Errorf("JOURNAL_STREAM=%q: %t", stream, got)
		}
	}
}
