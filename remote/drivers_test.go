package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/anthropic"
	brainassist "perch/agent/assist"
	"perch/agent/mcp"
	brainopenai "perch/agent/openai"
	"perch/agent/thinker/thinkertest"
	"perch/must"
	"perch/remote"
	"perch/remote/hass"
	"perch/voice"
	"perch/voice/assist"
	"perch/voice/elevenlabs"
	"perch/voice/openai"
	"perch/voice/voicevox"
)

// driver is a driver that sends HTTP requests to a server.
type driver struct {
	kind error // wrapped by errors after which the next engine of the list is tried
	use  func(ctx context.Context, url, key string, within time.Duration) error
	// own holds the sentences for cases with a special meaning at the driver's server, by case.
	own map[string]string
	// keeps holds the cases after which no other engine is tried, because others would refuse the
	// same request.
	keeps map[string]bool
	keyed bool // whether the driver requires a key
}

// using calls use, and then closes the engine. err is the error of creating the engine.
func using(engine any, err error, use func() error) error {
	if err != nil {
		return err
	}
	switch e := engine.(type) {
	case interface{ Close() error }:
		defer e.Close()
	case interface{ Close() }:
		defer e.Close()
	}
	return use()
}

// ask gets an answer of a model, and closes the model.
func ask(ctx context.Context, m closer, err error) error {
	return using(m, err, func() error { _, err := m.Continue(ctx, thinkertest.Hello(), ignore); return err })
}

// hello returns an utterance of half a second of silence.
func hello() *voice.Utterance {
	u := voice.NewUtterance()
	u.Write(make([]int16, voice.MicRate/2))
	u.Finish()
	return u
}

func drivers() map[string]driver {
	silent := func([]int16) error { return nil }
	refused := map[string]bool{"a bad request": true}
	atHome := map[string]string{"a wrong key": "refuses the token", "a forbidden key": "ip_bans.yaml",
		"a gateway that failed": "is not ready (HTTP 502)"}
	speech := map[string]string{"no such path": "check the url, which mostly ends in /v1",
		"no key": "wants a key and none is set (HTTP 401: who are you); set key_file"}
	return map[string]driver{
		"agent/openai": {kind: agent.ErrAway, keeps: refused, use: func(ctx context.Context, url, key string, within time.Duration) error {
			m, err := brainopenai.New(brainopenai.Options{URL: url, Key: key, Model: "m", FirstWithin: within, IdleWithin: within})
			return ask(ctx, m, err)
		}, own: map[string]string{"no such path": "there is no such API at"}},
		"agent/openai, Ollama": {kind: agent.ErrAway, keeps: refused, use: func(ctx context.Context, url, key string, within time.Duration) error {
			m, err := brainopenai.New(brainopenai.Options{URL: url, Key: key, Model: "m", Dialect: brainopenai.DialectOllama, FirstWithin: within,
				IdleWithin: within})
			return ask(ctx, m, err)
		}, own: map[string]string{"no such path": "there is no such API at"}},
		"agent/anthropic": {kind: agent.ErrAway, keeps: refused, use: func(ctx context.Context, url, key string, within time.Duration) error {
			m, err := anthropic.New(anthropic.Options{URL: url, Key: key, Model: "m", FirstWithin: within, IdleWithin: within})
			return ask(ctx, m, err)
		}, own: map[string]string{"no such path": "there is no Messages API at"}},
		"agent/assist": {kind: agent.ErrAway, keyed: true, own: atHome, use: func(ctx context.Context, url, key string, within time.Duration) error {
			b, err := brainassist.New(brainassist.Options{URL: url, Token: key, REST: true, FirstWithin: within})
			return using(b, err, func() error { return b.Think(ctx, agent.Turn{Text: "Hello"}, func(agent.Reply) error { return nil }) })
		}},
		"agent/mcp": {kind: agent.ErrAway, use: func(ctx context.Context, url, key string, within time.Duration) error {
			s, err := mcp.New(mcp.Options{Name: "it", URL: url, Key: key, ConnectWithin: within, Log: slog.New(slog.DiscardHandler)})
			return using(s, err, func() error { return s.Check(ctx) })
		}, own: map[string]string{"no such path": "there is no MCP server at", "silence": "does not answer in"}},
		"remote/hass": {keyed: true, own: atHome, use: func(ctx context.Context, url, key string, within time.Duration) error {
			c, err := hass.New(hass.Options{URL: url, Token: key})
			return using(c, err, func() error { _, err := c.Converse(ctx, within, hass.Question{Text: "Hello"}); return err })
		}},
		"voice/openai, recognizer": {kind: voice.ErrUnavailable, own: speech,
			use: func(ctx context.Context, url, key string, within time.Duration) error {
				r, err := openai.NewRecognizer(openai.Options{URL: url, Key: key, FirstByte: within, Idle: within})
				return using(r, err, func() error { _, err := r.Recognize(ctx, hello(), voice.Options{}); return err })
			}},
		"voice/openai, synthesizer": {kind: voice.ErrUnavailable, own: speech,
			use: func(ctx context.Context, url, key string, within time.Duration) error {
				s, err := openai.NewSynthesizer(openai.Options{URL: url, Key: key, FirstByte: within, Idle: within})
				return using(s, err, func() error { return s.Synthesize(ctx, "Hello.", voice.Options{}, silent) })
			}},
		"voice/voicevox": {kind: voice.ErrUnavailable, own: map[string]string{"no key": "wants a key and none is set (HTTP 401: who are you); set key_file"},
			use: func(ctx context.Context, url, key string, within time.Duration) error {
				e, err := voicevox.New(voicevox.Options{URL: url, Key: key, Voice: "3", Within: within})
				return using(e, err, func() error { return e.Synthesize(ctx, "こんにちは。", voice.Options{}, silent) })
			}},
		"voice/elevenlabs": {kind: voice.ErrUnavailable, own: speech, use: func(ctx context.Context, url, key string, within time.Duration) error {
			e, err := elevenlabs.New(elevenlabs.Options{URL: url, Key: key, Voice: "JBFqnCBsd6RMkjVDRZzb", FirstByte: within, Idle: within})
			return using(e, err, func() error { return e.Synthesize(ctx, "Hello.", voice.Options{}, silent) })
		}},
		"voice/assist, synthesizer": {kind: voice.ErrUnavailable, keyed: true,
			use: func(ctx context.Context, url, key string, within time.Duration) error {
				s, err := assist.NewSynthesizer(assist.Options{URL: url, Token: key, Engine: "tts.piper", AnswerWithin: within, IdleWithin: within})
				return using(s, err, func() error { return s.Synthesize(ctx, "Hello.", voice.Options{}, silent) })
			}, own: map[string]string{"a wrong key": "refuses the token", "a forbidden key": "ip_bans.yaml",
				"a gateway that failed": "is not ready (HTTP 502)",
				"a failure":             "cannot speak with tts.piper", "a bad request": "cannot speak with tts.piper"}},
	}
}

