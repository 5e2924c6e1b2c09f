package wyoming

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vectors are events and their encodings. A Writer writes the first encoding. A
// Reader reads the same event from all of them.
var vectors = []struct {
	name  string
	event Event
	wire  []string
}{
	{"nothing but a type", Event{Type: "describe"}, []string{
		`{"type":"describe"}` + "\n",
		`{"type": "describe", "version": "1.9.0"}` + "\n",
		`{"type":"describe","data":{},"data_length":null,"payload_length":null}` + "\r\n",
		`{"type":"describe","data":null,"data_length":0,"payload_length":0}` + "\n",
		`{"type":"describe","data_length":2}` + "\n{}",
	}},
	{"data", Event{Type: "transcript", Data: json.RawMessage(`{"text":"grüezi"}`)}, []string{
		`{"type":"transcript","data_length":18}` + "\n" + `{"text":"grüezi"}`,
		`{"type":"transcript","data":{"text":"grüezi"}}` + "\n",
		`{"type":"transcript","data":{"text":"old"},"data_length":18}` + "\n" + `{"text":"grüezi"}`,
		`{"type":"transcript","data":{"text":"gr\u00fcezi"},"version":"0.0.1"}` + "\n",
	}},
	{"data in both places", Event{Type: "x", Data: json.RawMessage(`{"a":1,"b":2,"c":3}`)}, []string{
		`{"type":"x","data_length":19}` + "\n" + `{"a":1,"b":2,"c":3}`,
		`{"type":"x","data":{"a":1,"b":9},"data_length":13}` + "\n" + `{"b":2,"c":3}`,
	}},
	{"sound", Event{Type: "audio-chunk", Data: json.RawMessage(`{"rate":16000,"width":2,"channels":1}`), Payload: []byte("\x00\n\xff\x7f")}, []string{
		`{"type":"audio-chunk","data_length":37,"payload_length":4}` + "\n" + `{"rate":16000,"width":2,"channels":1}` + "\x00\n\xff\x7f",
		`{"type":"audio-chunk","payload_length":4,"data":{"rate":16000,"width":2,"channels":1}}` + "\n\x00\n\xff\x7f",
	}},
	{"payload alone", Event{Type: "x", Payload: []byte("{}")}, []string{`{"type":"x","payload_length":2}` + "\n{}"}},
}

// same reports whether two events are equal, apart from the spelling of the JSON.
func same(t *testing.T, a, b Event) bool {
	t.Helper()
	meaning := func(e Event) (v map[string]any) {
		must.Succeed(t, e.Decode(&v))
		return v
	}
	return a.Type == b.Type && bytes.Equal(a.Payload, b.Payload) && reflect.DeepEqual(meaning(a), meaning(b))
}

func TestEventRoundTrip(t *testing.T) {
	ways := map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"byte by byte":  iotest.OneByteReader,
		"half by half":  iotest.HalfReader,
		"end with data": iotest.DataErrReader,
	}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			var wire bytes.Buffer
			if err := NewWriter(&wire).Write(v.event); err != nil || wire.String() != v.wire[0] {
				t.Errorf("written as %q (%v), want %q", wire.String(), err, v.wire[0])
			}
			for _, spelling := range v.wire {
				for way, through := range ways {
					// Read twice, because unread bytes of the first event would change the second.
					r := NewReader(through(strings.NewReader(spelling+spelling)), Limits{})
					for range 2 {
						got, err := r.Read()
						if err != nil || !same(t, got, v.event) {
							t.Errorf("%q, %s: read %+v (%v)", spelling, way, got, err)
						}
					}
					if _, err := r.Read(); err != io.EOF {
						t.Errorf("%q, %s: at its end %v", spelling, way, err)
					}
				}
			}
		})
	}
}

