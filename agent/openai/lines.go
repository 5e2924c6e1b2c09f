package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// What a server may send, in bytes.
const (
	longestLine  = 1 << 20 // and the longest event, and a whole answer in one piece
	mostAnswered = 16 << 20
	mostRefused  = 4 << 10 // of what comes with an HTTP error
)

var (
	errTooLong = errors.New("a line is longer than 1 MB")
	errTooMuch = errors.New("the answer is larger than 16 MB")
)

// capped reads so much and then fails, where io.LimitReader would pass for a
// clean end.
type capped struct {
	r    io.Reader
	left int
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// lines cuts a stream at CR, LF or CRLF, wherever the network split it. A CR
// ends a line at once: waiting for the LF would hold back what is complete.
type lines struct {
	r       *bufio.Reader
	started bool
	cr      bool // the line before ended with one
	line    []byte
}

// next returns a line without its end. It is valid until the next call. What
// is left at the end of the stream is a line as well.
func (l *lines) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		c, err := l.r.ReadByte()
		if err != nil {
			if err == io.EOF && len(l.line) > 0 {
				return l.whole(), nil
			}
			return nil, err
		}
		after := l.cr
		l.cr = c == '\r'
		switch {
		case c == '\n' && after:
		case c == '\n' || c == '\r':
			return l.whole(), nil
		case len(l.line) == longestLine:
			return nil, errTooLong
		default:
			l.line = append(l.line, c)
		}
	}
}

func (l *lines) whole() []byte {
	if !l.started {
		l.started = true
		return bytes.TrimPrefix(l.line, []byte("\ufeff"))
	}
	return l.line
}

// events reads server-sent events as the HTML standard has them, without the
// fields that nothing here needs. It also takes llama.cpp's field "error", and
// an event that the end of the stream cut its blank line from.
type events struct {
	lines lines
	data  []byte
}

// next returns an event's data, valid until the next call.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	for {
		line, err := e.lines.next()
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

func (e *events) add(value []byte) error {
	if len(e.data)+1+len(value) > longestLine {
		return errTooLong
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, value...)
	return nil
}
