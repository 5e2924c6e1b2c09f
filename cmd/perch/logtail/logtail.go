// Package logtail stores the latest lines of the log in memory, and lets pages follow it.
package logtail

import (
	"bytes"
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

// Bounds of what is stored.
const (
	maxLines     = 500
	maxBytes     = 512 << 10 // of all lines
	maxLine      = 8 << 10   // of one, before its last attribute
	maxFollowers = 16
)

// Log stores the latest lines in JSON. A value that hides itself from the next handler is hidden here,
// too. Writers do not wait for readers: a slow follower learns that it missed lines.
type Log struct {
	run string // begins the ids, which differ from those of another start

	mu        sync.Mutex
	lines     []entry // the oldest first
	bytes     int     // of all lines
	seq       uint64  // of the latest
	followers []*follower
	closed    bool
}

// entry is a line, which is not changed any more.
type entry struct {
	text  json.RawMessage
	level slog.Level
}

// New returns an empty log.
func New() *Log { return &Log{run: strconv.FormatInt(time.Now().UnixNano(), 36)} }

// Handler returns a handler that passes records to next, and stores them.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{log: l, next: next} }

// handler stores the records of another handler.
type handler struct {
	log    *Log
	next   slog.Handler
	attrs  []byte // of the logger, in JSON, each with a comma
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

// append stores a record. It is formatted before the lock is acquired: a value's own methods may log, too.
func (l *Log) append(h *handler, r slog.Record) {
	b := h.line(r)
	if len(b) > 2*maxLine {
		b = (&handler{}).line(slog.NewRecord(r.Time, r.Level, r.Message, 0))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += len(b)
	l.lines = append(l.lines, entry{b, r.Level})
	l.seq++
	old := 0
	for len(l.lines)-old > maxLines || l.bytes > maxBytes {
		l.bytes -= len(l.lines[old].text)
		old++
	}
	l.lines = slices.Delete(l.lines, 0, old)
	for _, f := range l.followers {
		select {
		case f.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// line returns a record in JSON.
func (h *handler) line(r slog.Record) []byte {
	b := append(make([]byte, 0, 1<<10), `{"at":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, strings.ToLower(r.Level.String())...)
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
	return bytes.Clone(append(b, "}}"...))
}

// appendAttr appends an attribute and a comma, or all of a group.
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
	b = append(appendText(b, groups+a.Key), ':')
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

// textOf returns a value as slog.TextHandler writes it. Some values hide themselves there.
func textOf(v any) (text string) {
	defer func() {
		if p := recover(); p != nil { // as of a nil pointer; slog.TextHandler recovers as well
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

// appendText appends a text as JSON, cut if it is long.
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
			b = utf8.AppendRune(b, r) // invalid UTF-8 is replaced
		}
	}
	return append(b, '"')
}

// NewFollower returns a reader of the lines of a level and above: of all that are stored, or of all
// after an id. ok is false if too many followers exist.
func (l *Log) NewFollower(least slog.Level, after string) (admin.LogFollower, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.followers) >= maxFollowers {
		return nil, false
	}
	f := &follower{log: l, least: least, wake: make(chan struct{}, 1), next: l.oldest()}
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

// oldest returns the number of the oldest line. The lock must be held.
func (l *Log) oldest() uint64 { return l.seq - uint64(len(l.lines)) + 1 }

// read returns the next line of its level, or a nil line if it must wait.
func (f *follower) read() (id string, line json.RawMessage, missed int) {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.oldest()
	if f.next < oldest {
		missed, f.next = int(oldest-f.next), oldest
	}
	for f.next <= l.seq {
		e := l.lines[f.next-oldest]
		f.next++
		if e.level >= f.least {
			return l.run + "." + strconv.FormatUint(f.next-1, 10), e.text, missed
		}
	}
	return "", nil, missed
}

// Close implements admin.LogFollower.
func (f *follower) Close() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.followers = slices.DeleteFunc(f.log.followers, func(one *follower) bool { return one == f })
}