func TestTruncatedEventsAreErrors(t *testing.T) {
	for _, v := range vectors {
		for _, wire := range v.wire {
			for n := 1; n < len(wire); n++ {
				if _, err := NewReader(strings.NewReader(wire[:n]), Limits{}).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%q: %v", wire[:n], err)
				}
			}
		}
	}
}

func TestOtherProtocolsAreRejected(t *testing.T) {
	small := Limits{Header: 64, Data: 16, Payload: 16}
	for name, wire := range map[string]string{
		"HTTP":                 "HTTP/1.1 400 Bad Request\r\n\r\n",
		"no JSON":              "hello\n",
		"an empty line":        "\n",
		"a list":               "[]\n",
		"no type":              "{}\n",
		"a type of a number":   `{"type":1}` + "\n",
		"data that is a list":  `{"type":"x","data":[1]}` + "\n",
		"data that is no JSON": `{"type":"x","data_length":3}` + "\n{1}",
		"a negative length":    `{"type":"x","data_length":-1}` + "\n",
		"a negative payload":   `{"type":"x","payload_length":-1}` + "\n",
		"half a length":        `{"type":"x","data_length":1.5}` + "\n",
		"a length of letters":  `{"type":"x","data_length":"2"}` + "\n{}",
		"a huge length":        `{"type":"x","data_length":99999999999999999999}` + "\n",
		"too much data":        `{"type":"x","data_length":17}` + "\n" + `{"a":"123456789"}`,
		"too much payload":     `{"type":"x","payload_length":17}` + "\n12345678901234567",
		"too long a line":      `{"type":"` + strings.Repeat("x", 64) + `"}` + "\n",
		"an endless line":      strings.Repeat("x", 100<<10),
	} {
		if e, err := NewReader(strings.NewReader(wire), small).Read(); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	full := `{"type":"x","data_length":16,"payload_length":16}` + "\n" + `{"a":"12345678"}` + "1234567890123456"
	if _, err := NewReader(strings.NewReader(full), small).Read(); err != nil {
		t.Errorf("an event of exactly the limits: %v", err)
	}
}

// TestClaimedLengthTakesNoMemory checks that an event with a large payload_length and few bytes takes
// little memory.
func TestClaimedLengthTakesNoMemory(t *testing.T) {
	const wire = `{"type":"x","payload_length":4194304}` + "\nshort"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(strings.NewReader(wire), Limits{}).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	got := after.TotalAlloc - before.TotalAlloc
	if got > 200<<10 {
		t.Errorf("%d bytes were taken for 5 that came", got)
	}
}

type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func TestEventIsOneWrite(t *testing.T) {
	var sent writes
	w := NewWriter(&sent)
	for _, v := range vectors {
		if err := w.Write(v.event); err != nil {
			t.Error(err)
		}
	}
	if len(sent) != len(vectors) {
		t.Errorf("%d events took %d writes", len(vectors), len(sent))
	}
	if err := w.Write(Event{}); err == nil {
		t.Error("an event without a type is written")
	}
	if _, err := NewEvent("x", func() {}, nil); err == nil {
		t.Error("an event is made of what is no data")
	}
}

func FuzzReader(f *testing.F) {
	for _, v := range vectors {
		for _, wire := range v.wire {
			f.Add([]byte(wire + wire))
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		limits := Limits{Header: 256, Data: 128, Payload: 128}
		r := NewReader(bytes.NewReader(wire), limits)
		for range 100 {
			e, err := r.Read()
			if err != nil {
				if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFormat) {
					t.Fatalf("an error without a name: %v", err)
				}
				return
			}
			if len(e.Payload) > limits.Payload || e.Type == "" {
				t.Fatalf("read %+v", e)
			}
			var again bytes.Buffer
			must.Succeed(t, NewWriter(&again).Write(e))
			back, err := NewReader(&again, Limits{}).Read()
			if err != nil || !same(t, e, back) {
				t.Fatalf("%+v was read back as %+v (%v)", e, back, err)
			}
		}
	})
}
