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

// servedFor is how long an answer to describe is believed. A call that fails
// ends it sooner.
const servedFor = 5 * time.Minute

// info is what the server serves. Callers at the same time cause one request and
// share its answer or its failure. The error is ctx's if ctx ends.
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

// answer asks the server and answers the question with what it says.
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

// mostStray bounds what a server may say before it answers describe.
const mostStray = 32

// describe asks. That is no work for a server, so it has no longer than it has to be
// reached. Programs that are not installed are left out, and with them
// nothing of use may be left.
func (s *server) describe(ctx context.Context) (Info, error) {
	var info Info
	began := time.Now()
	err := s.talk(ctx, s.o.ConnectWithin, min(s.o.ConnectWithin, s.o.AnswerWithin), func(_ context.Context, c *call) error {
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

// errNotServed is the cause of a fault that is none of the network's.
var errNotServed = errors.New("not served")

// errLanguage is that of a server that works, in other languages.
var errLanguage = fmt.Errorf("%w: %w", errNotServed, voice.ErrLanguage)

// decodeInfo is forgiving of a field that has another type than it should:
// some servers write their version as a number.
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

// others names what the server does serve.
func others(info Info) string {
	switch {
	case len(info.Wake) > 0:
		return ", only wake words"
	case len(info.Handle)+len(info.Intent) > 0:
		return ", only answers to text"
	}
	return ""
}
