package openai

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   string
		says   string // a part of the server's text that the error must contain; empty if it must contain none
	}{
		"wrong key": {401, `{"error":{"message":"Incorrect API key provided: ` + canary + `. Find yours.","code":"invalid_api_key"}}`,
			"refuses the key", "Incorrect API key provided"},
		"starred key": {401, `{"error":{"message":"Incorrect API key provided: sk-can********9a+Zq."}}`, "refuses the key", "provided: [key]"},
		"somebody's key": {500, `{"error":"upstream 0123456789abcdef0123456789abcdef failed with Bearer abc.def"}`, "has failed (HTTP 500",
			"upstream [key] failed"},
		"no such model": {404, `{"error":{"message":"The model 'Systran/faster-distil-whisper-large-v3' does not exist","code":"model_not_found"}}`,
			"check model", "Systran/faster-distil-whisper-large-v3"},
		"no such voice": {400, `{"detail":{"error":"x","message":"Voice 'nobody' not found"}}`, "check voice", "'nobody'"},
		"wrong path":    {404, `{"detail":"Not Found"}`, "has no audio/", "ends in /v1"},
		"wrong method":  {405, `Method Not Allowed`, "has no audio/", "ends in /v1"},
		"a field too few": {422, `{"detail":[{"loc":["body","sample"],"msg":"field required"},{"msg":"b"}]}`, "refuses the request (HTTP 422",
			"sample: field required"},
		"quota": {429, `{"error":{"message":"You exceeded it.","type":"insufficient_quota","code":"insufficient_quota"}}`, "no credit left",
			"You exceeded it"},
		"too many":         {429, `slow down` + "\n" + `please`, "has had too many requests (HTTP 429", "slow down please)"},
		"broken JSON":      {500, `{"error":"` + canary, "has failed (HTTP 500)", ""},
		"deep JSON":        {500, strings.Repeat("[", 4000), "has failed (HTTP 500)", ""},
		"a long complaint": {500, strings.Repeat("a b ", 900), "has failed (HTTP 500", "a b …"},
		// The key begins before the limit of the text that is read, and ends after it.
		"a key cut in two": {500, strings.Repeat(" ", 4096-12) + canary, "has failed (HTTP 500: [key])", ""},
		"control bytes":    {500, "sk-can\x00ary/0f3d9a+Zq\r\x1b[31m is bad", "has failed (HTTP 500: [key] [31m", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			o := Options{URL: url, Key: canary}
			_, received := recognizer(t, o).Recognize(t.Context(), voicetest.Utterance(ramp(8000)), voice.Options{})
			_, spoke := voicetest.SynthesizeHello(t, synthesizer(t, o))
			for _, err := range []error{received, spoke} {
				voicetest.Sentence(t, err, test.want)
				voicetest.Sentence(t, err, test.says)
				voicetest.Sentence(t, err, "the speech server at "+url)
			}
		})
	}
}

func TestKeyIsNotSentAfterARedirect(t *testing.T) {
	thief := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("was sent %q", r.Header) })
	for _, status := range []int{301, 307} {
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief+"/audio/speech?k="+canary, status)
		})
		_, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: url, Key: canary}))
		voicetest.Sentence(t, err, "sends elsewhere (HTTP "+strconv.Itoa(status)+" to "+thief)
	}
}

// wire returns the URL of a server that reads the request on a TCP connection and
// then calls script.
func wire(t *testing.T, script func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			script(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String() + "/v1"
}

func TestBrokenServers(t *testing.T) {
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer tls.Close()
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	const half = "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Type: "
	tests := map[string]struct{ url, want string }{
		"TLS not trusted": {tls.URL, "is not one this machine trusts"},
		"cut in the head": {wire(t, say("HTTP/1.1 200 OK\r\nConte")), "does not answer in HTTP"},
		"cut in the body": {wire(t, say(half+"audio/pcm\r\n\r\n"+strings.Repeat("ab", 2000))), "cut the connection in the middle"},
		"cut in a WAV":    {wire(t, say(half+"audio/wav\r\n\r\n"+string(voicetest.WAV(24000, ramp(2000))))), "cut the connection in the middle"},
		"cut in its head": {wire(t, say(half+"audio/wav\r\n\r\nRIFF\x00\x00\x00\x00WA")), "cut the connection in the middle"},
		"cut in a chunk":  {wire(t, say(soundHead+"2000\r\nabcdef")), "cut the connection in the middle"},
		"a bad chunk":     {wire(t, say(soundHead+"4\r\nabcd\r\nxyz\r\n")), "cut the connection in the middle"},
		"a huge head":     {wire(t, say("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 100000))), "cannot be used"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: test.url, Key: canary}))
			voicetest.Sentence(t, err, test.want)
			r := recognizer(t, Options{URL: test.url, Key: canary})
			_, err = r.Recognize(t.Context(), voicetest.Utterance(ramp(8000)), voice.Options{})
			voicetest.Sentence(t, err, test.want)
		})
	}
}

func TestNetworkFailures(t *testing.T) {
	for want, broken := range map[string]error{
		"there is no host speech.invalid": &net.DNSError{Err: "no such host", Name: "speech.invalid", IsNotFound: true},
		"there is no way to":              &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"cannot be used: odd [key]":       errors.New("odd " + canary),
	} {
		_, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: "http://speech.invalid/v1", Key: canary, dial: func(context.Context, string, string) (
			net.Conn, error) {
			return nil, broken
		}}))
		voicetest.Sentence(t, err, want)
	}
}

