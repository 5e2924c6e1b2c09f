package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
)

const panel = "https://panel.example"

// newShared returns an engine with the checks of the listener for the home network.
func newShared(t testing.TB) *gin.Engine {
	t.Helper()
	e, _ := newEngine(t)
	e.Use(httpserver.Origins{Allowed: []string{panel}}.Admit(), httpserver.Guard(httpserver.Hosts{}.Check))
	ok := func(g *gin.Context) { g.String(200, "ok") }
	e.GET("/xiaozhi/ota/", ok)
	e.POST("/xiaozhi/ota/", ok)
	e.POST("/fails", func(g *gin.Context) {
		_ = g.Error(&httpserver.Fault{Word: "cold_tea", Sentence: "the tea is cold", HTTP: 418})
	})
	e.POST("/panics", func(*gin.Context) { panic("tea") })
	e.DELETE("/locked/:id", httpserver.Guard(httpserver.NewKey("secret", "a file", "").Check), ok)
	return e
}

// page sends a request as a browser does for a web page of the given origin; "" sends no Origin.
func page(e http.Handler, method, path, origin string, header ...string) *httptest.ResponseRecorder {
	r := request(method, path)
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return serve(e, r)
}

// cors returns the Access-Control headers of a response, by their names without that prefix.
func cors(w *httptest.ResponseRecorder) map[string]string {
	found := map[string]string{}
	for name := range w.Header() {
		if short, is := strings.CutPrefix(name, "Access-Control-"); is {
			found[short] = w.Header().Get(name)
		}
	}
	return found
}

