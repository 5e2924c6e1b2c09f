package anthropic_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/anthropic"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/device"
)

func apiError(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
}

// TestErrors tests that each failure leads to a one-line error without the key, after the
// expected number of requests.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		ours   bool // whether the error does not wrap agent.ErrAway
		tries  int
		want   string
	}{
		"wrong key": {status: 401, body: apiError("authentication_error", "invalid x-api-key "+thinkertest.Canary), tries: 1,
			want: "refuses the key (HTTP 401: invalid x-api-key [key]); check brains[..].key"},
		"no model": {status: 404, body: apiError("not_found_error", "model: claude-haiku-5-5"), tries: 1,
			want: "the model claude-haiku-5-5 does not exist; GET URL/v1/models lists: claude-a, claude-b"},
		"no such API": {status: 404, body: "<html>", tries: 1, want: "there is no Messages API at URL"},
		"no credit":   {status: 400, body: apiError("invalid_request_error", "Your credit balance is too low"), tries: 1, want: "no credit left"},
		"too many": {status: 429, header: http.Header{"Retry-After": {"3600"}}, body: apiError("rate_limit_error", "slow down"), tries: 1,
			want: "asks to wait until 3600 s from now (Retry-After)"},
		"a moment": {status: 429, header: http.Header{"Retry-After": {"0"}, "Retry-After-Ms": {"3600000"}},
			body: apiError("rate_limit_error", "slow down"), tries: 2, want: "asks to wait"},
		"overloaded": {status: 529, body: apiError("overloaded_error", "Overloaded"), tries: 2, want: "is overloaded"},
		"elsewhere": {status: 307, header: http.Header{"Location": {"https://other.example/x?key=1"}}, tries: 2,
			want: "sends elsewhere (HTTP 307 to https://other.example/x)"},
		"a failure": {status: 500, body: strings.Repeat("x", 1<<20), tries: 2, want: "has failed (HTTP 500)"},
		"our fault": {status: 400, ours: true, body: apiError("invalid_request_error", "messages: too long"), tries: 1,
			want: "refuses the request (HTTP 400: messages: too long)"},
		"in the stream": {status: 200, body: "event: error\ndata: " + apiError("overloaded_error", "Overloaded") + "\n\n", tries: 1,
			want: "is overloaded"},
		"cut": {status: 200, body: strings.Split(string(thinkertest.Record(t, "text.sse")), "event: content_block_stop")[0], tries: 1,
			want: "cut the connection"},
		"a web page": {status: 200, body: "<html>\n\n<body>", tries: 1, want: "not of the Messages API"},
		"garbage":    {status: 200, body: "event: message_start\ndata: {{{\n\n", tries: 1, want: "not of the Messages API"},
		"out of order": {status: 200,
			body: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", tries: 1, want: "not of the Messages API"},
		"without end": {status: 200, body: strings.Repeat("event: ping\ndata: {}\n\n", 1<<20), tries: 1, want: "larger than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, path string, _ map[string]any) {
				if strings.HasPrefix(path, "GET /v1/models") {
					io.WriteString(w, `{"data":[{"id":"claude-a","type":"model"},{"id":"claude-b","type":"model"}],"has_more":false}`)
					return
				}
				maps.Copy(w.Header(), c.header)
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			_, err := engine(t, options(s.URL)).Continue(t.Context(), thinkertest.Hello(), func(thinker.Piece) error { return nil })
			if err == nil || errors.Is(err, agent.ErrAway) == c.ours || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "URL", s.URL)) {
				t.Error(err)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "canary") || strings.Contains(text, "\n") || len(text) > 500 {
				t.Error("a key, or more than a sentence:", text)
			}
			tries := 0
			for _, a := range s.Requests() {
				if a.Path == "POST /v1/messages" {
					tries++
				}
			}
			if tries != c.tries {
				t.Errorf("%d tries", tries)
			}
		})
	}
}

