package httpserver_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/must"
)

// foreign is an error with a code and a status whose package does not import httpserver.
type foreign struct{}

func (foreign) Error() string { return "the tea is cold" }
func (foreign) Code() string  { return "cold_tea" }
func (foreign) Status() int   { return http.StatusTeapot }

func TestErrorsHaveOneShape(t *testing.T) {
	for _, c := range []struct {
		name          string
		err           error
		status        int
		code, message string
		logged        bool
	}{
		{"a fault", &httpserver.Fault{Word: "no_robot", Sentence: "there is no such robot", HTTP: 404}, 404, "no_robot", "there is no such robot", false},
		{"a wrapped fault", fmt.Errorf("say: %w", &httpserver.Fault{Word: "away", Sentence: "it is away", HTTP: 409}), 409, "away", "it is away", false},
		{"of another package", foreign{}, 418, "cold_tea", "the tea is cold", false},
		{"wrapped, of another package", fmt.Errorf("brew: %w", foreign{}), 418, "cold_tea", "the tea is cold", false},
		{"too large a body", fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 5}), 413, "body_too_large",
			"the request body is larger than this address accepts", false},
		{"internal", errors.New("open /var/lib/perch/admin-token: s3cret"), 500, "internal", "internal error; the log says more", true},
		{"quotes", &httpserver.Fault{Word: "w", Sentence: `"<script>`, HTTP: 400}, 400, "w", `"<script>`, false},
	} {
		e, log := newEngine(t)
		e.GET("/x", func(g *gin.Context) { _ = g.Error(c.err) })
		w := serve(e, request(http.MethodGet, "/x"))
		code, message := shown(t, w)
		if w.Code != c.status || code != c.code || message != c.message {
			t.Errorf("%s: %d %s %q", c.name, w.Code, code, message)
		}
		if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s: Content-Type %q", c.name, kind)
		}
		if logged := strings.Contains(log.String(), c.err.Error()); logged != c.logged {
			t.Errorf("%s: logged %t: %s", c.name, logged, log)
		}
	}
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	for name, value := range map[string]any{"text": "s3cret text", "error": errors.New("s3cret error"), "number": 7} {
		e, log := newEngine(t)
		e.GET("/x", func(*gin.Context) { panic(value) })
		w := serve(e, request(http.MethodGet, "/x"))
		if code, message := shown(t, w); w.Code != 500 || code != "internal" || strings.Contains(message, "s3cret") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !strings.Contains(log.String(), fmt.Sprint(value)) || !strings.Contains(log.String(), "path=/x") {
			t.Errorf("%s: logged %s", name, log)
		}
	}
}

// TestPanicAfterTheHeaders checks that a response that a panic cuts off does not look complete.
func TestPanicAfterTheHeaders(t *testing.T) {
	e, _ := newEngine(t)
	e.GET("/x", func(g *gin.Context) {
		g.Writer.WriteString("half")
		g.Writer.Flush()
		panic("in the middle")
	})
	server := httptest.NewServer(e)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/x")
	must.Succeed(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil || string(text) != "half" {
		t.Errorf("read %q (%v), want half an answer that breaks off", text, err)
	}
}

func TestErrorAfterTheHeadersIsLoggedOnly(t *testing.T) {
	e, log := newEngine(t)
	e.GET("/x", func(g *gin.Context) {
		g.Writer.WriteString("all there is")
		_ = g.Error(errors.New("the client is gone"))
	})
	if w := serve(e, request(http.MethodGet, "/x")); w.Code != 200 || w.Body.String() != "all there is" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "the client is gone") {
		t.Errorf("logged %q", log)
	}
}

