package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
)

// logTo returns a handler that writes log lines of at least the given level to w. If asJournal is set,
// each line begins with a priority for systemd's journal (see sd-daemon(3)), so that journalctl -p warning
// finds warnings. The line has no time then, since the journal records the time itself.
func logTo(w io.Writer, level slog.Level, asJournal bool) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if !asJournal {
		return slog.NewTextHandler(w, o)
	}
	o.ReplaceAttr = replaceForJournal
	return slog.NewTextHandler(journal{w}, o)
}

// replaceForJournal removes the time of a line, and replaces its level by a syslog priority.
func replaceForJournal(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.TimeKey && a.Key != slog.LevelKey {
		return a
	}
	level, isLevel := a.Value.Any().(slog.Level)
	switch {
	case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.Attr{}
	case !isLevel:
		return a
	case level >= slog.LevelError:
		return slog.Int(slog.LevelKey, 3)
	case level >= slog.LevelWarn:
		return slog.Int(slog.LevelKey, 4)
	case level >= slog.LevelInfo:
		return slog.Int(slog.LevelKey, 6)
	}
	return slog.Int(slog.LevelKey, 7)
}

// journal is a writer that replaces level=PRIORITY at the beginning of a line by <PRIORITY>.
type journal struct{ io.Writer }

// Write writes one line. A slog handler calls Write once for each line.
func (j journal) Write(line []byte) (int, error) {
	priority, rest, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(slog.LevelKey+"=")), []byte(" "))
	if _, err := fmt.Fprintf(j.Writer, "<%s>%s", priority, rest); err != nil {
		return 0, err
	}
	return len(line), nil
}

// isJournal reports whether a file is the stream to systemd's journal. stream is the value of the variable
// JOURNAL_STREAM: "device:inode".
func isJournal(stream string, file *os.File) bool {
	var device, inode uint64
	if _, err := fmt.Sscanf(stream, "%d:%d", &device, &inode); err != nil {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && uint64(stat.Dev) == device && stat.Ino == inode
}
