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

// httpLink is embedded by links to programs that are reached by HTTP.
type httpLink struct {
	nopLink
	client   *remote.Client
	warnings warnings
}

// newHTTPLink returns a link whose calls time out after within.
func newHTTPLink(o remote.Options, within time.Duration, note func(error)) *httpLink {
	o.First, o.Idle = within, within
	l := &httpLink{client: remote.NewClient(o)}
	l.warnings.report = note
	return l
}

// call sends a JSON body, which may be nil, and returns at most that many bytes of the answer.
func (l *httpLink) call(ctx context.Context, r remote.Request, most int64) (text []byte, header http.Header, err error) {
	if r.Body != nil {
		r.ContentType = "application/json"
	}
	a, err := l.client.Call(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	text, err = io.ReadAll(io.LimitReader(a, most))
	return text, a.Header, err
}

// checkRefusal turns the program's refusal of one message into a warning and errNotShown, so
// that it neither ends the link nor is repeated.
func (l *httpLink) checkRefusal(err error) error {
	fault, is := errors.AsType[*remote.Fault](err)
	switch {
	case is && fault.Unanswerable():
		l.warnings.set("", err)
		return errNotShown
	case err == nil:
		l.warnings.set("", nil)
	}
	return err
}

func (l *httpLink) warning() error { return l.warnings.all() }
func (l *httpLink) close()         { l.client.Close() }

// recent holds the ids of the latest notifications that a program was sent, so that a new
// connection does not repeat them.
type recent struct{ ids []string }

const mostRecent = 256

// idOf returns the id of a frame. It stays the same when the frame is sent again.
func idOf(f *feed.Frame) string {
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(id string) bool { return slices.Contains(r.ids, id) }

func (r *recent) add(id string) {
	r.ids = append(r.ids, id)
	r.ids = r.ids[max(0, len(r.ids)-mostRecent):]
}