// TestDeadlines checks that each deadline ends a call at exactly its time.
func TestDeadlines(t *testing.T) {
	tests := map[string]struct {
		script  func(conn net.Conn, body []byte)
		connect bool
		after   time.Duration
		want    string
	}{
		"no connection": {nil, true, 5 * time.Second, "cannot be connected to within 5s"},
		"no answer":     {func(net.Conn, []byte) {}, false, 3 * time.Second, "did not begin to answer within 3s"},
		"a head without sound": {func(c net.Conn, _ []byte) {
			time.Sleep(2 * time.Second)
			_, _ = io.WriteString(c, soundHead)
		}, false, 3 * time.Second, "did not begin to answer within 3s"},
		"silence": {func(c net.Conn, _ []byte) {
			_, _ = io.WriteString(c, soundHead)
			for range 5 {
				_, _ = c.Write(chunk(raw(ramp(5760))))
				time.Sleep(1900 * time.Millisecond)
			}
		}, false, 4*1900*time.Millisecond + 2*time.Second, "silent for 2s"},
		"a complaint without end": {func(c net.Conn, _ []byte) {
			_, _ = io.WriteString(c, "HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\n")
		}, false, 3 * time.Second, "has failed (HTTP 500)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes(test.script)
				o := Options{URL: "http://127.0.0.1/v1", FirstByte: 3 * time.Second, Idle: 2 * time.Second, dial: p.dial}
				if test.connect {
					o.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					}
				}
				began := time.Now()
				_, err := voicetest.SynthesizeHello(t, synthesizer(t, o))
				voicetest.Sentence(t, err, test.want)
				if took := time.Since(began); took != test.after {
					t.Errorf("took %s, want %s", took, test.after)
				}
			})
		})
	}
}

// TestOnlyTheServersTimeIsLimited checks that deadlines do not count the time that the caller spends on
// the sound, or the time of speaking.
func TestOnlyTheServersTimeIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes(func(c net.Conn, body []byte) {
			for _, piece := range []string{soundHead, string(chunk(raw(ramp(480)))), string(chunk(raw(ramp(480)))), "0\r\n\r\n"} {
				_, _ = io.WriteString(c, piece)
			}
		})
		s := synthesizer(t, Options{URL: "http://127.0.0.1/v1", FirstByte: time.Second, Idle: time.Second, dial: p.dial})
		err := s.Synthesize(t.Context(), "Hello.", voice.Options{}, func([]int16) error { time.Sleep(time.Minute); return nil })
		if err != nil {
			t.Errorf("a slow listener: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPipes(func(c net.Conn, body []byte) {
			time.Sleep(900 * time.Millisecond)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"text\":\"hi\"}")
		})
		r := recognizer(t, Options{URL: "http://127.0.0.1/v1", FirstByte: time.Second, StreamUpload: true, dial: p.dial})
		u := voice.NewUtterance()
		go func() {
			for range 7 {
				u.Write(ramp(2000))
				time.Sleep(2 * time.Second)
			}
			u.Finish()
		}()
		text, err := r.Recognize(t.Context(), u, voice.Options{})
		if err != nil || text.Text != "hi" {
			t.Errorf("a slow speaker: %+v, %v", text, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a server that reads nothing times out
		r := recognizer(t, Options{URL: "http://127.0.0.1/v1", FirstByte: time.Second, StreamUpload: true,
			dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				t.Cleanup(func() { _ = ours.Close() })
				return theirs, nil
			}})
		u := voice.NewUtterance() // never finished
		u.Write(ramp(16000))
		_, err := r.Recognize(t.Context(), u, voice.Options{})
		voicetest.Sentence(t, err, "did not begin to answer within 1s")
	})
}

