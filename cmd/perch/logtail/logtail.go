// Package logtail keeps the latest lines of the log in memory, and lets pages follow it.
package logtail

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"perch/event"
	"perch/gateway/owner/admin"
)

// Bounds of what is kept.
const (
	maxLines     = 500
	maxBytes     = 512 << 10 // of all lines
	maxLine      = 8 << 10   // of one, before its last attribute
	maxFollowers = 16
)

// Log holds the lines that were logged last, as another handler writes them: a value that hides
// itself there is hidden here, too. A line is written once into memory that
// is reused, and nobody waits for those who read: a slow follower learns that it missed lines.
type Log struct {
	run     string    // begins the ids, so that those of another start are not taken for ours
	scratch sync.Pool // of *[]byte

	mu        sync.Mutex
	bytes     []byte // a ring
	from      int    // where the oldest line begins in it
	used      int
	lines     [maxLines]entry // a ring
	first     int             // the oldest of them
	count     int
	seq       uint64 // of the latest
	followers []*follower
	closed    bool
}

// entry describes a line in the ring of bytes.
type entry struct {
	length int
	level  slog.Level
}

// New returns an empty log.
func New() *Log {
	return &Log{run: strconv.FormatInt(time.Now().UnixNano(), 36), scratch: sync.Pool{New: func() any { return new([]byte) }}}
}

// Handler returns a handler that passes records to next, and keeps what next writes.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{log: l, next: next} }

// handler keeps what another handler writes.
type handler struct {
	log    *Log
	next   slog.Handler
	attrs  []byte // of the logger, as they are kept
	groups string // before the names of attributes
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.log.append(h, r)
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := *h
	own.next = h.next.WithAttrs(attrs)
	own.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		own.attrs = appendAttr(own.attrs, h.groups, a)
	}
	return &own
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	own := *h
	own.next = h.next.WithGroup(name)
	if name != "" {
		own.groups += name + "."
	}
	return &own
}

// append writes a line over the oldest. The line is formatted before the lock is acquired:
// a value's own methods may log, too.
func (l *Log) append(h *handler, r slog.Record) {
	scratch := l.scratch.Get().(*[]byte)
	defer l.scratch.Put(scratch)
	b := h.line((*scratch)[:0], r)
	if len(b) > 2*maxLine { // a buffer of this size is not kept
		b = (&handler{}).line(nil, slog.NewRecord(r.Time, r.Level, r.Message, 0))
	} else {
		*scratch = b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == nil {
		l.bytes = make([]byte, maxBytes)
	}
	for l.count == maxLines || l.used+len(b) > len(l.bytes) {
		gone := l.lines[l.first].length
		l.from, l.used = (l.from+gone)%len(l.bytes), l.used-gone
		l.first, l.count = (l.first+1)%maxLines, l.count-1
	}
	at := (l.from + l.used) % len(l.bytes)
	if n := copy(l.bytes[at:], b); n < len(b) {
		copy(l.bytes, b[n:])
	}
	l.lines[(l.first+l.count)%maxLines] = entry{len(b), r.Level}
	l.used, l.count, l.seq = l.used+len(b), l.count+1, l.seq+1
	for _, f := range l.followers {
		select {
		case f.wake <- struct{}{}:
		default: // it has not read what it was woken for
		}
	}
}

// line appends a record as it is kept: as JSON.
func (h *handler) line(b []byte, r slog.Record) []byte {
	b = append(b, `{"at":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, levelName(r.Level)...)
	b = append(b, `","msg":`...)
	b = appendText(b, r.Message)
	b = append(b, `,"attrs":{`...)
	begun := len(b)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.groups, a)
		return len(b) < maxLine
	})
	if len(b) > begun { // each attribute ends with a comma
		b = b[:len(b)-1]
	}
	return append(b, "}}"...)
}

func levelName(level slog.Level) string {
	switch level {
	case slog.LevelDebug:
		return "debug"
	case slog.LevelInfo:
		return "info"
	case slog.LevelWarn:
		return "warn"
	case slog.LevelError:
		return "error"
	}
	return strings.ToLower(level.String())
}

