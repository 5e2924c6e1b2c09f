package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"perch/remote"
)

// httpLink is embedded by links to programs that are reached by HTTP.
type httpLink struct {
	nopLink
	client   *remote.Client
	warnings warnings
}

// newHTTPLink returns a link whose calls time out after within.
func newHTTPLink(o remote.Options, within time.Duration, note func(error)) *httpLink {
	o.First, o.Idle = within, within
	s := &httpLink{client: remote.NewClient(o)}
	s.warnings.report = note
	return s
}

// call sends a JSON body, which may be nil, and returns at most that many bytes of the answer.
func (s *httpLink) call(ctx context.Context, r remote.Request, most int64) (text []byte, header http.Header, err error) {
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

// checkRefusal turns the program's refusal of one message into a warning and errNotShown, so
// that it neither ends the link nor is repeated.
func (s *httpLink) checkRefusal(err error) error {
	fault, is := errors.AsType[*remote.Fault](err)
	switch {
	case is && fault.Unanswerable():
		s.warnings.set("", err)
		return errNotShown
	case err == nil:
		s.warnings.set("", nil)
	}
	return err
}

func (s *httpLink) warning() error { return s.warnings.all() }
func (s *httpLink) close()         { s.client.Close() }
