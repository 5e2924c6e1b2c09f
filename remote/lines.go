package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"perch/limit"
)

// ErrTooLong is returned for a line or event above its limit.
var ErrTooLong = errors.New("a line is too long")

// Lines reads a stream line by line, and buffers at most one line.
type Lines struct {
	R    *bufio.Reader
	Most int // bytes per line
	// Ends is how many bytes are kept of each end of a longer line, which is then read to
	// its end. If 0, such a line is not read further.
	Ends int
	// CR makes a CR end a line as well, even if the network has split a CRLF. The line is
	// returned at once: waiting for the LF would delay it.
	CR bool

	started bool
	cr      bool // the previous line ended with a CR
	line    []byte
}

// Next returns a line without its end, valid until the next call. The rest at the end of the
// stream is a line as well. With ErrTooLong it returns both ends of the line, joined.
func (l *Lines) Next() ([]byte, error) {
	if l.line = l.line[:0]; cap(l.line) > limit.File {
		l.line = nil // a long line should not hold that memory for ever
	}
	ends := "\n"
	if l.CR {
		ends = "\r\n"
	}
	var tail []byte // of a line that is too long
	long := false
	for {
		if _, err := l.R.Peek(1); err != nil {
			if err == io.EOF && len(l.line) > 0 {
				return l.whole(tail, long)
			}
			return nil, err
		}
		part, _ := l.R.Peek(l.R.Buffered()) // buffered
		if l.cr && part[0] == '\n' {
			l.cr = false
			_, _ = l.R.Discard(1)
			continue
		}
		at := bytes.IndexAny(part, ends)
		l.cr = at >= 0 && part[at] == '\r'
		read := len(part)
		if at >= 0 {
			part, read = part[:at], at+1
		}
		switch {
		case long:
			tail = append(tail, part...)
		case len(l.line)+len(part) <= l.Most:
			l.line = append(l.line, part...)
		case l.Ends == 0:
			return nil, ErrTooLong
		default:
			long, tail = true, append(bytes.Clone(l.line), part...)
			l.line = bytes.Clone(tail[:min(len(tail), l.Ends)])
		}
		if over := len(tail) - l.Ends; over > 0 {
			tail = append(tail[:0], tail[over:]...)
		}
		_, _ = l.R.Discard(read) // buffered
		if at >= 0 {
			return l.whole(tail, long)
		}
	}
}

func (l *Lines) whole(tail []byte, long bool) ([]byte, error) {
	if long {
		return append(l.line, tail...), ErrTooLong
	}
	if !l.started {
		l.started = true
		return bytes.TrimPrefix(l.line, []byte("\ufeff")), nil
	}
	return l.line, nil
}

// Events reads server-sent events as in the HTML standard, without fields that no driver
// needs. It also accepts llama.cpp's field "error", and a last event without its blank
// line.
type Events struct {
	Lines Lines
	data  []byte
}

// NewEvents returns a reader of events of at most most bytes.
func NewEvents(r *bufio.Reader, most int) *Events {
	return &Events{Lines: Lines{R: r, Most: most, CR: true}}
}

// Next returns an event's data, valid until the next call.
func (e *Events) Next() ([]byte, error) {
	e.data = e.data[:0]
	for {
		line, err := e.Lines.Next()
		if err == io.EOF && len(e.data) > 0 {
			return e.data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(e.data) > 0 {
				return e.data, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			err = e.add(value)
		case "error":
			if err = e.add([]byte(`{"error":`)); err == nil {
				err = e.add(append(bytes.Clone(value), '}'))
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

func (e *Events) add(value []byte) error {
	if len(e.data)+1+len(value) > e.Lines.Most {
		return ErrTooLong
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, value...)
	return nil
}
