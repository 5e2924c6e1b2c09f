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
)

// errSlow is why a request that took too long was cancelled.
var errSlow = errors.New("too slow")

// watch cancels a request that the server keeps waiting. It runs only while
// the server is waited for: the time a listener takes is not the server's.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func watched(ctx context.Context, within time.Duration) *watch {
	w := &watch{}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(within, func() { w.cancel(errSlow) })
	return w
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// blame makes an error of one that only says that the context is gone.
func (w *watch) blame(err error, slow string) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errSlow) {
		return fmt.Errorf("%w: %s", errSlow, slow)
	}
	return err
}

func (e *Engine) url(base *url.URL, path string) string {
	u := *base
	u.Path += path
	return u.String()
}

// send makes a request, with the key where there is one. The body is not nil
// where the error is.
func (e *Engine) send(ctx context.Context, method, url string, data []byte) (*http.Response, error) {
	var reader io.Reader // stays nil, not a nil *bytes.Reader
	if data != nil {
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, errors.New("the request cannot be written")
	}
	req.Header.Set("User-Agent", "perch")
	if data != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if e.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	return e.client.Do(req)
}

// once makes one request for a message and passes it on as it comes.
func (e *Engine) once(ctx context.Context, p thinker.Prompt, used habits, out func(thinker.Piece) error) (thinker.Stop, error) {
	data, err := e.encode(p, used)
	if err != nil {
		return "", err
	}
	w, by := watched(ctx, e.o.FirstWithin), time.Now().Add(e.o.FirstWithin)
	defer w.stop()
	late := fmt.Sprintf("it did not begin to answer within %v", e.o.FirstWithin)

	where := e.url(e.base, "/chat/completions")
	if e.native {
		where = e.url(e.root, "/api/chat")
	}
	response, err := e.send(w.ctx, http.MethodPost, where, data)
	if err != nil {
		return "", w.blame(err, late)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", w.blame(refused(response), late)
	}
	a := &answer{out: out, invent: e.invent, thoughts: thoughts{expected: e.expects()}}
	r := &reading{e: e, w: w, a: a, by: by, in: bufio.NewReader(&capped{response.Body, mostAnswered})}
	err = r.all()
	if errors.Is(err, errEnough) {
		err = nil
	}
	var inside *refusal
	if errors.As(err, &inside) {
		inside.midway = a.said > 0
	}
	if err != nil {
		if a.began {
			late = fmt.Sprintf("it fell silent for %v in the middle of its answer", e.o.IdleWithin)
		}
		return "", w.blame(err, late)
	}
	stop, err := a.end()
	if err == nil {
		e.learnManner(a)
	}
	return stop, err
}

func (e *Engine) invent() string { return fmt.Sprintf("call_%d", e.calls.Add(1)) }

// reading is an answer while it comes in.
type reading struct {
	e  *Engine
	w  *watch
	a  *answer
	by time.Time // the next sign of life has to come
	in *bufio.Reader
}

// all reads the answer in whatever form it has. Its first character tells
// more than the headers of these servers do.
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

// first is the first character that is no white space.
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

// whole reads an answer that was not streamed, though it was asked to be.
func (r *reading) whole() error {
	data, err := io.ReadAll(io.LimitReader(r.in, longestLine+1))
	r.w.timer.Stop()
	switch {
	case err != nil:
		return err
	case len(data) > longestLine:
		return errTooLong
	}
	if err := r.a.chunk(data); err != nil {
		return err
	}
	if !r.a.began {
		return errGarbage
	}
	return nil
}

// How long is waited for the end of what has come to its end.
const (
	afterFinish = time.Second            // for [DONE], past usage
	afterDone   = 100 * time.Millisecond // for the connection to be free again
)

func (r *reading) events() error {
	events := &events{lines: lines{r: r.in}}
	for {
		data, err := events.next()
		r.w.timer.Stop()
		if err != nil {
			if r.a.finish != "" || err == io.EOF && r.a.began {
				return nil // some servers just stop
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

// wait starts the clock for the next piece. A piece without anything in it has
// bought no time.
func (r *reading) wait() {
	within := r.e.o.IdleWithin
	if r.a.finish != "" {
		within = min(afterFinish, within)
	}
	if r.a.alive {
		r.a.alive, r.by = false, time.Now().Add(within)
	}
	r.w.timer.Reset(max(0, time.Until(r.by)))
}

// drain reads to the end, so that the connection can serve the next request.
func (r *reading) drain() {
	r.w.timer.Reset(afterDone)
	_, _ = io.Copy(io.Discard, io.LimitReader(r.in, mostRefused)) // a failure costs a new connection
	r.w.timer.Stop()
}

// native reads lines of JSON to the one that says it is the last.
func (r *reading) native() error {
	lines := &lines{r: r.in}
	for {
		line, err := lines.next()
		r.w.timer.Stop()
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

// cut makes of a clean end in the wrong place what it is.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
