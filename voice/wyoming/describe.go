package wyoming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"perch/voice"
)

// servedFor is how long an answer to describe is cached. A call that fails drops it.
const servedFor = 5 * time.Minute

// info returns what the server serves. Concurrent callers share one request and its result.
// The error is ctx's if ctx ends.
func (s *server) info(ctx context.Context) (Info, error) {
	for {
		s.mu.Lock()
		if info, fresh := s.served.Get(); fresh {
			s.mu.Unlock()
			return info, nil
		}
		q := s.asking
		first := q == nil
		if first {
			q = &question{done: make(chan struct{})}
			s.asking = q
		}
		s.mu.Unlock()
		if first {
			s.answer(ctx, q)
			return q.info, q.err
		}
		select {
		case <-q.done:
			if !q.ended {
				return q.info, q.err
			}
		case <-ctx.Done():
			return Info{}, ctx.Err()
		}
	}
}

// answer asks the server and sets q's result.
func (s *server) answer(ctx context.Context, q *question) {
	q.info, q.err = s.describe(ctx)
	q.ended = q.err != nil && ctx.Err() != nil
	if q.err == nil {
		s.served.Put(q.info, servedFor)
	}
	s.mu.Lock()
	s.asking = nil
	s.mu.Unlock()
	close(q.done)
}

// mostStray bounds the events before the answer to describe.
const mostStray = 32

// describe asks what the server serves, within the time to connect since that is no work.
// It omits programs that are not installed, and may then return nothing of use.
func (s *server) describe(ctx context.Context) (Info, error) {
	var info Info
	began := time.Now()
	err := s.talk(ctx, connectWithin, min(connectWithin, s.o.AnswerWithin), func(_ context.Context, c *call) error {
		return c.send(TypeDescribe, nil, nil)
	}, func(c *call) error {
		if err := c.ask(); err != nil {
			return err
		}
		for range mostStray {
			event, err := c.read()
			if err != nil {
				return err
			}
			if event.Type == TypeInfo {
				return decodeInfo(event, &info)
			}
		}
		return reason("it does not answer the question what it serves; is it a Wyoming server?")
	})
	if err != nil {
		return Info{}, err
	}
	info.ASR, info.TTS = installed(info.ASR), installed(info.TTS)
	if len(info.ASR)+len(info.TTS) == 0 {
		return Info{}, s.faulty("it serves neither speech to text nor text to speech"+others(info)+"; give the address of one that does",
			errNotServed)
	}
	s.o.Log.Debug("a Wyoming server listed what it serves", "server", s.endpoint.String(),
		"recognizers", len(info.ASR), "synthesizers", len(info.TTS), "took", time.Since(began))
	return info, nil
}

// errNotServed is the cause of a fault that is not the network's.
var errNotServed = errors.New("not served")

// errLanguage is the cause of a fault of a server that works, in other languages.
var errLanguage = fmt.Errorf("%w: %w", errNotServed, voice.ErrLanguage)

// decodeInfo ignores fields of a wrong type: some servers write their version as a number.
func decodeInfo(e Event, info *Info) error {
	var odd *json.UnmarshalTypeError
	if err := e.Decode(info); err != nil && !errors.As(err, &odd) {
		return err
	}
	return nil
}

func installed(programs []Program) []Program {
	return slices.DeleteFunc(programs, func(p Program) bool { return !p.Installed })
}

// others lists what the server serves instead.
func others(info Info) string {
	switch {
	case len(info.Wake) > 0:
		return ", only wake words"
	case len(info.Handle)+len(info.Intent) > 0:
		return ", only answers to text"
	}
	return ""
}