// TestServersThatFail checks the error of every driver for each fault of a server: one sentence with a cause and a
// remedy, without the key, and whether the next engine of the list is tried.
func TestServersThatFail(t *testing.T) {
	status := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	says := func(words string) string {
		return `{"type":"error","error":{"type":"x_error","message":"` + words + `"}}`
	}
	hijack := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	for name, c := range map[string]struct {
		does    http.HandlerFunc // nil if nothing listens
		tls     bool             // whether the driver uses TLS, which the server does not support
		keyless bool
		within  time.Duration
		want    string
	}{
		"nothing":          {want: "nothing listens at URL; is the server running?"},
		"no TLS":           {does: http.NotFound, tls: true, want: "does not speak TLS; the url should begin with http://"},
		"another protocol": {does: hijack("SSH-2.0-OpenSSH " + canary + "\r\n\r\n"), want: "does not answer in HTTP; check the port in the url"},
		"a cut":            {does: hijack(""), want: "cut the connection without an answer; see its log"},
		"silence": {does: func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			within: 100 * time.Millisecond, want: "answer within 100ms; it may be overloaded"},
		"a wrong key":     {does: status(401, says("bad key "+canary)), want: "refuses the key (HTTP 401: bad key [key]); check "},
		"no key":          {does: status(401, says("who are you")), keyless: true, want: "wants a key and none is set (HTTP 401: who are you); set "},
		"a forbidden key": {does: status(403, says("not you, "+canary)), want: "refuses the key (HTTP 403: not you, [key]); check "},
		"no credit":       {does: status(402, says("top up")), want: "no credit left (HTTP 402: top up); top it up, or wait"},
		"no such path":    {does: status(404, ""), want: "(HTTP 404); check the url"},
		"too many requests": {does: status(429, says("slow down"), "X-Should-Retry", "false"),
			want: "has had too many requests (HTTP 429: slow down); wait, or raise the account's limit"},
		"a moment": {does: status(429, says("slow down"), "Retry-After", "17"), want: "it asks to wait until 17 s from now (Retry-After)"},
		"elsewhere": {does: status(307, "", "Location", "http://thief.example/v1?key="+canary),
			want: "sends elsewhere (HTTP 307 to http://thief.example/v1); put the right address into url"},
		"a bad request":         {does: status(400, says("long for "+canary)), want: "refuses the request (HTTP 400: long for [key]); check "},
		"a failure":             {does: status(500, says("out of memory"), "X-Should-Retry", "false"), want: "has failed (HTTP 500: out of memory); see its log"},
		"a gateway that failed": {does: status(502, "<html>"+canary, "X-Should-Retry", "false"), want: "has failed (HTTP 502); see its log"},
		"not ready":             {does: status(503, says("wait"), "X-Should-Retry", "false"), want: "is not ready (HTTP 503: wait); it may still be starting"},
	} {
		for of, d := range drivers() {
			if c.keyless && d.keyed {
				continue
			}
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewUnstartedServer(c.does)
				server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
				server.Start()
				url, key, within := server.URL, canary, 30*time.Second
				if c.does == nil {
					server.Close()
				}
				t.Cleanup(server.Close)
				if c.tls {
					url = strings.Replace(url, "http:", "https:", 1)
				}
				if c.keyless {
					key = ""
				}
				if c.within > 0 {
					within = c.within
				}
				err := d.use(t.Context(), url, key, within)
				want := c.want
				if own := d.own[name]; own != "" {
					want = own
				}
				var fault *remote.Fault
				switch {
				case err == nil:
					t.Fatal("it works")
				case !strings.Contains(err.Error(), strings.ReplaceAll(want, "URL", url)):
					t.Errorf("%q does not say %q", err, want)
				case strings.Contains(err.Error(), "canary"), strings.ContainsAny(err.Error(), "\r\n\x00"), len(err.Error()) > 500:
					t.Errorf("%q is no sentence, or holds the key", err)
				}
				if d.kind == nil && !errors.As(err, &fault) {
					t.Errorf("%v is no fault", err)
				}
				if next := errors.Is(err, d.kind); d.kind != nil && next == d.keeps[name] {
					t.Errorf("%v: the next is tried: %t", err, next)
				}
			})
		}
	}
}

