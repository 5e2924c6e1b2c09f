package wyoming

import (
	"context"
	"sync"
	"time"

	"perch/remote"
	"perch/voice"
)

// server is a Wyoming server: its address, and what it serves.
type server struct {
	o        Options
	endpoint *endpoint
	served   remote.Cached[Info]

	mu     sync.Mutex
	asking *question // nil unless a request is running
}

// question is a request for a server's info, shared by its callers.
type question struct {
	done  chan struct{} // closed when the result is set
	info  Info
	err   error
	ended bool // because its caller's context ended
}

func newServer(host, port string, o Options) *server {
	return &server{o: o, endpoint: newEndpoint(host, port)}
}

// need is the purpose of a call.
type need struct {
	key string // distinguishes it from other needs
	// fits returns why a server with that info is of no use, or nil.
	fits func(*server, Info) error
}

// toRecognize is what a call of Recognize needs.
func toRecognize(o voice.Options) need {
	return need{"hear " + o.Language, func(s *server, info Info) error {
		_, err := s.chooseRecognizer(info, o)
		return err
	}}
}

// toSynthesize is what a call of Synthesize needs.
func toSynthesize(o voice.Options) need {
	return need{"speak " + o.Language + " " + o.Voice, func(s *server, info Info) error {
		_, err := s.chooseSynthesizer(info, o)
		return err
	}}
}

// toServe is the need of an engine whose use is not known yet: the configured model and
// voice must exist.
func toServe() need {
	return need{"serve", func(s *server, info Info) error {
		_, noSTT := s.chooseRecognizer(info, voice.Options{})
		_, noTTS := s.chooseSynthesizer(info, voice.Options{})
		switch {
		case noSTT != nil && s.o.Model != "":
			return noSTT
		case noTTS != nil && s.o.Voice != "", len(info.ASR) == 0:
			return noTTS
		case noTTS != nil:
			return noSTT
		}
		return nil
	}}
}

// pick returns a server for n, its info, and the time left to reach it: the configured
// server, or a server found on the network.
func (e *Engine) pick(ctx context.Context, n need) (*server, Info, time.Duration, error) {
	if e.found != nil {
		began := time.Now()
		s, info, err := e.found.pick(ctx, n)
		return s, info, connectWithin - time.Since(began), err
	}
	info, err := e.fixed.info(ctx)
	if err == nil {
		err = n.fits(e.fixed, info)
	}
	return e.fixed, info, connectWithin, err
}

// check is pick without cached info.
func (e *Engine) check(ctx context.Context, n need) error {
	if e.found != nil {
		e.found.forget()
	} else {
		e.fixed.served.Forget()
	}
	_, _, _, err := e.pick(ctx, n)
	return err
}
