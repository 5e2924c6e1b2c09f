package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"perch/limit"
)

// ErrTooLong is returned for a line, or the data of an event, that is longer than allowed.
var ErrTooLong = errors.New("a line is too long")

// Lines reads a stream line by line, and buffers at most one line.
type Lines struct {
	R        *bufio.Reader
	MaxBytes int // maximum length of a line
	// Ends applies to a line longer than MaxBytes: Next reads the line to its end, and returns
	// its first Ends and its last Ends bytes. If Ends is 0, Next returns no bytes of the line, and
	// does not read the rest of the line.
	Ends int
	// CR means that a CR ends a line too, alone or before an LF. A line that ends with a CR
	// is returned without waiting for an LF.
	CR bool

	started bool   // whether a line was returned
	cr      bool   // whether the previous line ended with a CR
	line    []byte // buffer of the current line
}

// Next returns the next line without its line ending. The line is valid until the next call.
// Text at the end of the stream without a line ending is a line too. If a line is longer than
// MaxBytes, Next returns ErrTooLong; see Ends. Other errors, such as io.EOF, are those of R.
func (l *Lines) Next() ([]byte, error) {
	if l.line = l.line[:0]; cap(l.line) > limit.File {
		l.line = nil // frees the memory of a long line
	}
	ends := "\n"
	if l.CR {
		ends = "\r\n"
	}
	var tail []byte // the end of a line that is too long
	long := false   // whether the line is too long
	for {
		if _, err := l.R.Peek(1); err != nil {
			if err == io.EOF && len(l.line) > 0 {
				return l.finishLine(tail, long)
			}
			return nil, err
		}
		part, _ := l.R.Peek(l.R.Buffered()) // cannot fail
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
		case len(l.line)+len(part) <= l.MaxBytes:
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
		_, _ = l.R.Discard(read) // cannot fail
		if at >= 0 {
			return l.finishLine(tail, long)
		}
	}
}

// finishLine returns the line that was read. It removes the byte order mark of the first line.
func (l *Lines) finishLine(tail []byte, long bool) ([]byte, error) {
	if long {
		return append(l.line, tail...), ErrTooLong
	}
	if !l.started {
		l.started = true
		return bytes.TrimPrefix(l.line, []byte("\ufeff")), nil
	}
	return l.line, nil
}

// Events reads server-sent events as the HTML standard describes them, but ignores every
// field except data. It also accepts llama.cpp's field "error", and a last event without a
// blank line after it.
type Events struct {
	Lines Lines
	data  []byte // buffer of the current event's data
}

// NewEvents returns a reader of events that have at most maxBytes bytes of data.
func NewEvents(r *bufio.Reader, maxBytes int) *Events {
	return &Events{Lines: Lines{R: r, MaxBytes: maxBytes, CR: true}}
}

// Next returns the data of the next event. The data is valid until the next call. The errors are
// those of Lines.Next.
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

// add adds a line of data to the current event.
func (e *Events) add(value []byte) error {
	if len(e.data)+1+len(value) > e.Lines.MaxBytes {
		return ErrTooLong
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, value...)
	return nil
}
