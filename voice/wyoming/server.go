package wyoming

import (
	"context"
	"sync"
	"time"

	"perch/remote"
	"perch/voice"
)

// server is a Wyoming server.
type server struct {
	o          Options
	endpoint   *endpoint
	cachedInfo remote.Cached[Info]

	mu      sync.Mutex
	request *infoRequest // running request, or nil
}

// infoRequest is a request for the info of a server. Concurrent calls of server.info share
// it.
type infoRequest struct {
	done      chan struct{} // closed when the result is set
	info      Info
	err       error
	cancelled bool // whether it failed because the context of the call that runs it has ended
}

// newServer returns a server without info.
func newServer(host, port string, o Options) *server {
	return &server{o: o, endpoint: newEndpoint(host, port)}
}

// need describes what a server must be able to do.
type need struct {
	key   string                    // identifies the need
	check func(*server, Info) error // returns an error if a server with this info does not satisfy the need
}

// recognizeNeed returns the need of a call of Recognize.
func recognizeNeed(o voice.Options) need {
	return need{"hear " + o.Language, func(s *server, info Info) error {
		_, err := s.chooseRecognizer(info, o)
		return err
	}}
}

// synthesizeNeed returns the need of a call of Synthesize.
func synthesizeNeed(o voice.Options) need {
	return need{"speak " + o.Language + " " + o.Voice, func(s *server, info Info) error {
		_, err := s.chooseSynthesizer(info, o)
		return err
	}}
}

// anyNeed returns the need of Check, and of Warm before the first call: the server must be able to
// recognize or synthesize, and must have the configured model and voice.
func anyNeed() need {
	return need{"serve", func(s *server, info Info) error {
		_, recognizeErr := s.chooseRecognizer(info, voice.Options{})
		_, synthesizeErr := s.chooseSynthesizer(info, voice.Options{})
		switch {
		case recognizeErr != nil && s.o.Model != "":
			return recognizeErr
		case synthesizeErr != nil && s.o.Voice != "", len(info.ASR) == 0:
			return synthesizeErr
		case synthesizeErr != nil:
			return recognizeErr
		}
		return nil
	}}
}

// pick returns a server that satisfies n, its info, and the timeout of connecting to it. The
// server is the configured one, or was found on the network.
func (e *Engine) pick(ctx context.Context, n need) (*server, Info, time.Duration, error) {
	if e.finder != nil {
		start := time.Now()
		s, info, err := e.finder.pick(ctx, n)
		return s, info, connectTimeout - time.Since(start), err
	}
	info, err := e.fixed.info(ctx)
	if err == nil {
		err = n.check(e.fixed, info)
	}
	return e.fixed, info, connectTimeout, err
}

// check returns an error if no server satisfies n. It does not use cached info.
func (e *Engine) check(ctx context.Context, n need) error {
	if e.finder != nil {
		e.finder.reset()
	} else {
		e.fixed.cachedInfo.Forget()
	}
	_, _, _, err := e.pick(ctx, n)
	return err
}
