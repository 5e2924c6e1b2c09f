package wyoming

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

func TestOptions(t *testing.T) {
	for address, want := range map[string]string{
		"tcp://192.168.1.9:10300":             "tcp://192.168.1.9:10300",
		"tcp://whisper.local:10300/":          "tcp://whisper.local:10300",
		"tcp://[fe80::1]:10200":               "tcp://[fe80::1]:10200",
		"":                                    "",
		"192.168.1.9:10300":                   "",
		"http://192.168.1.9:10300":            "",
		"tcp://192.168.1.9":                   "",
		"tcp://192.168.1.9:":                  "",
		"tcp://192.168.1.9:0":                 "",
		"tcp://192.168.1.9:70000":             "",
		"tcp://192.168.1.9:10300/x":           "",
		"tcp://:10300":                        "",
		"tcp://user:canary-9@192.168.1.9:103": "",
		"tcp://192.168.1.9:10300\x1b[2J":      "",
	} {
		e, err := New(Options{Address: address})
		switch {
		case want == "" && (err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || strings.Contains(err.Error(), "canary")):
			t.Errorf("%q: %v", address, err)
		case want != "" && (err != nil || e.fixed.endpoint.String() != want || e.Name() != "wyoming"):
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New(Options{Address: "tcp://h:1", AnswerWithin: -1}); err == nil {
		t.Error("a negative time is taken")
	}
	var _ voice.Recognizer = (*Engine)(nil)
	var _ voice.Synthesizer = (*Engine)(nil)
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		info    string
		o       Options
		failure string
	}{
		"a recognizer":            {whisper, Options{}, ""},
		"a synthesizer":           {piper, Options{}, ""},
		"a model":                 {whisper, Options{Model: "base-int8"}, ""},
		"a voice":                 {piper, Options{Voice: "de_DE-thorsten-low"}, ""},
		"no such model":           {whisper, Options{Model: "large"}, "no model"},
		"a model of a voice":      {piper, Options{Model: "large"}, "no speech to text"},
		"no such voice":           {piper, Options{Voice: "x"}, "no voice"},
		"a voice of a recognizer": {whisper, Options{Voice: "x"}, "no text to speech"},
		"nothing":                 {`{}`, Options{}, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{info: test.info}
			test.o.Address = f.listen(t)
			e := newEngine(t, test.o)
			for range 2 {
				err := e.Check(t.Context())
				if test.failure == "" && err != nil {
					t.Error(err)
				}
				if test.failure != "" {
					voicetest.Sentence(t, err, test.failure, test.o.Address)
				}
			}
			if n := f.described.Load(); n != 2 {
				t.Errorf("two checks asked %d times", n)
			}
		})
	}
}

