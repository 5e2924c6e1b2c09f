package openai

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice/voicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is a key that no error may contain.
const canary = "sk-canary/0f3d9a+Zq"

// pipes is a server on connections in memory. For each connection it reads one
// request and then calls script.
type pipes struct {
	script func(conn net.Conn, body []byte)
	closed chan struct{} // receives a value for each connection that the client has closed
}

func newPipes(script func(conn net.Conn, body []byte)) *pipes {
	return &pipes{script, make(chan struct{}, 10)}
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		r := bufio.NewReader(ours)
		defer ours.Close()
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			p.closed <- struct{}{}
			return
		}
		p.script(ours, body)
		if _, err := r.ReadByte(); err != nil {
			p.closed <- struct{}{}
		}
	}()
	return theirs, nil
}

// chunk returns data as one chunk of a chunked body.
func chunk(data []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data) }

const soundHead = "HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n"

func recognizer(t testing.TB, o Options) *Recognizer {
	t.Helper()
	r, err := NewRecognizer(o)
	must.Succeed(t, err)
	t.Cleanup(r.Close)
	return r
}

func synthesizer(t testing.TB, o Options) *Synthesizer {
	t.Helper()
	s, err := NewSynthesizer(o)
	must.Succeed(t, err)
	t.Cleanup(s.Close)
	return s
}

// ramp returns n samples of sound, in which neighbouring samples differ.
func ramp(n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(i * 7)
	}
	return pcm
}

// raw returns pcm as the bytes of 16-bit little-endian samples.
func raw(pcm []int16) []byte { return voicetest.WAV(24000, pcm)[44:] }