// TestDoubledSlash checks that several slashes at the beginning of a path below /v1/ count as one, and that the guards
// of the path still apply. No other path may have a second spelling, which a proxy might not block.
func TestDoubledSlash(t *testing.T) {
	e, log := newEngine(t)
	ok := func(g *gin.Context) { g.String(200, "%s", g.Request.URL.Path) }
	e.GET("/v1/without", ok)
	e.GET("/xiaozhi/ota", ok) // a proxy may block this path
	e.GET("/v1/locked", httpserver.Guard(func(*http.Request) error { return &httpserver.Fault{Word: "no", Sentence: "no", HTTP: 401} }), ok)
	for path, want := range map[string]int{"//v1/without": 200, "///v1/without": 200, "//v1/locked": 401, "//xiaozhi/ota": 404,
		"/%2Fxiaozhi/ota": 404} {
		w := serve(e, request(http.MethodGet, path))
		if w.Code != want || want == 200 && w.Body.String() != "/v1/without" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

func TestWrongAddresses(t *testing.T) {
	e, _ := newEngine(t)
	ok := func(g *gin.Context) { g.String(200, "ok") }
	e.GET("/with/", ok)
	e.GET("/without", ok)
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{http.MethodGet, "/nothing", 404, "not_found"},
		{http.MethodGet, "/with", 404, "not_found"}, // not 301, because robots do not follow redirects
		{http.MethodGet, "/without/", 404, "not_found"},
		{http.MethodGet, "/WITHOUT", 404, "not_found"},
		{http.MethodGet, "//nothing", 404, "not_found"},
		{http.MethodGet, "//with/../without", 404, "not_found"},
		{http.MethodGet, "//with//", 404, "not_found"},
		{http.MethodPost, "//without", 404, "not_found"},
		{http.MethodGet, "/with/../without", 404, "not_found"},
		{http.MethodPost, "/without", 405, "wrong_method"},
		{http.MethodOptions, "/without", 405, "wrong_method"},
		{"BREW", "/with/", 405, "wrong_method"},
	} {
		w := serve(e, request(c.method, c.path))
		if code, _ := shown(t, w); w.Code != c.status || code != c.code || w.Header().Get("Location") != "" {
			t.Errorf("%s %s: %d %s, Location %q", c.method, c.path, w.Code, w.Body, w.Header().Get("Location"))
		}
		if c.status == 405 && w.Header().Get("Allow") != http.MethodGet {
			t.Errorf("%s %s: Allow is %q (RFC 9110 section 15.5.6)", c.method, c.path, w.Header().Get("Allow"))
		}
	}
}

func TestGuard(t *testing.T) {
	e, _ := newEngine(t)
	var checked []string
	check := func(name string, err error) func(*http.Request) error {
		return func(*http.Request) error { checked = append(checked, name); return err }
	}
	refuse := &httpserver.Fault{Word: "no", Sentence: "no", HTTP: 403}
	reached := false
	e.GET("/open", httpserver.Guard(check("a", nil), check("b", nil)), func(*gin.Context) { reached = true })
	e.GET("/shut", httpserver.Guard(check("c", refuse), check("d", nil)), func(*gin.Context) { t.Error("the handler ran after a refusal") })
	if w := serve(e, request(http.MethodGet, "/open")); w.Code != 200 || !reached {
		t.Errorf("open: %d, reached %t", w.Code, reached)
	}
	w := serve(e, request(http.MethodGet, "/shut"))
	if code, _ := shown(t, w); w.Code != 403 || code != "no" {
		t.Errorf("shut: %d %s", w.Code, w.Body)
	}
	if got := strings.Join(checked, ""); got != "abc" {
		t.Errorf("checks ran in the order %q, want abc", got)
	}
}

// TestGuardsPrecedeNotFound checks that the guards also run for an unknown path, so that a foreign page does not learn
// which paths exist.
func TestGuardsPrecedeNotFound(t *testing.T) {
	e, _ := newEngine(t)
	e.Use(httpserver.Guard(httpserver.Hosts{}.Check))
	r := request(http.MethodGet, "/nothing")
	r.Host = "evil.example"
	if w := serve(e, r); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("answered %d", w.Code)
	}
}

func TestForwardedAddressesAreNotBelieved(t *testing.T) {
	e, _ := newEngine(t)
	e.GET("/x", func(g *gin.Context) { g.String(200, g.ClientIP()) })
	r := request(http.MethodGet, "/x")
	r.Header.Set("X-Forwarded-For", "127.0.0.1")
	r.Header.Set("X-Real-Ip", "127.0.0.1")
	if w := serve(e, r); w.Body.String() != "192.168.1.5" {
		t.Errorf("the client's address is %s", w.Body)
	}
}

func TestLimit(t *testing.T) {
	e, _ := newEngine(t)
	e.POST("/x", httpserver.Limit(10), func(g *gin.Context) {
		text, err := io.ReadAll(g.Request.Body)
		if err != nil {
			_ = g.Error(err)
			return
		}
		g.String(200, "%d", len(text))
	})
	for size, status := range map[int]int{0: 200, 10: 200, 11: 413, 1 << 20: 413} {
		r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(strings.Repeat("x", size)))
		w := serve(e, r)
		if w.Code != status {
			t.Errorf("%d bytes: %d %s", size, w.Code, w.Body)
		}
		if status == 413 {
			if code, _ := shown(t, w); code != "body_too_large" {
				t.Errorf("%d bytes: %s", size, code)
			}
		}
	}
}

// TestHEADIsAnsweredAsGET checks that HEAD gets the status and the headers of GET, and no body.
func TestHEADIsAnsweredAsGET(t *testing.T) {
	e, _ := newEngine(t)
	e.GET("/x", func(c *gin.Context) { c.String(http.StatusTeapot, "text") })
	e.GET("/stream", func(c *gin.Context) {
		_, _ = c.Writer.WriteString("event")
		<-c.Request.Context().Done() // otherwise the test would not end
	})
	e.POST("/only-post", func(*gin.Context) {})
	for path, status := range map[string]int{"/x": http.StatusTeapot, "/stream": http.StatusOK, "/only-post": http.StatusMethodNotAllowed, "/no": 404} {
		w := serve(e, request(http.MethodHead, path))
		if w.Code != status || status < 404 && w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := serve(e, request(http.MethodHead, "/x")); w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("Allow") != "" {
		t.Errorf("the header is %v", w.Header())
	}
}
