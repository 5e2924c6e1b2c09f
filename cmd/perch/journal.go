package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
)

// logTo returns a handler that writes the lines of a level and above to w. For systemd's journal
// each begins with its priority (sd-daemon(3)), so that journalctl -p warning finds the warnings,
// and has no time, which the journal records itself.
func logTo(w io.Writer, level slog.Level, asJournal bool) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if !asJournal {
		return slog.NewTextHandler(w, o)
	}
	o.ReplaceAttr = prioritize
	return slog.NewTextHandler(journal{w}, o)
}

// prioritize leaves out the time of a line, and makes its level syslog's priority.
func prioritize(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.TimeKey && a.Key != slog.LevelKey {
		return a
	}
	level, is := a.Value.Any().(slog.Level)
	switch {
	case !is:
		return slog.Attr{}
	case level >= slog.LevelError:
		return slog.Int(slog.LevelKey, 3)
	case level >= slog.LevelWarn:
		return slog.Int(slog.LevelKey, 4)
	case level >= slog.LevelInfo:
		return slog.Int(slog.LevelKey, 6)
	}
	return slog.Int(slog.LevelKey, 7)
}

// journal writes lines that begin with level=PRIORITY as <PRIORITY>. A handler writes each line
// in one call.
type journal struct{ io.Writer }

func (j journal) Write(line []byte) (int, error) {
	priority, rest, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(slog.LevelKey+"=")), []byte(" "))
	if _, err := fmt.Fprintf(j.Writer, "<%s>%s", priority, rest); err != nil {
		return 0, err
	}
	return len(line), nil
}

// toJournal reports whether a file is the stream to the journal, which systemd names as
// "device:inode" in JOURNAL_STREAM.
func toJournal(stream string, file *os.File) bool {
	var device, inode uint64
	if _, err := fmt.Sscanf(stream, "%d:%d", &device, &inode); err != nil {
		return false
	}
	about, err := file.Stat()
	if err != nil {
		return false
	}
	is, ok := about.Sys().(*syscall.Stat_t)
	return ok && uint64(is.Dev) == device && is.Ino == inode
}