// TestSilentServersAreGivenUp checks drivers against a server that accepts connections and then sends nothing, or single
// bytes without an end. The use must fail after one wait, with an error after which the next engine is tried.
func TestSilentServersAreGivenUp(t *testing.T) {
	const within = 300 * time.Millisecond
	all := drivers()
	all["agent/assist, WebSocket"] = driver{kind: agent.ErrAway, use: func(ctx context.Context, url, key string, within time.Duration) error {
		b, err := brainassist.New(brainassist.Options{URL: url, Token: key, ConnectWithin: within, FirstWithin: within})
		return using(b, err, func() error { return b.Think(ctx, agent.Turn{Text: "Hello"}, func(agent.Reply) error { return nil }) })
	}}
	all["voice/assist, recognizer"] = driver{kind: voice.ErrUnavailable, use: func(ctx context.Context, url, key string, within time.Duration) error {
		r, err := assist.NewRecognizer(assist.Options{URL: url, Token: key, ConnectWithin: within, AnswerWithin: within})
		return using(r, err, func() error { _, err := r.Recognize(ctx, hello(), voice.Options{}); return err })
	}}
	for name, byteEvery := range map[string]time.Duration{"accepts and says nothing": time.Hour, "a byte now and then": within / 10} {
		for of, d := range all {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				url := trickles(t, byteEvery)
				began := time.Now()
				err := d.use(t.Context(), url, canary, within)
				if took := time.Since(began); took > 2*within+time.Second { // a second more, for a busy machine
					t.Errorf("it took %s", took)
				}
				if err == nil || d.kind != nil && !errors.Is(err, d.kind) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%v has the next not tried", err)
				}
			})
		}
	}
}

// trickles returns the URL of a server that accepts connections and sends one byte after each interval every. The
// bytes are not a valid response in any protocol.
func trickles(t *testing.T, every time.Duration) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				gone := make(chan struct{})
				serving.Go(func() { defer close(gone); _, _ = io.Copy(io.Discard, conn) })
				for {
					select {
					case <-gone:
						return
					case <-time.After(every):
						_, _ = io.WriteString(conn, "H") // fails if the client has disconnected
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return "http://" + l.Addr().String()
}

// TestUnreachableHostIsNamedWithoutItsKey checks that an error sentence names the address without a key in its query.
func TestUnreachableHostIsNamedWithoutItsKey(t *testing.T) {
	var closed net.Listener
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	at := "http://" + closed.Addr().String()
	_ = closed.Close()
	for _, of := range []string{"agent/openai", "agent/mcp", "voice/openai, synthesizer", "voice/elevenlabs"} {
		err := drivers()[of].use(t.Context(), at+"/v1?key="+canary, canary, time.Second)
		if err == nil || !strings.Contains(err.Error(), "nothing listens at "+at+"/v1; ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", of, err)
		}
	}
}
