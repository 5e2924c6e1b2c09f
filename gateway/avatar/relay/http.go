package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"perch/gateway/avatar/feed"
	"perch/remote"
)

// httpLink is embedded by links to programs with an HTTP API.
type httpLink struct {
	nopLink
	client   *remote.Client
	warnings warnings
}

// newHTTPLink returns a link whose calls have a timeout. Warnings are passed to note, as in
// program.open.
func newHTTPLink(o remote.Options, timeout time.Duration, note func(error)) *httpLink {
	o.First, o.Idle = timeout, timeout
	l := &httpLink{client: remote.NewClient(o)}
	l.warnings.report = note
	return l
}

// call sends a request, whose body is JSON or nil. It returns at most maxBytes bytes of the body of
// the response, and the response's headers.
func (l *httpLink) call(ctx context.Context, r remote.Request, maxBytes int64) (text []byte, header http.Header, err error) {
	if r.Body != nil {
		r.ContentType = "application/json"
	}
	a, err := l.client.Call(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	text, err = io.ReadAll(io.LimitReader(a, maxBytes))
	return text, a.Header, err
}

// checkRefusal handles the error of sending a message. If the program would refuse the same message
// again, the error becomes a warning, and checkRefusal returns errNotShown, which does not end the
// link.
func (l *httpLink) checkRefusal(err error) error {
	fault, ok := errors.AsType[*remote.Fault](err)
	switch {
	case ok && fault.Unanswerable():
		l.warnings.set("", err)
		return errNotShown
	case err == nil:
		l.warnings.set("", nil)
	}
	return err
}

func (l *httpLink) warning() error { return l.warnings.all() }
func (l *httpLink) close()         { l.client.Close() }

// recent holds the latest IDs or texts that were added: of the notifications that a program was sent,
// which are not sent again on the next connection, or of the errors that were logged.
type recent struct{ ids []string }

// maxRecent is the maximum number of IDs in recent.
const maxRecent = 256

// frameID returns an ID that depends only on the content of a frame.
func frameID(f *feed.Frame) string {
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(id string) bool { return slices.Contains(r.ids, id) }

func (r *recent) add(id string) {
	r.ids = append(r.ids, id)
	r.ids = r.ids[max(0, len(r.ids)-maxRecent):]
}
