package wyoming

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// peer is the fake server's end of a connection. Its methods panic with over if
// the client has closed the connection.
type peer struct {
	net.Conn
	r *Reader
	w *Writer
}

// over is the value of a panic that ends a script because the client has closed
// the connection.
type over struct{}

func (p *peer) next() Event {
	e, err := p.r.Read()
	if err != nil {
		panic(over{})
	}
	e.Payload = append([]byte(nil), e.Payload...)
	return e
}

// until reads events until one has this type.
func (p *peer) until(name string) {
	for p.next().Type != name {
	}
}

func (p *peer) say(raw string) {
	if _, err := io.WriteString(p, raw); err != nil {
		panic(over{})
	}
}

func (p *peer) event(name string, data any, payload []byte) {
	e, err := NewEvent(name, data, payload)
	if err != nil {
		panic(err)
	}
	if p.w.Write(e) != nil {
		panic(over{})
	}
}

// hangUp reads until the client closes the connection.
func (p *peer) hangUp() { _, _ = io.Copy(io.Discard, p) }

// script serves a connection whose first event is first. See fake.info for describe events.
type script func(p *peer, first Event)

// fake is a fake Wyoming server.
type fake struct {
	info      string // data of the info event; if empty, script handles describe events, too
	script    script
	described atomic.Int32
	done      sync.WaitGroup
}

// whisper and piper are the info of faster-whisper and piper, shortened.
const (
	whisper = `{"asr":[{"name":"faster-whisper","installed":true,"version":3.1,"attribution":{"name":"","url":""},"models":[` +
		`{"name":"base-int8","installed":true,"languages":["en","de"],"attribution":{"name":"","url":""},"description":null,"version":null}]}],"tts":[]}`
	piper = `{"tts":[{"name":"piper","installed":true,"supports_synthesize_streaming":true,"voices":[` +
		`{"name":"en_GB-alba-medium","languages":["en_GB"]},{"name":"de_DE-thorsten-low","languages":["de_DE"]}]}]}`
)

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	defer func() {
		if v := recover(); v != nil && v != (over{}) {
			panic(v)
		}
	}()
	p := &peer{conn, NewReader(conn, Limits{}), NewWriter(conn)}
	first := p.next()
	if first.Type == TypeDescribe && f.info != "" {
		f.described.Add(1)
		p.event(TypeInfo, json.RawMessage(f.info), nil)
		p.hangUp()
		return
	}
	f.script(p, first)
}

// listen serves over TCP until the test ends. Then it waits until every
// connection is closed.
func (f *fake) listen(t testing.TB) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.done.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		accepting.Wait()
		f.done.Wait()
	})
	return "tcp://" + l.Addr().String()
}

func newEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := New(o)
	must.Succeed(t, err)
	return e
}

// piped returns an engine whose connections are pipes in memory to the fake, for
// tests in a synctest bubble.
func (f *fake) piped(t testing.TB, o Options) *Engine {
	t.Helper()
	o.Address = "tcp://127.0.0.1:10300"
	e := newEngine(t, o)
	e.fixed.endpoint.connect = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		f.done.Go(func() { f.serve(theirs) })
		return ours, nil
	}
	return e
}

// said returns a finished utterance of silence.
func said(d time.Duration) *voice.Utterance {
	return voicetest.Utterance(make([]int16, int(d*voice.MicRate/time.Second)))
}
