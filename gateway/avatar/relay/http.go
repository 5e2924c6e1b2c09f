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

// newHTTPLink returns a link whose calls have a timeout. note is the
// function that program.open was given. It is called when the link's warnings change.
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

// recent holds the latest strings that were added, such as the IDs of notifications that a program has shown, which
// are not sent again, or the texts of errors that were logged, which are not logged again.
type recent struct{ items []string } // oldest first

// maxRecent is the maximum number of strings in recent.
const maxRecent = 256

// frameID returns an ID that depends only on the content of a frame.
func frameID(f *feed.Frame) string {
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(item string) bool { return slices.Contains(r.items, item) }

func (r *recent) add(item string) {
	r.items = append(r.items, item)
	r.items = r.items[max(0, len(r.items)-maxRecent):]
}
