// Package logtail stores the latest lines of the log in memory, for the owner's page to follow.
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

	"perch/event"
	"perch/gateway/owner/admin"
	"perch/plain"
)

// Limits of a Log.
const (
	maxLines     = 500       // of one ring
	maxBytes     = 512 << 10 // size of all lines of one ring
	maxLine      = 8 << 10   // bytes of a line after which its further attributes are left out
	maxFollowers = 16
)

// Log stores the latest lines of the log in JSON. Lines below the level info have a separate ring,
// so that they cannot displace other lines. Values are formatted as slog.TextHandler formats
// them, so a type that hides a secret from slog.TextHandler hides the secret from Log, too. Writers do
// not wait for readers: a slow follower misses lines, and receives the number of missed lines.
type Log struct {
	run string // prefix of the line IDs; differs for each run of the program

	mu        sync.Mutex
	rings     [2]ring // lines of the level info and above, and lines below it
	followers []*follower
	closed    bool
}

// ring holds the newest lines of some levels.
type ring struct {
	lines []entry // oldest first
	bytes int     // size of all lines
	last  uint64  // number of the latest line in this ring, from 1
}

// entry is a stored line. It is immutable.
type entry struct {
	text  json.RawMessage
	level slog.Level
	seq   uint64 // number of the line among the lines of both rings
}

// add appends a line, and drops the oldest lines beyond the limits.
func (r *ring) add(e entry) {
	r.bytes += len(e.text)
	r.lines = append(r.lines, e)
	r.last++
	old := 0
	for len(r.lines)-old > maxLines || r.bytes > maxBytes {
		r.bytes -= len(r.lines[old].text)
		old++
	}
	r.lines = slices.Delete(r.lines, 0, old)
}

// oldest returns the number of the oldest stored line.
func (r *ring) oldest() uint64 { return r.last - uint64(len(r.lines)) + 1 }

// New returns an empty log.
func New() *Log { return &Log{run: strconv.FormatInt(time.Now().UnixNano(), 36)} }

// Handler returns a handler that passes records to next, and stores them.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{log: l, next: next} }

// handler stores records before it passes them to the next handler.
type handler struct {
	log    *Log
	next   slog.Handler
	attrs  []byte // the logger's attributes in JSON, each followed by a comma
	groups string // prefix of attribute names, such as "a.b."
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
	derived := *h
	derived.next = h.next.WithAttrs(attrs)
	derived.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		derived.attrs = appendAttr(derived.attrs, h.groups, a)
	}
	return &derived
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.next = h.next.WithGroup(name)
	if name != "" {
		derived.groups += name + "."
	}
	return &derived
}

// append stores a record, and wakes the followers. It stores a record of more than 2*maxLine bytes without
// attributes. It formats the record before it acquires the lock, because the methods of a value may log as
// well.
func (l *Log) append(h *handler, r slog.Record) {
	b := h.line(r)
	if len(b) > 2*maxLine {
		b = (&handler{}).line(slog.NewRecord(r.Time, r.Level, r.Message, 0))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	to := &l.rings[0]
	if r.Level < slog.LevelInfo {
		to = &l.rings[1]
	}
	to.add(entry{b, r.Level, l.rings[0].last + l.rings[1].last + 1})
	for _, f := range l.followers {
		select {
		case f.wake <- struct{}{}:
		default: // already woken
		}
	}
}

// line returns a record in JSON. Once the line is longer than maxLine, it leaves out the other
// attributes.
func (h *handler) line(r slog.Record) []byte {
	b := append(make([]byte, 0, 1<<10), `{"at":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, strings.ToLower(r.Level.String())...)
	b = append(b, `","msg":`...)
	b = appendText(b, r.Message)
	b = append(b, `,"attrs":{`...)
	start := len(b)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.groups, a)
		return len(b) < maxLine
	})
	if len(b) > start { // remove the comma of the last attribute
		b = b[:len(b)-1]
	}
	return bytes.Clone(append(b, "}}"...))
}

