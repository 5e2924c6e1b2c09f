package remote_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/limit"
	"perch/must"
	"perch/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	canary   = "sk-canary/0f3d9a+Zq"
	maxShown = 200
)

func keyed() *remote.Server {
	return &remote.Server{Service: "the speech server", Address: "http://127.0.0.1:8000/v1", Key: canary}
}

// FuzzComplaint checks that the error for a response shows no useful part of a key, whatever text surrounds the key.
func FuzzComplaint(f *testing.F) {
	f.Add("application/json", []byte(`{"error":{"message":"bad `), []byte(`"}}`))
	f.Add("application/json", []byte(`{"detail":[{"loc":["body","x"],"msg":"`), []byte(`"}]}`))
	f.Add("application/json", []byte(`{"detail":{"status":"`), []byte(`","message":"m"}}`))
	f.Add("text/plain", []byte("Bearer "), []byte(" is bad"))
	f.Add("text/plain", bytes.Repeat([]byte(" "), limit.Data-10), []byte(""))
	f.Add("", []byte("\x00\xff"), []byte("\u202e"))
	f.Fuzz(func(t *testing.T, kind string, before, after []byte) {
		c := keyed()
		body := append(append(bytes.Clone(before), canary...), after...)
		code, detail := remote.Message(body[:min(len(body), limit.Data)])
		code, detail = c.Quote(code), c.Quote(detail)
		for _, shown := range []string{code, detail} {
			if strings.Contains(shown, canary) || strings.Contains(shown, canary[:10]) && !bytes.Contains(before, []byte(canary[:10])) &&
				!bytes.Contains(after, []byte(canary[:10])) {
				t.Errorf("shows %q", shown)
			}
			if strings.ContainsAny(shown, "\r\n\x00\x1b") || len([]rune(shown)) > maxShown+1 {
				t.Errorf("%q is not one short line", shown)
			}
		}
	})
}

// TestCloseReleasesTheConnection checks that Answer.Close ends the call, even if the response has not ended.
func TestCloseReleasesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "abc")
		if r.URL.Path == "/more" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
		}
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	must.Succeed(t, err)
	c := remote.NewClient(remote.Options{Server: remote.Server{Address: server.URL}, Base: base, First: time.Minute, Idle: time.Minute})
	defer c.Close()
	for _, path := range []string{"all", "more"} {
		a, err := c.Call(t.Context(), remote.Request{Method: http.MethodGet, Path: path})
		must.Succeed(t, err)
		if path == "all" {
			if body, err := a.Whole(3); err != nil || string(body) != "abc" {
				t.Errorf("%q, %v", body, err)
			}
		}
		a.Close()
		if _, err := a.Read(make([]byte, 1)); err == nil {
			t.Error("the call goes on")
		}
	}
	<-gone
}

// TestAKeyCutInTwo checks that no part of a key is shown if a limit on the length of a text falls within the key.
func TestAKeyCutInTwo(t *testing.T) {
	t.Parallel()
	c := keyed()
	for _, pad := range []string{" ", "a ", "Bearer x "} {
		for i := range 2 * len(canary) {
			n := limit.Data - i
			if i >= len(canary) {
				n -= 512 - len(canary)
			}
			text := strings.Repeat(pad, n/len(pad)+1)[:n] + canary
			_, detail := remote.Message([]byte(text)[:min(len(text), limit.Data)])
			detail = c.Quote(detail)
			if quoted := c.Quote(text); strings.Contains(detail+quoted, canary[:4]) {
				t.Fatalf("after %d bytes of %q: %q, %q", n, pad, detail, quoted)
			}
		}
	}
}

func TestNamesOfModelsAreNoKeys(t *testing.T) {
	c := keyed()
	for _, name := range []string{
		"Systran/faster-distil-whisper-large-v3", "speaches-ai/Kokoro-82M-v1.0-ONNX", "gpt-4o-mini-transcribe-2025-12-15",
		"hexgrad/Kokoro-82M", "piper-en_US-lessac-medium", "eleven_multilingual_v2", "unsupported_response_format",
	} {
		if got := c.Quote(name); got != name {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	for _, key := range []string{canary, "0123456789abcdef0123456789abcdef", "0123456789abcdef01234567"} {
		if got := c.Quote("it is " + key); got != "it is [key]" {
			t.Errorf("%q becomes %q", key, got)
		}
	}
}

// TestMessage checks the forms of error bodies that Message recognizes.
func TestMessage(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"error":{"message":"no","code":"c"}}`:                               {"c", "no"},
		`{"error":"no"}`:                                                      {"", "no"},
		`{"status":400,"error":"Bad Request","message":"no"}`:                 {"", "no"},
		`[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]`: {"INVALID_ARGUMENT", "no"},
		`{"detail":"no"}`:                                                     {"", "no"},
		`{"detail":[{"loc":["body","model"],"msg":"no"}]}`:                    {"", "model: no"},
		`{"detail":{"status":"s","message":"no"}}`:                            {"s", "no"},
		`{"errors":[{"message":"no"}]}`:                                       {"", "no"},
		`{"message":"no"}`:                                                    {"", "no"},
		`{"msg":"no"}`:                                                        {"", "no"},
		`{"error":{"error":{"message":"no"}}}`:                                {"", "no"},
		`{"error_description":"no","error":"e"}`:                              {"", "no"},
		`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"no\"}}"}}}`: {"", "Provider returned error: no"},
		`400: no`:      {"", "no"},
		`no`:           {"", "no"},
		`<html>no`:     {"", ""},
		`{}`:           {"", ""},
		`[]`:           {"", ""},
		`{"error":{}}`: {"", ""},
	} {
		if code, message := remote.Message([]byte(body)); code != want[0] || message != want[1] {
			t.Errorf("%s is %q, %q", body, code, message)
		}
	}
}