// TestRejectedOptionsAreLeftOut tests that an option that the model rejects is omitted from then
// on, and logged once.
func TestRejectedOptionsAreLeftOut(t *testing.T) {
	one := 1.0
	s := serve(t, func(w http.ResponseWriter, _ string, body map[string]any) {
		for field, spoken := range map[string]string{
			"temperature":   "`temperature` is not supported on this model",
			"output_config": "This model does not support the effort parameter.",
		} {
			if _, there := body[field]; there {
				w.WriteHeader(400)
				io.WriteString(w, apiError("invalid_request_error", spoken))
				return
			}
		}
		w.Write(thinkertest.Record(t, "text.sse"))
	})
	var log bytes.Buffer
	o := options(s.URL)
	o.Temperature, o.Effort, o.Log = &one, "low", slog.New(slog.NewTextHandler(&log, nil))
	e := engine(t, o)
	for range 2 {
		if got := thinkertest.Listen(e, thinkertest.Hello()); got.Err != "" {
			t.Fatal(got)
		}
	}
	if n, warnings := len(s.Requests()), strings.Count(log.String(), "level=WARN"); n != 4 || warnings != 2 {
		t.Errorf("%d requests, logged %d times", n, warnings)
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options("http://proxy.example")
		requests := 0
		o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			answer := thinkertest.Streamed(r, bytes.NewReader(thinkertest.Record(t, "text.sse")))
			if requests == 1 {
				answer.StatusCode, answer.Body = http.StatusTooManyRequests,
					io.NopCloser(strings.NewReader(apiError("rate_limit_error", "slow down")))
				answer.Header.Set("Retry-After", "1")
			}
			return answer, nil
		})
		start := time.Now()
		if got := thinkertest.Listen(engine(t, o), thinkertest.Hello()); got.Err != "" || got.Text == "" {
			t.Error(got)
		}
		if took := time.Since(start); took < time.Second || took > 3*time.Second || requests != 2 {
			t.Errorf("%d requests in %v", requests, took)
		}
	})
}

// TestCheck tests Check with a server that describes models, and with a proxy that does not.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"there":        {status: 200, body: `{"id":"claude-haiku-5-5","type":"model"}`},
		"not there":    {status: 404, body: apiError("not_found_error", "model: claude-haiku-5-5"), want: "the model claude-haiku-5-5 does not exist"},
		"a proxy":      {status: 404, body: `{"detail":"Not Found"}`},
		"wrong key":    {status: 401, body: apiError("authentication_error", "invalid x-api-key"), want: "brains[..].key"},
		"another page": {status: 200, body: "<html>", want: "not of the Messages API"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			err := engine(t, options(s.URL)).Check(t.Context())
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want)) {
				t.Error(err)
			}
			if got := s.Requests()[0]; got.Path != "GET /v1/models/claude-haiku-5-5" {
				t.Error(got)
			}
		})
	}
}

func TestDescribeImage(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) { w.Write(thinkertest.Record(t, "text.sse")) })
	look := agent.Look{Picture: device.Picture{Data: []byte("jpeg")}, Language: "de"}
	o := options(s.URL)
	if _, err := engine(t, o).DescribeImage(t.Context(), look); err != agent.ErrBlind || len(s.Requests()) != 0 {
		t.Error(err)
	}
	o.Vision = true
	e := engine(t, o)
	if spoken, err := e.DescribeImage(t.Context(), look); err != nil || spoken != "😊 It is sunny." {
		t.Error(spoken, err)
	}
	if text := fmt.Sprint(s.Requests()[0].Body); !strings.Contains(text, "tag de.") || !strings.Contains(text, "image/jpeg") ||
		!strings.Contains(text, "What do you see?") {
		t.Error(text)
	}
	look.Picture.Data = nil
	if _, err := e.DescribeImage(t.Context(), look); err == nil {
		t.Error("no picture was looked at")
	}
}

func TestInvalidOptions(t *testing.T) {
	hot := 1.5
	for want, o := range map[string]anthropic.Options{
		"the key is missing":          {Model: "m"},
		"model is missing":            {Key: "k"},
		"not the address of a server": {URL: "proxy", Model: "m"},
		"holds a password":            {URL: "http://u:" + thinkertest.Canary + "@h", Model: "m"},
		"temperature is 0 to 1":       {Key: "k", Model: "m", Temperature: &hot},
		"more than one line":          {Key: thinkertest.Canary + "\nx", Model: "m"},
		`extra may not hold "tools"`:  {Key: "k", Model: "m", Extra: map[string]any{"tools": 1}},
		"which is no name of a field": {Key: "k", Model: "m", Extra: map[string]any{"messages.0": 1}},
		"a deadline is not negative":  {Key: "k", Model: "m", IdleWithin: -1},
		"max_tokens is not negative":  {Key: "k", Model: "m", MaxTokens: -1},
	} {
		if _, err := anthropic.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
