package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"perch/cmd/perch/appliance"
)

// journal writes lines as systemd's journal reads them: each begins with its
// priority (sd-daemon(3)), so that journalctl -p warning finds the warnings, and
// none has a time, for the journal notes that itself.
type journal []slog.Handler // by priority

// priorities are syslog's, the lowest level first.
var priorities = []struct {
	from slog.Level
	at   int
}{{slog.LevelDebug, 7}, {slog.LevelInfo, 6}, {slog.LevelWarn, 4}, {slog.LevelError, 3}}

// logTo is where lines of a level and above go, as the journal reads them or with
// the time.
func logTo(w io.Writer, level slog.Level, asJournal bool) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if !asJournal {
		return slog.NewTextHandler(w, o)
	}
	o.ReplaceAttr = appliance.Bare
	var j journal
	for _, p := range priorities {
		j = append(j, slog.NewTextHandler(prefixed{w, fmt.Sprintf("<%d>", p.at)}, o))
	}
	return j
}

// toJournal reports whether a file is the stream to the journal that systemd
// names as "device:inode" in JOURNAL_STREAM. Another file is
// read by another program.
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

// Enabled reports whether a level is worth a line.
func (j journal) Enabled(ctx context.Context, level slog.Level) bool {
	return j.of(level).Enabled(ctx, level)
}

// Handle writes a line.
func (j journal) Handle(ctx context.Context, r slog.Record) error {
	return j.of(r.Level).Handle(ctx, r)
}

// of is the handler of the highest level that is not above this one.
func (j journal) of(level slog.Level) slog.Handler {
	at := 0
	for i, p := range priorities {
		if level >= p.from {
			at = i
		}
	}
	return j[at]
}

// WithAttrs adds to every line.
func (j journal) WithAttrs(a []slog.Attr) slog.Handler {
	return j.each(func(h slog.Handler) slog.Handler { return h.WithAttrs(a) })
}

// WithGroup names what is added.
func (j journal) WithGroup(name string) slog.Handler {
	return j.each(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (j journal) each(change func(slog.Handler) slog.Handler) slog.Handler {
	changed := make(journal, len(j))
	for i, h := range j {
		changed[i] = change(h)
	}
	return changed
}

// prefixed begins every write with a text. A handler writes each line at once.
type prefixed struct {
	w    io.Writer
	text string
}

func (p prefixed) Write(line []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.text), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