func TestPreflight(t *testing.T) {
	e := newShared(t)
	for _, c := range []struct {
		name, path, origin, method, methods string
	}{
		{"a check-in", "/xiaozhi/ota/", panel, "POST", "GET, POST"},
		{"with a query", "/xiaozhi/ota/?device-id=a0b1c2d3e4f5", panel, "GET", "GET, POST"},
		{"our own page", "/xiaozhi/ota/", "http://perch.local:8003", "POST", "GET, POST"},
		{"an address behind a key, which a preflight never has", "/locked/1", panel, "DELETE", "DELETE"},
		{"a method that is not taken", "/fails", panel, "PUT", "POST"},
	} {
		w := page(e, http.MethodOptions, c.path, c.origin, "Access-Control-Request-Method", c.method, "Access-Control-Request-Headers",
			"client-id,device-id")
		got := cors(w)
		if w.Code != http.StatusNoContent || w.Body.Len() != 0 || w.Header().Get("Vary") != "Origin" ||
			got["Allow-Origin"] != c.origin || got["Allow-Methods"] != c.methods || got["Max-Age"] != "600" {
			t.Errorf("%s: %d %v %s", c.name, w.Code, w.Header(), w.Body)
		}
		allowed := "," + strings.ReplaceAll(strings.ToLower(got["Allow-Headers"]), " ", "") + ","
		for _, header := range []string{"device-id", "client-id", "activation-version", "serial-number", "authorization", "content-type",
			"accept-language",
			"user-agent", "protocol-version", "x-admin-token", "last-event-id"} {
			if !strings.Contains(allowed, ","+header+",") {
				t.Errorf("%s: %s may not be sent: %s", c.name, header, allowed)
			}
		}
		if _, there := got["Allow-Credentials"]; there || got["Allow-Private-Network"] != "" {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestHeadersOfOpenAILibrary checks that a preflight allows the headers that OpenAI's library adds, and X-Session-Id.
func TestHeadersOfOpenAILibrary(t *testing.T) {
	e := newShared(t)
	w := page(e, http.MethodOptions, "/xiaozhi/ota/", panel, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,x-stainless-lang, X-Stainless-OS,x-other,x-stainless-{b}")
	allowed := strings.ToLower(cors(w)["Allow-Headers"])
	for header, want := range map[string]bool{"x-session-id": true, "x-stainless-lang": true, "x-stainless-os": true, "x-other": false,
		"stainless-{": false} {
		if strings.Contains(allowed, header) != want {
			t.Errorf("%s: %s", header, allowed)
		}
	}
}

// TestPreflightFromOutside checks the header that a browser adds to the preflight of a page of the public
// internet that uses a private network.
func TestPreflightFromOutside(t *testing.T) {
	e := newShared(t)
	for value, want := range map[string]string{"true": "true", "": "", "1": ""} {
		w := page(e, http.MethodOptions, "/xiaozhi/ota/", panel, "Access-Control-Request-Method", "POST", "Access-Control-Request-Private-Network",
			value)
		if got := cors(w)["Allow-Private-Network"]; w.Code != 204 || got != want {
			t.Errorf("%q: %d %q", value, w.Code, got)
		}
	}
}

// TestOptionsWithoutPreflight checks that requests that are not preflights of an allowed page for an existing route
// get their usual error.
func TestOptionsWithoutPreflight(t *testing.T) {
	e := newShared(t)
	for _, c := range []struct {
		name, method, path, origin, asks string
		status                           int
	}{
		{"without an Origin", "OPTIONS", "/xiaozhi/ota/", "", "POST", 405},
		{"without a method to ask for", "OPTIONS", "/xiaozhi/ota/", panel, "", 405},
		{"nothing there", "OPTIONS", "/nothing", panel, "POST", 404},
		{"another method", "PUT", "/xiaozhi/ota/", panel, "POST", 405},
		{"a foreign page", "OPTIONS", "/xiaozhi/ota/", "https://evil.example", "POST", 403},
		{"a page of a file", "OPTIONS", "/xiaozhi/ota/", "null", "POST", 403},
	} {
		w := page(e, c.method, c.path, c.origin, "Access-Control-Request-Method", c.asks)
		shown(t, w)
		got := cors(w)
		if _, permits := got["Allow-Methods"]; w.Code != c.status || permits || w.Header().Get("Vary") != "Origin" {
			t.Errorf("%s: %d %v", c.name, w.Code, w.Header())
		}
		if want := map[bool]string{true: panel}[c.origin == panel]; got["Allow-Origin"] != want {
			t.Errorf("%s: Allow-Origin is %q, want %q", c.name, got["Allow-Origin"], want)
		}
	}
}

// TestAllowedPagesReadAnswers checks that an allowed page, and no other, can read responses and errors.
func TestAllowedPagesReadAnswers(t *testing.T) {
	e := newShared(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/xiaozhi/ota/", 200}, {"POST", "/fails", 418}, {"POST", "/panics", 500}, {"DELETE", "/locked/1", 401}, {"GET", "/nothing", 404},
		{"GET", "/fails", 405},
	} {
		if w := page(e, c.method, c.path, panel); w.Code != c.status || cors(w)["Allow-Origin"] != panel || w.Header().Get("Vary") != "Origin" ||
			len(cors(w)) != 1 {
			t.Errorf("%s %s: %d %v", c.method, c.path, w.Code, w.Header())
		}
		if w := page(e, c.method, c.path, ""); w.Code != c.status || len(cors(w)) > 0 || w.Header().Get("Vary") != "Origin" {
			t.Errorf("%s %s without a page: %d %v", c.method, c.path, w.Code, w.Header())
		}
		w := page(e, c.method, c.path, "https://evil.example")
		if code, _ := shown(t, w); w.Code != 403 || code != "foreign_origin" || len(cors(w)) > 0 {
			t.Errorf("%s %s from a foreign page: %d %v", c.method, c.path, w.Code, w.Header())
		}
	}
}

// TestPagesReadHostRefusal checks that an allowed page can read the error for an unknown host name, and that the
// preflight for such a host is refused too.
func TestPagesReadHostRefusal(t *testing.T) {
	e := newShared(t)
	for _, method := range []string{http.MethodGet, http.MethodOptions} {
		r := request(method, "/xiaozhi/ota/")
		r.Host = "elsewhere.example"
		r.Header.Set("Origin", panel)
		r.Header.Set("Access-Control-Request-Method", "GET")
		w := serve(e, r)
		if code, _ := shown(t, w); w.Code != http.StatusMisdirectedRequest || code != "unknown_host" || cors(w)["Allow-Origin"] != panel ||
			len(cors(w)) != 1 {
			t.Errorf("%s: %d %v %s", method, w.Code, w.Header(), w.Body)
		}
	}
}

// TestTwoOriginsAreRefused checks that two Origin headers, which no browser sends, are refused.
func TestTwoOriginsAreRefused(t *testing.T) {
	r := request(http.MethodGet, "/")
	r.Header["Origin"] = []string{panel, "https://evil.example"}
	if err := (httpserver.Origins{Allowed: []string{panel}}).Check(r); err == nil {
		t.Error("they are let in")
	}
}

// FuzzOrigin checks that only the allowed pages and the pages of the requested host can read a response.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{panel, "http://perch.local:8003", "null", "https://evil.example", panel + ".evil.example", "//perch.local:8003",
		"http://[::1"} {
		f.Add(origin, "perch.local:8003", "OPTIONS", "POST")
		f.Add(origin, "elsewhere.example", "GET", "")
	}
	e := newShared(f)
	f.Fuzz(func(t *testing.T, origin, host, method, asks string) {
		r := request(http.MethodGet, "/xiaozhi/ota/")
		r.Method, r.Host = method, host
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", asks)
		w := serve(e, r)
		got := cors(w)
		u, err := url.Parse(origin)
		may := origin == panel || err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
		if shared, is := got["Allow-Origin"]; is && (shared != origin || !may) || !may && origin != "" && w.Code != http.StatusForbidden {
			t.Fatalf("%q at %q: %d %v", origin, host, w.Code, got)
		}
		if got["Allow-Methods"] != "" && w.Code != http.StatusNoContent {
			t.Fatalf("%q at %q: %d %v", origin, host, w.Code, got)
		}
	})
}
