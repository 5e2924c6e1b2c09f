package realtimetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"perch/socket"
)

// fake is what both fake servers have in common.
type fake struct {
	*httptest.Server

	mu         sync.Mutex // guards the fields of the whole fake server
	violations []string
	received   []string // kinds of the messages, without repetitions of sound
	wire       []string // see Wire
	sessions   sync.WaitGroup
}

// start starts the server, which runs until the test ends. It reports the messages that it has refused as errors of the
// test. refuse returns the response to a request that is not upgraded, or the status 0.
func (f *fake) start(t testing.TB, refuse func(*http.Request) (status int, body string), serve func(*socket.Conn)) {
	t.Helper()
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, body := refuse(r); status != 0 {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return
		}
		ws, err := socket.Accept(w, r, socket.Options{})
		if err != nil {
			return
		}
		f.sessions.Add(1)
		defer f.sessions.Done()
		defer ws.Drop()
		f.transfer('=', []byte(strconv.Quote("opened "+r.URL.RequestURI())))
		serve(ws)
		f.transfer('=', []byte(`"closed"`))
	}))
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		f.sessions.Wait()
		for _, v := range f.violations {
			t.Error("the server has refused:", v)
		}
	})
}

// Received returns the kinds of all messages so far. Sound that came in several messages is listed once.
func (f *fake) Received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.received)
}

// Wire returns the messages of all connections: those of clients after ">", and those of the server after "<". Sound,
// instructions and tools are shortened, and equal messages in a row are listed once.
func (f *fake) Wire() []string {
	f.CloseClientConnections()
	f.sessions.Wait()
	return f.wire
}

// transfer adds a message to the result of Wire.
func (f *fake) transfer(mark byte, message []byte) {
	var content any
	_ = json.Unmarshal(message, &content) // what is no JSON is listed as null
	text, _ := json.Marshal(shorten(content))
	line := string(mark) + " " + string(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.wire); n == 0 || f.wire[n-1] != line {
		f.wire = append(f.wire, line)
	}
}

// shorten returns a part of a message without sound and instructions, and with the names of tools only.
func shorten(part any) any {
	switch part := part.(type) {
	case []any:
		for i := range part {
			part[i] = shorten(part[i])
		}
	case map[string]any:
		_, described := part["description"]
		if name := part["name"]; described && name != nil {
			return name
		}
		delete(part, "event_id")
		for key, value := range part {
			kind, _ := part["type"].(string)
			_, isText := value.(string)
			sound := key == "data" || key == "audio" && isText || key == "delta" && strings.HasSuffix(kind, "audio.delta")
			if sound || key == "instructions" || key == "systemInstruction" {
				part[key] = "…"
			} else {
				part[key] = shorten(value)
			}
		}
	}
	return part
}

// record records the kind of a message. sound is the kind of messages with sound.
func (f *fake) record(kind, sound string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.received); n == 0 || kind != sound || f.received[n-1] != kind {
		f.received = append(f.received, kind)
	}
}

// violated records why a message was refused.
func (f *fake) violated(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violations = append(f.violations, why)
}

// decode decodes a message. It returns an error for an unknown field.
func decode(data []byte, into any) error {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	return strict.Decode(into)
}
