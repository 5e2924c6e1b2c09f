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

// request is one below an address, without a body if b is nil. within bounds the whole answer; it is 0 for a streamed one.
func request(base *url.URL, path string, b body, within time.Duration) remote.Request {
	r := remote.Request{Method: http.MethodGet, Base: base, Path: path, Within: within}
	if b != nil {
		r.Method, r.JSON = http.MethodPost, b
	}
	return r
}

// once makes one request for a message and passes it on as it is received.
func (e *Engine) once(ctx context.Context, p thinker.Prompt, without rejections, out func(thinker.Piece) error) (thinker.Stop, error) {
	base, path := e.base, "chat/completions"
	if e.native {
		base, path = e.root, "api/chat"
	}
	response, err := e.server.Call(ctx, request(base, path, e.encode(p, without), 0))
	if err != nil {
		return "", err
	}
	defer response.Close()
	a := &answer{out: out, invent: e.invent, thoughts: thoughts{expected: e.expects()}}
	if err := e.read(response, a).all(); err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	stop, err := a.finishMessage()
	if err == nil {
		e.learnStyle(a)
	}
	return stop, err
}

func (e *Engine) invent() string { return fmt.Sprintf("call_%d", e.calls.Add(1)) }

// reading is an answer while it is received.
type reading struct {
	e  *Engine
	a  *answer
	of *remote.Answer
	in *bufio.Reader
}

func (e *Engine) read(of *remote.Answer, into *answer) *reading {
	return &reading{e: e, a: into, of: of, in: bufio.NewReader(of)}
}

// all reads the answer in any form. Its first character is more reliable than the
// headers of these servers.
func (r *reading) all() error {
	first, err := r.first()
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case first == '<':
		return fmt.Errorf("%w but a web page", errGarbage)
	case r.e.native:
		return r.native()
	case first == '{':
		return r.whole()
	}
	return r.events()
}

// first returns the first character that is not white space.
func (r *reading) first() (byte, error) {
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

// whole reads an answer that was not streamed, although that was requested.
func (r *reading) whole() error {
	data, err := io.ReadAll(io.LimitReader(r.in, limit.File+1))
	switch {
	case err != nil:
		return err
	case len(data) > limit.File:
		return remote.ErrTooLong
	}
	if err := r.a.chunk(data); err != nil {
		return err
	}
	if !r.a.began {
		return errGarbage
	}
	return nil
}

// How long to wait for the end of a complete message.
const (
	afterFinish = time.Second            // for [DONE], after usage
	afterDone   = 100 * time.Millisecond // until the connection can be reused
)

func (r *reading) events() error {
	events := remote.NewEvents(r.in, limit.File)
	for {
		data, err := events.Next()
		if err != nil {
			if r.a.finish != "" || err == io.EOF && r.a.began {
				return nil // some servers send no end
			}
			return cut(err)
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			if !r.a.began {
				return errGarbage
			}
			r.drain()
			return nil
		}
		if err := r.a.chunk(data); err != nil {
			return err
		}
		r.wait()
	}
}

// wait sets the time limit of the next piece. An empty piece adds no time, and one with
// a letter little.
func (r *reading) wait() {
	within := r.e.o.IdleWithin
	if r.a.finish != "" {
		within = min(afterFinish, within)
	}
	if r.a.alive {
		r.of.Lives(within)
	} else {
		r.of.Wrote(r.a.worth)
	}
	r.a.alive, r.a.worth = false, 0
}

// drain reads to the end, so that the connection can be reused.
func (r *reading) drain() {
	r.of.Lives(afterDone)
	_, _ = io.Copy(io.Discard, io.LimitReader(r.in, limit.Data)) // a failure only costs a new connection
}

// native reads lines of JSON up to the last.
func (r *reading) native() error {
	lines := &remote.Lines{R: r.in, Most: limit.File, CR: true}
	for {
		line, err := lines.Next()
		if err != nil {
			return cut(err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			r.wait()
			continue
		}
		done, err := r.a.native(line)
		if err != nil {
			return err
		}
		if done {
			r.drain()
			return nil
		}
		r.wait()
	}
}

// cut converts a premature end without an error to io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
