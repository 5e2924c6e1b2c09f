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

// infoExpiry is how long the info of a server is cached, unless a call fails.
const infoExpiry = 5 * time.Minute

// info returns the server's info, which may be cached. Concurrent calls share one request
// and its result. info returns ctx's error if ctx ends.
func (s *server) info(ctx context.Context) (Info, error) {
	for {
		s.mu.Lock()
		if info, ok := s.cachedInfo.Get(); ok {
			s.mu.Unlock()
			return info, nil
		}
		r := s.request
		isFirst := r == nil
		if isFirst {
			r = &infoRequest{done: make(chan struct{})}
			s.request = r
		}
		s.mu.Unlock()
		if isFirst {
			s.runRequest(ctx, r)
			return r.info, r.err
		}
		select {
		case <-r.done:
			if !r.cancelled {
				return r.info, r.err
			}
		case <-ctx.Done():
			return Info{}, ctx.Err()
		}
	}
}

// runRequest requests the info and sets the result of r.
func (s *server) runRequest(ctx context.Context, r *infoRequest) {
	r.info, r.err = s.describe(ctx)
	r.cancelled = r.err != nil && ctx.Err() != nil
	if r.err == nil {
		s.cachedInfo.Put(r.info, infoExpiry)
	}
	s.mu.Lock()
	s.request = nil
	s.mu.Unlock()
	close(r.done)
}

// maxOtherEvents is the maximum number of events up to the response to a describe event, which is the last.
const maxOtherEvents = 32

// describe requests the server's info, and removes programs that are not installed. The
// timeout is short, because the response is hardly any work for a server.
func (s *server) describe(ctx context.Context) (Info, error) {
	var info Info
	start := time.Now()
	err := s.call(ctx, connectTimeout, min(connectTimeout, s.o.AnswerWithin), func(_ context.Context, c *call) error {
		return c.send(TypeDescribe, nil, nil)
	}, func(c *call) error {
		if err := c.startTimeout(); err != nil {
			return err
		}
		for range maxOtherEvents {
			event, err := c.read()
			if err != nil {
				return err
			}
			if event.Type == TypeInfo {
				return decodeInfo(event, &info)
			}
		}
		return reason("it does not list its services; is it a Wyoming server?")
	})
	if err != nil {
		return Info{}, err
	}
	info.ASR, info.TTS, info.Turn = installed(info.ASR), installed(info.TTS), installed(info.Turn)
	if len(info.ASR)+len(info.TTS) == 0 {
		return Info{}, s.newFault("it serves neither speech to text nor text to speech"+otherServices(info)+"; give the address of one that does",
			errNotServed)
	}
	s.o.Log.Debug("a Wyoming server listed what it serves", "server", s.endpoint.String(),
		"recognizers", len(info.ASR), "synthesizers", len(info.TTS), "took", time.Since(start))
	return info, nil
}

// errNotServed is the cause of faults for servers that work, but lack a needed service, model or
// voice.
var errNotServed = errors.New("not served")

// errLanguage is the cause of a fault of a server that does not support the language.
var errLanguage = fmt.Errorf("%w: %w", errNotServed, voice.ErrLanguage)

// decodeInfo decodes the data of an info event. It ignores fields of a wrong type, because
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

// otherServices describes, as part of a message, the services of a server that has neither
// speech to text nor text to speech.
func otherServices(info Info) string {
	switch {
	case len(info.Wake) > 0:
		return ", only wake words"
	case len(info.Handle)+len(info.Intent) > 0:
		return ", only answers to text"
	}
	return ""
}