// appendAttr appends an attribute and a comma. For a group it appends each attribute of the group.
func appendAttr(b []byte, groups string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			groups += a.Key + "."
		}
		for _, member := range v.Group() {
			b = appendAttr(b, groups, member)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	b = append(appendText(b, groups+a.Key), ':')
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindBool:
		b = append(b, v.String()...)
	case slog.KindTime:
		b = appendText(b, v.Time().Format(time.RFC3339Nano))
	case slog.KindAny:
		b = appendText(b, textOf(v.Any()))
	default: // a text, a duration or a floating-point number
		b = appendText(b, v.String())
	}
	return append(b, ',')
}

// textOf formats a value as slog.TextHandler does.
func textOf(v any) (text string) {
	defer func() {
		if p := recover(); p != nil { // for example a nil receiver; slog.TextHandler recovers as well
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

// appendText appends a JSON string. It truncates s at maxLine/2 bytes.
func appendText(b []byte, s string) []byte {
	if len(s) > maxLine/2 {
		s = plain.Clip(s, maxLine/2) + "…"
	}
	text, _ := json.Marshal(s) // encoding a string cannot fail
	return append(b, text...)
}

// NewFollower returns a reader of the lines with at least the level minLevel. The reader begins
// after the line with the ID after. If after is empty, or the ID of an earlier run of the program,
// the reader begins with the oldest line. It returns false if there are too many followers.
func (l *Log) NewFollower(minLevel slog.Level, after string) (admin.LogFollower, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.followers) >= maxFollowers {
		return nil, false
	}
	f := &follower{log: l, minLevel: minLevel, wake: make(chan struct{}, 1), next: [2]uint64{l.rings[0].oldest(), l.rings[1].oldest()}}
	if numbers := strings.Split(after, "."); len(numbers) == 1+len(f.next) && numbers[0] == l.run {
		for i := range f.next {
			if n, err := strconv.ParseUint(numbers[1+i], 10, 64); err == nil && n <= l.rings[i].last {
				f.next[i] = n + 1
			}
		}
	}
	if l.closed {
		close(f.wake)
	} else {
		l.followers = append(l.followers, f)
	}
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

// follower reads the log for one client.
type follower struct {
	log      *Log
	minLevel slog.Level
	wake     chan struct{} // receives a value after a line was appended; closed when the log is closed
	next     [2]uint64     // numbers of the next lines to read; index: as in Log.rings
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

// read returns the next line with at least the follower's level, its ID, and the number of lines that
// were dropped before the follower could read them. line is nil if no such line is stored yet.
func (f *follower) read() (id string, line json.RawMessage, missed int) {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rings {
		if oldest := l.rings[i].oldest(); f.next[i] < oldest {
			if i == 0 || f.minLevel < slog.LevelInfo {
				missed += int(oldest - f.next[i])
			}
			f.next[i] = oldest
		}
	}
	for {
		e, i, ok := f.earliest()
		if !ok {
			return "", nil, missed
		}
		f.next[i]++
		if e.level >= f.minLevel {
			return fmt.Sprintf("%s.%d.%d", l.run, f.next[0]-1, f.next[1]-1), e.text, missed
		}
	}
}

// earliest returns the earlier one of the next lines of the two rings, and the index of its ring. It
// returns false if all lines have been read. The caller holds the log's mu.
func (f *follower) earliest() (e entry, index int, ok bool) {
	for i := range f.log.rings {
		r := &f.log.rings[i]
		if f.next[i] > r.last {
			continue
		}
		if next := r.lines[f.next[i]-r.oldest()]; !ok || next.seq < e.seq {
			e, index, ok = next, i, true
		}
	}
	return e, index, ok
}

// Close implements admin.LogFollower.
func (f *follower) Close() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.followers = slices.DeleteFunc(f.log.followers, func(other *follower) bool { return other == f })
}
