package httpserver_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// send writes the text of a request to a server for h in the bubble, and returns the body of the response.
func send(t *testing.T, h http.Handler, request string) string {
	t.Helper()
	client := httpservertest.Serve(t, h)
	must.Value(io.WriteString(client, request))(t)
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	must.Succeed(t, err)
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, client.Close()); err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestNoDeadlineAfterBody checks that the deadline of a body does not cancel the request of a slow handler,
// whether or not the handler has read the body.
func TestNoDeadlineAfterBody(t *testing.T) {
	for name, rest := range map[string]string{
		"none":    "Content-Length: 0\r\n\r\n",
		"one":     "Content-Length: 2\r\n\r\n{}",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		for _, read := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				e, _ := newEngine(t)
				e.POST("/x", httpserver.Limit(100), func(g *gin.Context) {
					if read {
						if _, err := io.ReadAll(g.Request.Body); err != nil {
							t.Error(err)
						}
					}
					select {
					case <-g.Request.Context().Done():
					case <-time.After(5 * time.Minute):
					}
					g.String(200, "%v", g.Request.Context().Err())
				})
				if got := send(t, e, "POST /x HTTP/1.1\r\nHost: perch:8003\r\n"+rest); got != "<nil>" {
					t.Errorf("%s, read %t: %s", name, read, got)
				}
			})
		}
	}
}

// TestBodyTimeout checks that reading a body that never arrives completely fails after thirty seconds.
func TestBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t)
		e.POST("/x", httpserver.Limit(100), func(g *gin.Context) {
			_, err := io.ReadAll(g.Request.Body)
			g.String(200, "%t", errors.Is(err, os.ErrDeadlineExceeded))
		})
		began := time.Now()
		got := send(t, e, "POST /x HTTP/1.1\r\nHost: perch:8003\r\nContent-Length: 50\r\n\r\n{")
		if took := time.Since(began); got != "true" || took != 30*time.Second {
			t.Errorf("after %v: %s", took, got)
		}
	})
}

// TestUnreadBodyIsNotAwaited checks that a request that is refused gets its response within thirty seconds even if
// its body never arrives. net/http reads some of the body before it responds.
func TestUnreadBodyIsNotAwaited(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := newEngine(t)
			e.Handle(method, "/x", httpserver.Guard(func(*http.Request) error { return &httpserver.Fault{Word: "no", Sentence: "no", HTTP: 401} }),
				httpserver.Limit(100))
			began := time.Now()
			got := send(t, e, method+" /x HTTP/1.1\r\nHost: perch:8003\r\nContent-Length: 50\r\n\r\n{")
			if took := time.Since(began); !strings.Contains(got, `"no"`) || took > 30*time.Second {
				t.Errorf("%s: after %v: %s", method, took, got)
			}
		})
	}
}

// unread is a body whose Read fails the test.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestLongBodyIsNotRead checks that a body whose Content-Length is too large is refused without being read.
func TestLongBodyIsNotRead(t *testing.T) {
	e, _ := newEngine(t)
	e.POST("/", httpserver.Limit(10), func(c *gin.Context) {
		_, err := io.ReadAll(c.Request.Body)
		_ = c.Error(err)
	})
	r := request(http.MethodPost, "/")
	r.Body, r.ContentLength = io.NopCloser(unread{t}), 11
	w := serve(e, r)
	if code, _ := shown(t, w); w.Code != http.StatusRequestEntityTooLarge || code != "body_too_large" {
		t.Errorf("%d %s", w.Code, code)
	}
}
