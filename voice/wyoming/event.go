// Package wyoming implements the Wyoming protocol, over which programs such as
// faster-whisper, piper and vosk offer speech recognition and synthesis. It contains an Engine
// that uses a server, and the encoding of events, which Perch's own Wyoming servers use, too.
//
// The protocol runs over TCP and has neither authentication nor encryption.
package wyoming

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"perch/plain"
)

// ErrFormat is wrapped by the errors for invalid bytes and for events above the limits.
var ErrFormat = errors.New("not the Wyoming protocol")

// Event is a message of the protocol. It is sent as a line of JSON, with the type and the
// lengths of data and payload, followed by the data and the payload; see "Format" in the
// README of OHF-Voice/wyoming.
type Event struct {
	Type string
	// Data is a JSON object, or nil. Old servers send data in the line; a Reader merges it into Data.
	Data json.RawMessage
	// Payload is binary data, usually sound. A Reader's payload is valid until the next Read.
	Payload []byte
}

// NewEvent returns an event with v, marshalled as JSON, as its data. The JSON must be an object;
// v is nil for no data.
func NewEvent(name string, v any, payload []byte) (Event, error) {
	e := Event{Type: name, Payload: payload}
	if v == nil {
		return e, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return Event{}, fmt.Errorf("make a %s event: %w", name, err)
	}
	e.Data = data
	return e, nil
}

// Decode unmarshals the data into v. Without data it leaves v unchanged.
func (e Event) Decode(v any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("%w: data of a %s event: %w", ErrFormat, printable(e.Type), err)
	}
	return nil
}

// Limits are the maximum sizes of the parts of an event, in bytes. Zero means the default.
type Limits struct {
	Header  int // the line with its newline; default: 1 MiB, because old servers put their data there
	Data    int // default: 1 MiB, ten times piper's list of voices
	Payload int // default: 4 MiB, 95 seconds of sound at 22050 Hz
}

// withDefaults returns l with the defaults for zero fields.
func (l Limits) withDefaults() Limits {
	const mebibyte = 1 << 20
	return Limits{cmp.Or(l.Header, mebibyte), cmp.Or(l.Data, mebibyte), cmp.Or(l.Payload, 4*mebibyte)}
}

// header is the line of an event. The lengths may be null, absent or 0.
type header struct {
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data,omitempty"`
	DataLen int64           `json:"data_length,omitempty"`
	Payload int64           `json:"payload_length,omitempty"`
}

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	r       *bufio.Reader
	limits  Limits
	line    []byte // buffer for the line
	payload []byte // buffer for the payload
}

// NewReader returns a reader of r with these limits.
func NewReader(r io.Reader, l Limits) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), limits: l.withDefaults()}
}

// Read returns the next event. The error is io.EOF if the stream ends between two events,
// wraps io.ErrUnexpectedEOF if the stream ends within an event, and wraps ErrFormat if the bytes
// are invalid or exceed the limits. Otherwise it wraps the error of the stream. After an error,
// Read must not be called again.
func (r *Reader) Read() (Event, error) {
	if err := r.readLine(); err != nil {
		return Event{}, err
	}
	var h header
	if err := json.Unmarshal(r.line, &h); err != nil {
		return Event{}, fmt.Errorf("%w: a line that begins with %q", ErrFormat, r.line[:min(len(r.line), 40)])
	}
	switch {
	case h.Type == "":
		return Event{}, fmt.Errorf("%w: an event without a type", ErrFormat)
	case h.DataLen < 0 || h.DataLen > int64(r.limits.Data):
		return Event{}, fmt.Errorf("%w: a %s event with %d bytes of data, %d at most", ErrFormat, printable(h.Type), h.DataLen, r.limits.Data)
	case h.Payload < 0 || h.Payload > int64(r.limits.Payload):
		return Event{}, fmt.Errorf("%w: a %s event with %d bytes of payload, %d at most", ErrFormat, printable(h.Type), h.Payload, r.limits.Payload)
	}
	separate, err := r.readBytes(nil, int(h.DataLen))
	if err != nil {
		return Event{}, err
	}
	data, err := merge(h.Data, separate)
	if err != nil {
		return Event{}, fmt.Errorf("%w: data of a %s event: %w", ErrFormat, printable(h.Type), err)
	}
	if r.payload, err = r.readBytes(r.payload[:0], int(h.Payload)); err != nil {
		return Event{}, err
	}
	e := Event{Type: h.Type, Data: data}
	if h.Payload > 0 {
		e.Payload = r.payload
	}
	return e, nil
}

// readLine reads a line into r.line, without the newline.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		if len(r.line)+len(part) > r.limits.Header {
			return fmt.Errorf("%w: a line of more than %d bytes", ErrFormat, r.limits.Header)
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			r.line = r.line[:len(r.line)-1]
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.line) == 0:
			return io.EOF
		default:
			return fmt.Errorf("read an event: %w", unexpectedEOF(err))
		}
	}
}

// readBytes reads n bytes and appends them to buf. It allocates the memory in steps while
// the bytes arrive, because n may be a false claim of the peer.
func (r *Reader) readBytes(buf []byte, n int) ([]byte, error) {
	const maxStep = 64 << 10
	for n > 0 {
		start, step := len(buf), min(n, maxStep)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r.r, buf[start:]); err != nil {
			return buf[:start], fmt.Errorf("read an event: %w", unexpectedEOF(err))
		}
		n -= step
	}
	return buf, nil
}

// unexpectedEOF returns io.ErrUnexpectedEOF for io.EOF, and other errors unchanged.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// merge merges two JSON objects; either may be empty. If both have a member with the same name,
// the second object's member is used.
func merge(first, second json.RawMessage) (json.RawMessage, error) {
	var merged, added map[string]json.RawMessage
	for _, part := range []struct {
		data    json.RawMessage
		members *map[string]json.RawMessage
	}{{first, &merged}, {second, &added}} {
		if len(part.data) == 0 {
			continue
		}
		if err := json.Unmarshal(part.data, part.members); err != nil {
			return nil, err
		}
	}
	switch {
	case len(merged) == 0 && len(added) == 0:
		return nil, nil
	case len(merged) == 0:
		return second, nil
	case len(added) == 0:
		return first, nil
	}
	maps.Copy(merged, added)
	return json.Marshal(merged)
}

// Writer writes events to a stream. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	buf bytes.Buffer // the encoded event
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes an event with a single call of the stream's Write method. Like the reference
// implementation, it writes the data after the line.
func (w *Writer) Write(e Event) error {
	if e.Type == "" {
		return errors.New("write an event: it has no type")
	}
	line, _ := json.Marshal(header{Type: e.Type, DataLen: int64(len(e.Data)), Payload: int64(len(e.Payload))}) // never fails
	w.buf.Reset()
	w.buf.Write(line)
	w.buf.WriteByte('\n')
	w.buf.Write(e.Data)
	w.buf.Write(e.Payload)
	if _, err := w.w.Write(w.buf.Bytes()); err != nil {
		return fmt.Errorf("write a %s event: %w", e.Type, err)
	}
	return nil
}

// printable returns a text of the peer as one line of at most 200 bytes, for messages.
func printable(s string) string { return plain.Clip(plain.Line(s), 200) }