// appendAttr appends an attribute and a comma, or those of a group.
func appendAttr(b []byte, groups string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			groups += a.Key + "."
		}
		for _, one := range v.Group() {
			b = appendAttr(b, groups, one)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	if groups == "" {
		b = appendText(b, a.Key)
	} else {
		b = appendText(b, groups+a.Key)
	}
	b = append(b, ':')
	switch v.Kind() {
	case slog.KindString:
		b = appendText(b, v.String())
	case slog.KindInt64:
		b = strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		b = strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindBool:
		b = strconv.AppendBool(b, v.Bool())
	case slog.KindTime:
		b = append(b, '"')
		b = v.Time().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	case slog.KindAny:
		b = appendText(b, textOf(v.Any()))
	default: // a duration, a number with a point
		b = appendText(b, v.String())
	}
	return append(b, ',')
}

// textOf returns a value as the handlers of text write it. Some values hide themselves there.
func textOf(v any) (text string) {
	defer func() {
		if p := recover(); p != nil { // as of a nil pointer, which those handlers survive as well
			text = fmt.Sprintf("!PANIC: %v", p)
		}
	}()
	switch v := v.(type) {
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return string(text)
		}
	case []byte:
		return string(v)
	}
	return fmt.Sprintf("%+v", v)
}

// appendText appends a text as JSON, cut where it is long.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	begun := len(b)
	for _, r := range s {
		if len(b)-begun > maxLine/2 {
			b = append(b, "…"...)
			break
		}
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r) // what is no UTF-8 is replaced
		}
	}
	return append(b, '"')
}

// NewFollower returns a reader of the lines of a level and above: of all that are kept, or of those
// after the one with an id. ok is false where too many read already.
func (l *Log) NewFollower(least slog.Level, after string) (admin.LogFollower, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.followers) >= maxFollowers {
		return nil, false
	}
	f := &follower{log: l, least: least, wake: make(chan struct{}, 1), next: l.seq - uint64(l.count) + 1}
	if number, ours := strings.CutPrefix(after, l.run+"."); ours {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n <= l.seq {
			f.next = n + 1
		}
	}
	l.followers = append(l.followers, f)
	return f, true
}

// Close ends all followers.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		for _, f := range l.followers {
			close(f.wake)
		}
		l.followers = nil
	}
}

// follower reads the log for one page.
type follower struct {
	log   *Log
	least slog.Level
	wake  chan struct{}
	next  uint64 // the line that it reads next
}

// Next implements admin.LogFollower.
func (f *follower) Next(ctx context.Context) (id string, line json.RawMessage, missed int, err error) {
	for {
		if id, line, missed = f.read(); line != nil {
			return id, line, missed, nil
		}
		select {
		case <-ctx.Done():
			return "", nil, 0, ctx.Err()
		case _, more := <-f.wake:
			if !more {
				return "", nil, 0, event.ErrClosed
			}
		}
	}
}

// read returns a copy of the next line of its level; the line is nil if there is none yet.
func (f *follower) read() (id string, line json.RawMessage, missed int) {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.seq - uint64(l.count) + 1
	if f.next < oldest {
		missed, f.next = int(oldest-f.next), oldest
	}
	at, i := l.from, l.first
	for seq := oldest; seq <= l.seq; seq++ {
		kept := l.lines[i]
		if seq >= f.next && kept.level >= f.least {
			f.next = seq + 1
			line = make([]byte, kept.length)
			if n := copy(line, l.bytes[at:]); n < kept.length {
				copy(line[n:], l.bytes)
			}
			return l.run + "." + strconv.FormatUint(seq, 10), line, missed
		}
		at, i = (at+kept.length)%len(l.bytes), (i+1)%maxLines
	}
	f.next = l.seq + 1
	return "", nil, missed
}

// Close implements admin.LogFollower.
func (f *follower) Close() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.followers = slices.DeleteFunc(f.log.followers, func(one *follower) bool { return one == f })
}
