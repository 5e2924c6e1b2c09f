package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"perch/remote"
)

// server is what a link to a program by HTTP begins with.
type server struct {
	quiet
	client  *remote.Client
	remarks remarks
}

// newServer is a link whose calls have so long.
func newServer(o remote.Options, within time.Duration, note func(error)) *server {
	o.First, o.Idle = within, within
	s := &server{client: remote.NewClient(o)}
	s.remarks.tell = note
	return s
}

// call sends a JSON body, or none, and returns at most so many bytes of the answer.
func (s *server) call(ctx context.Context, r remote.Request, most int64) (text []byte, header http.Header, err error) {
	if r.Body != nil {
		r.ContentType = "application/json"
	}
	a, err := s.client.Call(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	text, err = io.ReadAll(io.LimitReader(a, most))
	return text, a.Header, err
}

// told shows the owner what the program has refused of one message, which does not end the
// link, and returns errUntold then: the program would refuse it later too.
func (s *server) told(err error) error {
	fault, is := errors.AsType[*remote.Fault](err)
	switch {
	case is && fault.Unanswerable():
		s.remarks.say("", err)
		return errUntold
	case err == nil:
		s.remarks.say("", nil)
	}
	return err
}

func (s *server) note() error { return s.remarks.all() }
func (s *server) close()      { s.client.Close() }
