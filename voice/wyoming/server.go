package wyoming

import (
	"context"
	"sync"
	"time"

	"perch/remote"
	"perch/voice"
)

// server is one Wyoming server: where it is, and what it serves.
type server struct {
	o        Options
	endpoint *endpoint
	served   remote.Kept[Info]

	mu     sync.Mutex
	asking *question // nil while it is not asked what it serves
}

// question is a request for what a server serves, which callers share.
type question struct {
	done  chan struct{} // closed when the rest is set
	info  Info
	err   error
	ended bool // because the context of its caller has ended
}

func newServer(host, port string, o Options) *server {
	return &server{o: o, endpoint: newEndpoint(host, port)}
}

// need is what a server is wanted for.
type need struct {
	key string // distinguishes it from other needs
	// fits says why a server with that info is of no use; nil is that it is.
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

// toServe is what an engine needs whose use is not known yet: what is configured
// must be there.
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

// pick is a server for that, what it serves, and the time that is left to
// reach it: the one whose address was given, or one that is found.
func (e *Engine) pick(ctx context.Context, n need) (*server, Info, time.Duration, error) {
	if e.found != nil {
		began := time.Now()
		s, info, err := e.found.pick(ctx, n)
		return s, info, e.o.ConnectWithin - time.Since(began), err
	}
	info, err := e.fixed.info(ctx)
	if err == nil {
		err = n.fits(e.fixed, info)
	}
	return e.fixed, info, e.o.ConnectWithin, err
}

// check is pick, with nothing taken for granted that was known before.
func (e *Engine) check(ctx context.Context, n need) error {
	if e.found != nil {
		e.found.forget()
	} else {
		e.fixed.served.Forget()
	}
	_, _, _, err := e.pick(ctx, n)
	return err
}