func TestUnusableServers(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	address := "tcp://" + gone.Addr().String()
	gone.Close()
	web := (&fake{script: func(p *peer, _ Event) { p.say("HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n"); p.hangUp() }}).listen(t)
	noTTS := (&fake{script: func(p *peer, _ Event) { p.hangUp() }}).listen(t)
	noSTT := (&fake{script: func(*peer, Event) {}}).listen(t)
	chatty := (&fake{script: func(p *peer, _ Event) {
		for {
			p.event(TypePong, nil, nil)
		}
	}}).listen(t)
	for _, test := range []struct{ name, address, words string }{
		{"nothing there", address, "nothing listens there; start the server"},
		{"a web server", web, "another program on that port?"},
		{"one that is mute", noTTS, "did not answer within 50ms"},
		{"one that hangs up", noSTT, "closed the connection"},
		{"one that speaks of other things", chatty, "is it a Wyoming server?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			within := 10 * time.Second // all but the mute one are found out at once, however busy the machine is
			if test.address == noTTS {
				within = 50 * time.Millisecond
			}
			e := newEngine(t, Options{Address: test.address, AnswerWithin: within})
			voicetest.Sentence(t, e.Check(t.Context()), test.words, test.address)
			_, err := e.Recognize(t.Context(), said(0), voice.Options{})
			voicetest.Sentence(t, err, test.words, test.address)
			voicetest.Sentence(t, e.Synthesize(t.Context(), "x", voice.Options{}, nil), test.words, test.address)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := e.Check(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func TestConcurrentCallsShareOneInfoRequest(t *testing.T) {
	f := &fake{info: whisper, script: func(p *peer, _ Event) {
		p.until(TypeAudioStop)
		p.event(TypeTranscript, Text{Text: "yes"}, nil)
	}}
	e := newEngine(t, Options{Address: f.listen(t)})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := e.Recognize(t.Context(), said(time.Second), voice.Options{}); err != nil || got.Text != "yes" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := f.described.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// addressed is a connection whose remote address is ip.
type addressed struct {
	net.Conn
	ip string
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.ip), Port: 10300} }

func TestHostNameLookUpIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ip, broken := "192.0.2.1", errors.New("no route to host")
		var unknown error
		var dialed []string
		p := newEndpoint("whisper.local", "10300")
		p.connect = func(ctx context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			switch {
			case broken != nil:
				return nil, broken
			case unknown != nil && address == "whisper.local:10300":
				return nil, unknown
			}
			ours, theirs := net.Pipe()
			theirs.Close()
			return addressed{ours, ip}, nil
		}
		dial := func() error {
			dialed = nil
			conn, err := p.dial(t.Context(), 5*time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		}
		steps := func(want string) {
			t.Helper()
			if got := strings.Join(dialed, " "); got != want {
				t.Errorf("dialed %s, want %s", got, want)
			}
		}
		voicetest.Sentence(t, dial(), "could not be reached within 5s", "whisper.local:10300")
		broken = nil
		must.Succeed(t, dial())
		steps("whisper.local:10300")
		must.Succeed(t, dial())
		steps("192.0.2.1:10300")
		broken = errors.New("no route to host")
		if dial() == nil {
			t.Error("it is reached")
		}
		broken, ip = nil, "192.0.2.2"
		must.Succeed(t, dial())
		steps("whisper.local:10300") // after the failure the host is looked up again
		time.Sleep(addressExpiry)
		unknown = &net.DNSError{Err: "no such host", IsNotFound: true}
		must.Succeed(t, dial())
		steps("whisper.local:10300 192.0.2.2:10300") // the host cannot be looked up, so the latest address is used
		p.latest.Put("", 0)
		voicetest.Sentence(t, dial(), "the name whisper.local is not known", "give the server's IP address")
	})
}

func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newEndpoint("whisper.lan", "10300")
		p.connect = func(ctx context.Context, _, address string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		_, err := p.dial(t.Context(), 5*time.Second)
		voicetest.Sentence(t, err, "could not be reached within 5s")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := p.dial(ctx, 5*time.Second); !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// FuzzInfo checks that any info of a server causes no panic when a model or a voice is chosen, and that
// errors are one line.
func FuzzInfo(f *testing.F) {
	for _, s := range []string{whisper, piper, `{}`, `{"asr":7}`,
		`{"asr":[{"installed":true,"models":[{"name":"\u001b","languages":["*","en_"]}]}]}`} {
		f.Add([]byte(s), "base-int8", "en-GB")
	}
	f.Fuzz(func(t *testing.T, data []byte, name, language string) {
		var info Info
		if err := decodeInfo(Event{Type: TypeInfo, Data: data}, &info); err != nil {
			return
		}
		info.ASR, info.TTS = installed(info.ASR), installed(info.TTS)
		for _, o := range []Options{{Address: "tcp://h:1"}, {Address: "tcp://h:1", Model: name, Voice: name}} {
			e, err := New(o)
			must.Succeed(t, err)
			for _, n := range []need{recognizeNeed(voice.Options{Language: language}), synthesizeNeed(voice.Options{Language: language, Voice: name}),
				anyNeed()} {
				if err := n.check(e.fixed, info); err != nil &&
					(!errors.Is(err, voice.ErrUnavailable) || strings.ContainsAny(err.Error(), "\n\r\x1b")) {
					t.Errorf("%q", err)
				}
			}
		}
	})
}
