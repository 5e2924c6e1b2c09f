package appliance

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
	"perch/gateway/admin"
)

// What is kept of the log, for pages that follow it.
const (
	mostLines     = 500
	mostLogBytes  = 512 << 10 // of all lines
	mostLogLine   = 8 << 10   // of one, before its last attribute
	mostFollowers = 16
)

// Logs are the lines that were logged last. They are kept beside a handler that
// writes them, and are what it writes: what does not belong into a log is
// not here either. A line is written once into memory that is reused, and nobody waits for
// those who read: one who is slow finds that lines have gone by.
type Logs struct {
	run     string    // begins the ids, so that those of another start are not taken for ours
	scratch sync.Pool // of *[]byte

	mu        sync.Mutex
	bytes     []byte // a ring
	from      int    // where the oldest line begins in it
	used      int
	lines     [mostLines]keptLine // a ring
	first     int                 // the oldest of them
	count     int
	seq       uint64 // of the latest
	followers []*follower
	closed    bool
}

type keptLine struct {
	length int
	level  slog.Level
}

// NewLogs keeps nothing yet.
func NewLogs() *Logs {
	return &Logs{run: strconv.FormatInt(time.Now().UnixNano(), 36), scratch: sync.Pool{New: func() any { return new([]byte) }}}
}

// Beside is a handler that keeps what next writes.
func (l *Logs) Beside(next slog.Handler) slog.Handler { return &keeper{logs: l, next: next} }

// keeper is the handler beside another.
type keeper struct {
	logs   *Logs
	next   slog.Handler
	attrs  []byte // of the logger, as they are kept
	groups string // before the names of attributes
}

// Enabled implements slog.Handler: what is not written is not kept.
func (k *keeper) Enabled(ctx context.Context, level slog.Level) bool {
	return k.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (k *keeper) Handle(ctx context.Context, r slog.Record) error {
	k.logs.keep(k, r)
	return k.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (k *keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := *k
	own.next = k.next.WithAttrs(attrs)
	own.attrs = slices.Clone(k.attrs)
	for _, a := range attrs {
		own.attrs = appendAttr(own.attrs, k.groups, a)
	}
	return &own
}

// WithGroup implements slog.Handler.
func (k *keeper) WithGroup(name string) slog.Handler {
	own := *k
	own.next = k.next.WithGroup(name)
	if name != "" {
		own.groups += name + "."
	}
	return &own
}

// keep writes a line over the oldest. It is made before the lock is taken: what values
// say of themselves may log, too.
func (l *Logs) keep(k *keeper, r slog.Record) {
	scratch := l.scratch.Get().(*[]byte)
	defer l.scratch.Put(scratch)
	b := k.line((*scratch)[:0], r)
	if len(b) > 2*mostLogLine { // a buffer of this size is not kept
		b = (&keeper{}).line(nil, slog.NewRecord(r.Time, r.Level, r.Message, 0))
	} else {
		*scratch = b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == nil {
		l.bytes = make([]byte, mostLogBytes)
	}
	for l.count == mostLines || l.used+len(b) > len(l.bytes) {
		gone := l.lines[l.first].length
		l.from, l.used = (l.from+gone)%len(l.bytes), l.used-gone
		l.first, l.count = (l.first+1)%mostLines, l.count-1
	}
	at := (l.from + l.used) % len(l.bytes)
	if n := copy(l.bytes[at:], b); n < len(b) {
		copy(l.bytes, b[n:])
	}
	l.lines[(l.first+l.count)%mostLines] = keptLine{len(b), r.Level}
	l.used, l.count, l.seq = l.used+len(b), l.count+1, l.seq+1
	for _, f := range l.followers {
		select {
		case f.wake <- struct{}{}:
		default: // it has not read what it was woken for
		}
	}
}

// line is a record as it is kept.
func (k *keeper) line(b []byte, r slog.Record) []byte {
	b = append(b, `{"at":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, levelName(r.Level)...)
	b = append(b, `","msg":`...)
	b = appendText(b, r.Message)
	b = append(b, `,"attrs":{`...)
	begun := len(b)
	b = append(b, k.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, k.groups, a)
		return len(b) < mostLogLine
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
		b = appendText(b, written(v.Any()))
	default: // a duration, a number with a point
		b = appendText(b, v.String())
	}
	return append(b, ',')
}

// written is a value as the handlers of text write it. Some hide what they are.
func written(v any) (text string) {
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
		if len(b)-begun > mostLogLine/2 {
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

// Follow implements what the owner's door reads the log by.
func (l *Logs) Follow(least slog.Level, after string) (admin.LogFollower, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.followers) >= mostFollowers {
		return nil, false
	}
	f := &follower{logs: l, least: least, wake: make(chan struct{}, 1), next: l.seq - uint64(l.count) + 1}
	if number, ours := strings.CutPrefix(after, l.run+"."); ours {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n <= l.seq {
			f.next = n + 1
		}
	}
	l.followers = append(l.followers, f)
	return f, true
}

// Close ends everybody who follows.
func (l *Logs) Close() {
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
	logs  *Logs
	least slog.Level
	wake  chan struct{}
	next  uint64 // the line that it reads next
}

// Next implements admin.LogFollower.
func (f *follower) Next(ctx context.Context) (id string, line json.RawMessage, missed int, err error) {
	for {
		if id, line, missed = f.take(); line != nil {
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

// take copies the next line of its level, if there is one.
func (f *follower) take() (id string, line json.RawMessage, missed int) {
	l := f.logs
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
		at, i = (at+kept.length)%len(l.bytes), (i+1)%mostLines
	}
	f.next = l.seq + 1
	return "", nil, missed
}

// Close implements admin.LogFollower.
func (f *follower) Close() {
	f.logs.mu.Lock()
	defer f.logs.mu.Unlock()
	f.logs.followers = slices.DeleteFunc(f.logs.followers, func(one *follower) bool { return one == f })
}
