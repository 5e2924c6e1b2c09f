// Package wyoming implements the Wyoming protocol, with which Home Assistant and related
// projects (faster-whisper, piper, vosk, speech-to-phrase) serve speech over TCP. It has the
// framing for both sides, and an Engine that recognizes and synthesizes with a server.
//
// The protocol has neither keys nor encryption: what is sent to the server can be read on
// the way.
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

// ErrFormat is wrapped for bytes that are not Wyoming, and for an event larger than the
// limits.
var ErrFormat = errors.New("not the Wyoming protocol")

// Event is one message, in either direction. On the wire it is a line of JSON
// with the type and the lengths of what follows, then the data, then the
// payload; see "Format" in the README of OHF-Voice/wyoming.
type Event struct {
	Type string
	// Data is one JSON object, or nil. Data in the line and behind it are merged.
	Data json.RawMessage
	// Payload is bytes of any kind, usually sound. It is valid until the next Read.
	Payload []byte
}

// NewEvent returns an event whose data is v as JSON, which must be an object; nil means
// no data.
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

// Decode decodes the data into v. Without data it leaves v unchanged.
func (e Event) Decode(v any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("%w: data of a %s event: %w", ErrFormat, printable(e.Type), err)
	}
	return nil
}

// Limits bound what a Reader accepts, in bytes, since the protocol has no limits. Zero
// fields have the defaults named here.
type Limits struct {
	Header  int // a line with its newline; 1 MiB, since old servers put their data there
	Data    int // 1 MiB; piper's list of voices has a tenth of that
	Payload int // 4 MiB: a minute and a half of sound at 22050 Hz in one piece
}

func (l Limits) filled() Limits {
	const mebibyte = 1 << 20
	return Limits{cmp.Or(l.Header, mebibyte), cmp.Or(l.Data, mebibyte), cmp.Or(l.Payload, 4*mebibyte)}
}

// header is the line. Lengths may be null, absent or 0 if nothing follows.
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
	line    []byte
	payload []byte
}

// NewReader returns a reader with those limits.
func NewReader(r io.Reader, l Limits) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), limits: l.filled()}
}

// Read returns the next event. The error is io.EOF if the stream ends between two events,
// wraps io.ErrUnexpectedEOF if it ends within one, and wraps ErrFormat if the bytes are
// invalid; then nothing more can be read.
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
	behind, err := r.readBytes(nil, int(h.DataLen))
	if err != nil {
		return Event{}, err
	}
	data, err := merge(h.Data, behind)
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

// readLine fills r.line, without the newline.
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
			return fmt.Errorf("read an event: %w", cut(err))
		}
	}
}

// readBytes appends n bytes to buf. It allocates as they arrive, since a length is only a
// claim.
func (r *Reader) readBytes(buf []byte, n int) ([]byte, error) {
	const step = 64 << 10
	for n > 0 {
		at, more := len(buf), min(n, step)
		buf = append(buf, make([]byte, more)...)
		if _, err := io.ReadFull(r.r, buf[at:]); err != nil {
			return buf[:at], fmt.Errorf("read an event: %w", cut(err))
		}
		n -= more
	}
	return buf, nil
}

// cut returns the error for a stream that ends within an event.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// merge merges two objects; the second's members win.
func merge(line, behind json.RawMessage) (json.RawMessage, error) {
	var first, second map[string]json.RawMessage
	for _, part := range []struct {
		from json.RawMessage
		to   *map[string]json.RawMessage
	}{{line, &first}, {behind, &second}} {
		if len(part.from) == 0 {
			continue
		}
		if err := json.Unmarshal(part.from, part.to); err != nil {
			return nil, err
		}
	}
	switch {
	case len(first) == 0 && len(second) == 0:
		return nil, nil
	case len(first) == 0:
		return behind, nil
	case len(second) == 0:
		return line, nil
	}
	maps.Copy(first, second)
	return json.Marshal(first)
}

// Writer writes events to a stream, each with one call of Write. It is not safe for
// concurrent use.
type Writer struct {
	w   io.Writer
	buf bytes.Buffer
}

// NewWriter returns a writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one event as the reference does, with the data behind the line.
func (w *Writer) Write(e Event) error {
	if e.Type == "" {
		return errors.New("write an event: it has no type")
	}
	line, _ := json.Marshal(header{Type: e.Type, DataLen: int64(len(e.Data)), Payload: int64(len(e.Payload))}) // cannot fail
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

// printable makes a peer's text fit for a line of a log.
func printable(s string) string { return plain.Clip(plain.Line(s), 200) }
