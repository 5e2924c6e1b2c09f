package wyoming

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
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
			e := newEngine(t, Options{Address: test.address, AnswerWithin: 50 * time.Millisecond})
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

func TestHostNameLookUpIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lookups, answer, failure := 0, []netip.Addr{netip.MustParseAddr("192.0.2.1")}, error(nil)
		var dialed []string
		down := true
		p := newEndpoint("whisper.local", "10300")
		p.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			lookups++
			time.Sleep(2 * time.Second)
			return answer, failure
		}
		p.connect = func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			if down {
				return nil, errors.New("no route to host")
			}
			ours, theirs := net.Pipe()
			theirs.Close()
			return ours, nil
		}
		dial := func() error {
			conn, err := p.dial(t.Context(), 5*time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		}
		voicetest.Sentence(t, dial(), "could not be reached within 5s", "whisper.local:10300")
		down = false
		answer = []netip.Addr{netip.MustParseAddr("192.0.2.2")}
		for range 3 { // the failure made it look again, and then it knows
			must.Succeed(t, dial())
		}
		if lookups != 2 || strings.Join(dialed, " ") != "192.0.2.1:10300 192.0.2.2:10300 192.0.2.2:10300 192.0.2.2:10300" {
			t.Errorf("%d lookups, %v dialed", lookups, dialed)
		}
		time.Sleep(addressExpiry)
		failure = errors.New("no such host")
		if err := dial(); err != nil || lookups != 3 {
			t.Errorf("a name that is lost is where it was: %v after %d lookups", err, lookups)
		}
		p.cached.Put(nil, 0)
		voicetest.Sentence(t, dial(), "the name whisper.local is not known", "give the server's IP address")
	})
}

func TestDeadAddressLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newEndpoint("whisper.lan", "10300")
		p.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}, nil
		}
		var alive atomic.Bool
		alive.Store(true)
		p.connect = func(ctx context.Context, _, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") || !alive.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ours, theirs := net.Pipe()
			theirs.Close()
			return ours, nil
		}
		began := time.Now()
		conn, err := p.dial(t.Context(), 5*time.Second)
		if err != nil || time.Since(began) != 2500*time.Millisecond {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		conn.Close()
		alive.Store(false)
		began = time.Now()
		_, err = p.dial(t.Context(), 5*time.Second)
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

// FuzzInfo reads what a server may say of itself, and chooses among it.
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
