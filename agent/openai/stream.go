package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// request returns a request to a path below base: a GET if b is nil, or else a POST. within is the maximum
// duration of the call; 0 means the deadlines of the engine, which suit a stream.
func request(base *url.URL, path string, b body, within time.Duration) remote.Request {
	r := remote.Request{Method: http.MethodGet, Base: base, Path: path, Within: within}
	if b != nil {
		r.Method, r.JSON = http.MethodPost, b
	}
	return r
}

// requestMessage requests a message and passes it on while it arrives.
func (e *Engine) requestMessage(ctx context.Context, p thinker.Prompt, without rejections, out func(thinker.Piece) error) (thinker.Stop, error) {
	base, path := e.base, "chat/completions"
	if e.native {
		base, path = e.root, "api/chat"
	}
	response, err := e.server.Call(ctx, request(base, path, e.encode(p, without), 0))
	if err != nil {
		return "", err
	}
	defer response.Close()
	r := e.newMessageReader(response, out)
	if err := r.read(); err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return r.finishMessage()
}

// newMessageReader returns a reader of the message in a response. It passes the message to out.
func (e *Engine) newMessageReader(response *remote.Answer, out func(thinker.Piece) error) *messageReader {
	return &messageReader{e: e, response: response, in: bufio.NewReader(response), out: out}
}

// read reads the whole message. It determines the format by the first character, which is more reliable than
// the headers of these servers.
func (r *messageReader) read() error {
	first, err := r.firstByte()
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case first == '<':
		return fmt.Errorf("%w: it is a web page", errGarbage)
	case r.e.native:
		return r.readLines()
	case first == '{':
		return r.readWhole()
	}
	return r.readEvents()
}

// firstByte returns the first byte of the message that is not white space, without consuming it.
func (r *messageReader) firstByte() (byte, error) {
	for {
		next, err := r.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if c := next[0]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, nil
		}
		if _, err := r.in.Discard(1); err != nil {
			return 0, err
		}
	}
}

// readWhole reads a message that the server has sent in one piece, although a stream was requested.
func (r *messageReader) readWhole() error {
	data, err := io.ReadAll(io.LimitReader(r.in, limit.File+1))
	switch {
	case err != nil:
		return err
	case len(data) > limit.File:
		return remote.ErrTooLong
	}
	if err := r.addChunk(data); err != nil {
		return err
	}
	if !r.began {
		return errGarbage
	}
	return nil
}

// Maximum waits after a complete message.
const (
	afterFinish = time.Second            // for all further events, such as usage and [DONE]
	afterDone   = 100 * time.Millisecond // for the end of the response, after which the connection can be reused
)

// readEvents reads a stream of server-sent events.
func (r *messageReader) readEvents() error {
	events := remote.NewEvents(r.in, limit.File)
	for {
		data, err := events.Next()
		if err != nil {
			if r.finish != "" || err == io.EOF && r.began {
				return nil // some servers do not send [DONE]
			}
			return unexpectedEOF(err)
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			if !r.began {
				return errGarbage
			}
			r.drain()
			return nil
		}
		if err := r.addChunk(data); err != nil {
			return err
		}
		r.extendWait()
	}
}

// extendWait sets the maximum wait for the next piece. A short piece adds little time, and an empty piece none.
func (r *messageReader) extendWait() {
	within := r.e.o.IdleWithin
	if r.finish != "" {
		within = min(afterFinish, within)
	}
	if r.alive {
		r.response.ResetWait(within)
	} else {
		r.response.AddWait(r.textWait)
	}
	r.alive, r.textWait = false, 0
}

// drain reads to the end of the response, so that the connection can be reused.
func (r *messageReader) drain() {
	r.response.ResetWait(afterDone)
	_, _ = io.Copy(io.Discard, io.LimitReader(r.in, limit.Data)) // a failure only costs a new connection
}

// readLines reads a stream of Ollama's own API, which has a JSON object on each line.
func (r *messageReader) readLines() error {
	lines := &remote.Lines{R: r.in, MaxBytes: limit.File, CR: true}
	for {
		line, err := lines.Next()
		if err != nil {
			return unexpectedEOF(err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			r.extendWait()
			continue
		}
		done, err := r.addLine(line)
		if err != nil {
			return err
		}
		if done {
			r.drain()
			return nil
		}
		r.extendWait()
	}
}

// unexpectedEOF converts io.EOF in the middle of a message to io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
