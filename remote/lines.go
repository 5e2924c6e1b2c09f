package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"perch/limit"
)

// ErrTooLong is returned for a line, or an event, that is longer than may be.
var ErrTooLong = errors.New("a line is too long")

// Lines reads a stream line by line, and holds no more of it than one line.
type Lines struct {
	R    *bufio.Reader
	Most int // bytes of a line
	// Ends is how many bytes are kept of either end of a line that is longer, which
	// is then read to its end. Where it is 0 such a line is not read any further.
	Ends int
	// CR has a CR end a line as well, wherever the network has split a CRLF. It does
	// at once: waiting for the LF would hold back what is complete.
	CR bool

	started bool
	cr      bool // the line before ended with one
	line    []byte
}

// Next returns a line without its end, valid until the next call. What is left
// at the end of the stream is a line as well. With ErrTooLong come both ends of
// the line, joined.
func (l *Lines) Next() ([]byte, error) {
	if l.line = l.line[:0]; cap(l.line) > limit.File {
		l.line = nil // one long line should not hold so much memory for good
	}
	ends := "\n"
	if l.CR {
		ends = "\r\n"
	}
	var tail []byte // of one that is too long
	long := false
	for {
		if _, err := l.R.Peek(1); err != nil {
			if err == io.EOF && len(l.line) > 0 {
				return l.whole(tail, long)
			}
			return nil, err
		}
		part, _ := l.R.Peek(l.R.Buffered()) // is there
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
		_, _ = l.R.Discard(read) // is there
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

// Events reads server-sent events as the HTML standard has them, without the
// fields that no driver needs. It also takes llama.cpp's field "error", and
// an event that the end of the stream cut its blank line from.
type Events struct {
	Lines Lines
	data  []byte
}

// NewEvents reads events of at most so many bytes.
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