// TestCancelled checks that a cancelled call returns at once in every stage. If a
// goroutine did not end, synctest.Test would fail.
func TestCancelled(t *testing.T) {
	stuck := func(net.Conn, []byte) {}
	half := func(c net.Conn, _ []byte) {
		_, _ = io.WriteString(c, soundHead)
		_, _ = c.Write(chunk(raw(ramp(480))))
	}
	hear := func(spoken int, finish bool) func(context.Context, Options) error {
		return func(ctx context.Context, o Options) error {
			r, _ := NewRecognizer(o)
			defer r.Close()
			u := voice.NewUtterance()
			u.Write(ramp(spoken))
			if finish {
				u.Finish()
			}
			_, err := r.Recognize(ctx, u, voice.Options{})
			return err
		}
	}
	speak := func(ctx context.Context, o Options) error {
		s, _ := NewSynthesizer(o)
		defer s.Close()
		return s.Synthesize(ctx, "Hello.", voice.Options{}, func([]int16) error { return nil })
	}
	tests := map[string]struct {
		script func(net.Conn, []byte)
		call   func(context.Context, Options) error
		live   bool
		asked  bool
	}{
		"while somebody speaks":          {stuck, hear(16000, false), false, false},
		"before anybody speaks, live":    {stuck, hear(0, false), true, false},
		"while somebody speaks, live":    {stuck, hear(16000, false), true, true},
		"waiting for a transcript":       {stuck, hear(8000, true), false, true},
		"in the middle of a transcript":  {half, hear(8000, true), false, true},
		"waiting for a transcript, live": {stuck, hear(8000, true), true, true},
		"waiting for sound":              {stuck, speak, false, true},
		"in the middle of sound":         {half, speak, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes(test.script)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				err := test.call(ctx, Options{URL: "http://127.0.0.1/v1", StreamUpload: test.live, dial: p.dial})
				if !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) || time.Since(began) != time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				if test.asked {
					<-p.closed // the client must close the connection
				}
			})
		})
	}
	t.Run("connecting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			err := speak(ctx, Options{URL: "http://127.0.0.1/v1", dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				gone <- time.Now()
				return nil, ctx.Err()
			}})
			if at := <-gone; !errors.Is(err, context.DeadlineExceeded) || at.Sub(began) != time.Second {
				t.Errorf("%v; the dialling ended after %s", err, at.Sub(began))
			}
		})
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes(func(net.Conn, []byte) {})
		s := synthesizer(t, Options{URL: "http://127.0.0.1/v1", dial: p.dial})
		time.AfterFunc(time.Second, s.Close)
		_, err := voicetest.SynthesizeHello(t, s)
		voicetest.Sentence(t, err, "closed")
		<-p.closed
		_, err = voicetest.SynthesizeHello(t, s)
		voicetest.Sentence(t, err, "closed")
		s.Close()
	})
}

func TestConnectionsAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		dial := func(context.Context, string, string) (net.Conn, error) {
			dialled++
			ours, theirs := net.Pipe()
			go func() {
				_ = http.Serve(&one{conn: ours}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = w.Write(raw(ramp(480)))
				}))
			}()
			return theirs, nil
		}
		s := synthesizer(t, Options{URL: "http://127.0.0.1/v1", dial: dial})
		for range 3 {
			if _, err := voicetest.SynthesizeHello(t, s); err != nil {
				t.Error(err)
			}
		}
		if dialled != 1 {
			t.Errorf("%d connections for three sentences", dialled)
		}
		time.Sleep(31 * time.Second)
		if _, err := voicetest.SynthesizeHello(t, s); err != nil || dialled != 2 {
			t.Errorf("%d connections after a pause: %v", dialled, err)
		}
	})
}

// one is a listener that returns one connection.
type one struct {
	conn net.Conn
}

func (o *one) Accept() (net.Conn, error) {
	conn := o.conn
	o.conn = nil
	if conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (*one) Close() error   { return nil }
func (*one) Addr() net.Addr { return &net.TCPAddr{} }

// TestConnectionThatJustEnded checks that a request is sent again if the server has just closed the
// reused connection.
func TestConnectionThatJustEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		dial := func(context.Context, string, string) (net.Conn, error) {
			dialled++
			ours, theirs := net.Pipe()
			go func() {
				defer ours.Close()
				r := bufio.NewReader(ours)
				for i := range 2 {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if body, _ := io.ReadAll(req.Body); len(body) < 20 {
						t.Errorf("sent %q", body)
					}
					if i == 0 {
						_, _ = io.WriteString(ours, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd")
					}
				}
			}()
			return theirs, nil
		}
		s := synthesizer(t, Options{URL: "http://127.0.0.1/v1", dial: dial})
		for range 2 {
			if pcm, err := voicetest.SynthesizeHello(t, s); err != nil || len(pcm) != 2 {
				t.Errorf("%d samples, %v", len(pcm), err)
			}
		}
		if dialled != 2 {
			t.Errorf("%d connections", dialled)
		}
	})
}
