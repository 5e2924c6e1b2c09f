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

// request returns a request to a path below base: a GET if b is nil, else a POST. within is the maximum duration
// of the response; it is 0 for a stream.
func request(base *url.URL, path string, b body, within time.Duration) remote.Request {
	r := remote.Request{Method: http.MethodGet, Base: base, Path: path, Within: within}
	if b != nil {
		r.Method, r.JSON = http.MethodPost, b
	}
	return r
}

// once requests a message and passes it on while it arrives.
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
	a := e.newAnswer(response, out)
	if err := a.all(); err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return a.finishMessage()
}

// newAnswer returns an answer that reads of.
func (e *Engine) newAnswer(of *remote.Answer, out func(thinker.Piece) error) *answer {
	return &answer{e: e, of: of, in: bufio.NewReader(of), out: out}
}

// all reads the whole message in any format, which the first character shows more reliably than the
// headers of these servers.
func (a *answer) all() error {
	first, err := a.first()
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case first == '<':
		return fmt.Errorf("%w but a web page", errGarbage)
	case a.e.native:
		return a.nativeLines()
	case first == '{':
		return a.whole()
	}
	return a.events()
}

// first returns the first character that is not white space.
func (a *answer) first() (byte, error) {
	for {
		next, err := a.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if c := next[0]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, nil
		}
		if _, err := a.in.Discard(1); err != nil {
			return 0, err
		}
	}
}

// whole reads a message that the server has sent whole, although a stream was requested.
func (a *answer) whole() error {
	data, err := io.ReadAll(io.LimitReader(a.in, limit.File+1))
	switch {
	case err != nil:
		return err
	case len(data) > limit.File:
		return remote.ErrTooLong
	}
	if err := a.chunk(data); err != nil {
		return err
	}
	if !a.began {
		return errGarbage
	}
	return nil
}

// How long to wait for the end of a complete message.
const (
	afterFinish = time.Second            // for [DONE], after usage
	afterDone   = 100 * time.Millisecond // until the connection can be reused
)

// events reads a stream of server-sent events.
func (a *answer) events() error {
	events := remote.NewEvents(a.in, limit.File)
	for {
		data, err := events.Next()
		if err != nil {
			if a.finish != "" || err == io.EOF && a.began {
				return nil // some servers send no end
			}
			return cut(err)
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			if !a.began {
				return errGarbage
			}
			a.drain()
			return nil
		}
		if err := a.chunk(data); err != nil {
			return err
		}
		a.wait()
	}
}

// wait sets the time limit of the next piece. Short pieces add little time, and empty pieces none.
func (a *answer) wait() {
	within := a.e.o.IdleWithin
	if a.finish != "" {
		within = min(afterFinish, within)
	}
	if a.alive {
		a.of.Lives(within)
	} else {
		a.of.Wrote(a.worth)
	}
	a.alive, a.worth = false, 0
}

// drain reads to the end, so that the connection can be reused.
func (a *answer) drain() {
	a.of.Lives(afterDone)
	_, _ = io.Copy(io.Discard, io.LimitReader(a.in, limit.Data)) // a failure only costs a new connection
}

// nativeLines reads a stream of Ollama's own API, which has a JSON object on each line.
func (a *answer) nativeLines() error {
	lines := &remote.Lines{R: a.in, MaxBytes: limit.File, CR: true}
	for {
		line, err := lines.Next()
		if err != nil {
			return cut(err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			a.wait()
			continue
		}
		done, err := a.native(line)
		if err != nil {
			return err
		}
		if done {
			a.drain()
			return nil
		}
		a.wait()
	}
}

// cut converts a premature end without an error to io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
