package httpserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/gateway/httpserver"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEngine returns an engine and the buffer of its log.
func newEngine(t testing.TB) (*gin.Engine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	e, err := httpserver.NewEngine(slog.New(slog.NewTextHandler(&log, nil)))
	must.Succeed(t, err)
	return e, &log
}

func request(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host, r.RemoteAddr = "perch.local:8003", "192.168.1.5:40000"
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// shown returns the code and the message of an error response, which must have no other fields.
func shown(t testing.TB, w *httptest.ResponseRecorder) (code, message string) {
	t.Helper()
	var b struct {
		Error *struct {
			Code    *string `json:"code"`
			Message *string `json:"message"`
		} `json:"error"`
	}
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil || b.Error == nil || b.Error.Code == nil || b.Error.Message == nil {
		t.Fatalf("%d %s is not {error: {code, message}} (%v)", w.Code, w.Body, err)
	}
	return *b.Error.Code, *b.Error.Message
}

// refused returns the code and status of a check's error, which must be a *Fault.
func refused(t testing.TB, err error) (code string, status int) {
	t.Helper()
	var f *httpserver.Fault
	if !errors.As(err, &f) {
		t.Fatalf("%v (%T) is no Fault", err, err)
	}
	return f.Code(), f.Status()
}

// checkRefusal checks that err is nil if may is true, and otherwise a *Fault with the code, the status and hint in
// its message.
func checkRefusal(t testing.TB, name string, err error, may bool, code string, status int, hint string) {
	t.Helper()
	if (err == nil) != may {
		t.Errorf("%.80s: %v, want allowed %t", name, err, may)
	}
	if err == nil {
		return
	}
	if c, s := refused(t, err); c != code || s != status || !strings.Contains(err.Error(), hint) || len(err.Error()) > 500 {
		t.Errorf("%.80s is refused with %d %s: %v", name, s, c, err)
	}
}
