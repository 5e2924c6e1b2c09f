package wyoming

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// network is a fake network. The key of servers is host:port. Connecting to a nil fake takes
// for ever.
type network struct {
	mu       sync.Mutex
	servers  map[string]*fake
	order    []string
	searches atomic.Int32
	takes    time.Duration // duration of a search
	failure  error
	done     sync.WaitGroup
}

func (n *network) find(ctx context.Context) ([]string, error) {
	n.searches.Add(1)
	select {
	case <-time.After(n.takes):
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.order, n.failure
}

func (n *network) connect(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	f, known := n.servers[address]
	n.mu.Unlock()
	switch {
	case !known:
		return nil, errors.New("connection refused")
	case f == nil:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	n.done.Go(func() { f.serve(theirs) })
	return ours, nil
}

// engine returns an engine that finds servers on this network.
func (n *network) engine(t testing.TB, o Options) *Engine {
	t.Helper()
	o.Find = n.find
	e := newEngine(t, o)
	create := e.finder.create
	e.finder.create = func(host, port string) *server {
		s := create(host, port)
		s.endpoint.connect = n.connect
		return s
	}
	t.Cleanup(n.done.Wait)
	return e
}

// hears returns a recognizer that always returns text; says returns a
// synthesizer.
func hears(text string, languages string) *fake {
	return &fake{info: strings.Replace(whisper, `"en","de"`, languages, 1), script: func(p *peer, _ Event) {
		p.until(TypeAudioStop)
		p.event(TypeTranscript, Text{Text: text}, nil)
		p.hangUp()
	}}
}

func says() *fake {
	return &fake{info: piper, script: func(p *peer, _ Event) {
		p.speak(Format{24000, 2, 1}, make([]byte, 100), 100)
		p.hangUp()
	}}
}

// silent returns a server that accepts connections and never sends anything.
func silent() *fake { return &fake{script: func(p *peer, _ Event) { p.hangUp() }} }

const (
	one   = "192.0.2.1:10300"
	two   = "192.0.2.2:10200"
	three = "[2001:db8::3]:10300"
)

func recognize(t *testing.T, e *Engine, o voice.Options) string {
	t.Helper()
	got, err := e.Recognize(t.Context(), said(time.Second), o)
	if err != nil {
		t.Error(err)
	}
	return got.Text
}

func TestEachTaskFindsItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{servers: map[string]*fake{two: says(), three: hears("yes", `"en"`)}, order: []string{"bad", one, two, three, three,
			"192.0.2.9:0", ":1"}}
		e := n.engine(t, Options{})
		for range 3 {
			if got := recognize(t, e, voice.Options{}); got != "yes" {
				t.Errorf("heard %q", got)
			}
			if _, err := voicetest.Synthesize(t, e, "hello", voice.Options{}); err != nil {
				t.Error(err)
			}
		}
		if got := n.searches.Load(); got != 1 {
			t.Errorf("%d searches", got)
		}
		if got := n.servers[two].described.Load(); got != 1 {
			t.Errorf("asked %d times what it serves", got)
		}
	})
}

// TestLanguagesFindTheirServers checks that each call uses a server that supports its language.
func TestLanguagesFindTheirServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{servers: map[string]*fake{one: hears("yes", `"en"`), three: hears("ja", `"de"`)}, order: []string{one, three}}
		e := n.engine(t, Options{})
		for language, want := range map[string]string{"": "yes", "de-CH": "ja", "en-GB": "yes"} {
			if got := recognize(t, e, voice.Options{Language: language}); got != want {
				t.Errorf("%q was heard in %q", got, language)
			}
		}
		_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{Language: "fr"})
		voicetest.Sentence(t, err, `does not recognize the language "fr"`, "url: tcp://host:port")
		if got := n.searches.Load(); got != 2 {
			t.Errorf("%d searches", got)
		}
	})
}

func TestNothingIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		network *network
		words   []string
		took    time.Duration
	}{
		"nobody there": {&network{takes: time.Hour}, []string{"no Wyoming server announces itself"}, 2 * time.Second},
		"no multicast": {&network{failure: errors.New("no network interface\ncarries multicast")},
			[]string{"cannot be searched for Wyoming servers (no network interface carries multicast)"}, 0},
		"only bad addresses": {&network{order: []string{"x", "[::1", "h:70000", "h:-1"}}, []string{"no Wyoming server announces itself"}, 0},
		"only a synthesizer": {&network{order: []string{two}, servers: map[string]*fake{two: says()}}, []string{"tcp://" + two, "no speech to text"},
			0},
		"no such model": {&network{order: []string{one, two}, servers: map[string]*fake{one: hears("", `"en"`), two: says()}},
			[]string{"tcp://" + one, `no model "large"`}, 0},
		"gone meanwhile": {&network{order: []string{one}}, []string{"tcp://" + one, "could not be reached"}, 0},
		"silent":         {&network{order: []string{one}, servers: map[string]*fake{one: silent()}}, []string{"do not answer"}, 4 * time.Second},
		"switched off":   {&network{order: []string{one}, servers: map[string]*fake{one: nil}}, nil, 4 * time.Second},
		"a slow search": {&network{order: []string{one}, takes: time.Hour, servers: map[string]*fake{one: silent()}}, []string{"do not answer"},
			4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{}
				if name == "no such model" {
					o.Model = "large"
				}
				e := test.network.engine(t, o)
				began := time.Now()
				_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
				voicetest.Sentence(t, err, append(test.words, "url: tcp://host:port")...)
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				began = time.Now()
				for range 3 {
					_, again := e.Recognize(t.Context(), said(time.Second), voice.Options{})
					if again == nil || again.Error() != err.Error() || time.Since(began) > 0 {
						t.Errorf("again: %v after %s", again, time.Since(began))
					}
				}
				if got := test.network.searches.Load(); got != 1 {
					t.Errorf("%d searches", got)
				}
				time.Sleep(retryPause)
				test.network.mu.Lock()
				test.network.servers, test.network.order, test.network.failure = map[string]*fake{three: hears("yes", `"en"`)}, []string{three}, nil
				test.network.servers[three].info = strings.Replace(test.network.servers[three].info, "base-int8", "large", 1)
				test.network.mu.Unlock()
				if got := recognize(t, e, voice.Options{}); got != "yes" {
					t.Errorf("heard %q once it is there", got)
				}
			})
		})
	}
}

// TestFailedSearchIsRemembered checks that after a search that found no server, no call starts
// another search during retryPause. Check does.
func TestFailedSearchIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{takes: time.Hour}
		e := n.engine(t, Options{})
		for range 3 {
			voicetest.Sentence(t, e.Warm(t.Context()), "no Wyoming server")
			_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
			voicetest.Sentence(t, err, "no Wyoming server")
			voicetest.Sentence(t, e.Synthesize(t.Context(), "x", voice.Options{}, nil), "no Wyoming server")
		}
		if got := n.searches.Load(); got != 1 {
			t.Errorf("%d searches", got)
		}
		voicetest.Sentence(t, e.Check(t.Context()), "no Wyoming server")
		if got := n.searches.Load(); got != 2 {
			t.Errorf("a check did not look: %d searches", got)
		}
		n.mu.Lock()
		n.order, n.servers = []string{two}, map[string]*fake{two: says()}
		n.mu.Unlock()
		if err := e.CheckSynthesize(t.Context(), voice.Options{}); err != nil {
			t.Error(err)
		}
		if _, err := e.Recognize(t.Context(), said(time.Second), voice.Options{}); err == nil {
			t.Error("a synthesizer recognizes")
		}
	})
}

// TestTheOrderDecides checks that the first server in the list is used, even if another server
// responds a little earlier.
func TestTheOrderDecides(t *testing.T) {
	for name, test := range map[string]struct {
		delay time.Duration
		want  string
		took  time.Duration
	}{
		"the first is a little slower": {100 * time.Millisecond, "first", 100 * time.Millisecond},
		"the first is asleep":          {time.Second, "second", slowerServers},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{servers: map[string]*fake{one: hears("first", `"en"`), three: hears("second", `"en"`)}, order: []string{one, three}}
				e := n.engine(t, Options{})
				create := e.finder.create
				e.finder.create = func(host, port string) *server {
					s := create(host, port)
					s.endpoint.connect = func(ctx context.Context, network, address string) (net.Conn, error) {
						if address == one {
							select {
							case <-time.After(test.delay):
							case <-ctx.Done():
								return nil, ctx.Err()
							}
						}
						return n.connect(ctx, network, address)
					}
					return s
				}
				began := time.Now()
				if err := e.Warm(t.Context()); err != nil || time.Since(began) != test.took {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				if got := recognize(t, e, voice.Options{}); got != test.want {
					t.Errorf("heard by the %s", got)
				}
			})
		})
	}
}

// TestAServerThatMovedIsFoundAgain checks that after a server has got another
// address, one call fails and the next call finds the server. No call takes longer
// than connectTimeout.
func TestAServerThatMovedIsFoundAgain(t *testing.T) {
	for name, off := range map[string]bool{"nothing listens there now": false, "nothing is there now": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{servers: map[string]*fake{one: hears("here", `"en"`)}, order: []string{one}}
				e := n.engine(t, Options{})
				if got := recognize(t, e, voice.Options{}); got != "here" {
					t.Fatalf("heard %q", got)
				}
				n.mu.Lock()
				delete(n.servers, one)
				if off {
					n.servers[one] = nil
				}
				n.servers[three], n.order, n.takes = hears("there", `"en"`), []string{three}, 1500*time.Millisecond
				n.mu.Unlock()
				began := time.Now()
				_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
				voicetest.Sentence(t, err, "could not be reached", "tcp://"+one)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("failing took %s", took)
				}
				began = time.Now()
				if got := recognize(t, e, voice.Options{}); got != "there" {
					t.Errorf("heard %q", got)
				}
				if took := time.Since(began); took > 5*time.Second || n.searches.Load() != 2 {
					t.Errorf("it took %s and %d searches", took, n.searches.Load())
				}
			})
		})
	}
}

// TestAnotherServerReplacesAFailedOne checks that after a failure of one of two known servers, the
// other one is used.
func TestAnotherServerReplacesAFailedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := hears("", `"en"`)
		broken.script = func(p *peer, _ Event) { p.event(TypeError, Failure{Text: "CUDA out of memory"}, nil) }
		n := &network{servers: map[string]*fake{one: broken, three: hears("yes", `"en"`)}, order: []string{one, three}}
		e := n.engine(t, Options{})
		_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
		voicetest.Sentence(t, err, "CUDA")
		if got := recognize(t, e, voice.Options{}); got != "yes" || n.searches.Load() != 1 {
			t.Errorf("heard %q after %d searches", got, n.searches.Load())
		}
	})
}

func TestKnownServersAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{servers: map[string]*fake{one: hears("yes", `"en"`)}, order: []string{one}}
		e := n.engine(t, Options{})
		for range 20 {
			recognize(t, e, voice.Options{})
			time.Sleep(time.Minute)
		}
		if got := n.servers[one].described.Load(); got != 4 || n.searches.Load() != 1 {
			t.Errorf("asked %d times in 20 minutes, after %d searches", got, n.searches.Load())
		}
	})
}

func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{servers: map[string]*fake{one: hears("yes", `"en"`), two: says()}, order: []string{two, one}, takes: time.Second}
		e := n.engine(t, Options{})
		for range 3 {
			if err := e.Warm(t.Context()); err != nil {
				t.Error(err)
			}
		}
		began := time.Now()
		recognize(t, e, voice.Options{})
		if took := time.Since(began); took > 0 || n.searches.Load() != 1 || n.servers[one].described.Load() != 1 {
			t.Errorf("warm, it took %s and %d searches", took, n.searches.Load())
		}
		// Warm now knows the options of the latest call, so it searches for a server that
		// replaces the missing one.
		n.mu.Lock()
		delete(n.servers, one)
		n.servers[three], n.order = hears("yes", `"en"`), []string{two, three}
		n.mu.Unlock()
		time.Sleep(infoExpiry)
		if err := e.Warm(t.Context()); err != nil || n.searches.Load() != 2 {
			t.Errorf("%v after %d searches", err, n.searches.Load())
		}
		recognize(t, e, voice.Options{})

		f := hears("yes", `"en"`)
		defer f.done.Wait()
		fixed := f.piped(t, Options{})
		for range 3 {
			if err := fixed.Warm(t.Context()); err != nil {
				t.Error(err)
			}
		}
		recognize(t, fixed, voice.Options{})
		if got := f.described.Load(); got != 1 {
			t.Errorf("one with an address was asked %d times", got)
		}
	})
}

func TestManySearchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{servers: map[string]*fake{one: hears("yes", `"en"`)}, order: []string{one}, takes: time.Second}
		e := n.engine(t, Options{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { recognize(t, e, voice.Options{}) })
		}
		all.Wait()
		if got := n.searches.Load(); got != 1 {
			t.Errorf("%d searches", got)
		}
		n = &network{takes: time.Hour}
		e = n.engine(t, Options{})
		began := time.Now()
		for range 8 {
			all.Go(func() {
				_, err := e.Recognize(t.Context(), said(time.Second), voice.Options{})
				voicetest.Sentence(t, err, "no Wyoming server")
			})
		}
		all.Wait()
		if took := time.Since(began); took > 5*time.Second || n.searches.Load() != 1 {
			t.Errorf("in vain it took %s and %d searches", took, n.searches.Load())
		}
	})
}

func TestCancelledWhileLooking(t *testing.T) {
	for name, n := range map[string]*network{
		"while searching": {takes: time.Hour},
		"while asking":    {order: []string{one, two}, servers: map[string]*fake{one: silent(), two: nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := n.engine(t, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				_, err := e.Recognize(ctx, said(time.Second), voice.Options{})
				if !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) || time.Since(began) != time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				if e.finder.recentFailure(recognizeNeed(voice.Options{})) != nil {
					t.Error("being interrupted was taken for a search in vain")
				}
			})
		})
	}
}

func TestAddressIsUsedBeforeASearch(t *testing.T) {
	n := &network{}
	if e := newEngine(t, Options{Address: "tcp://h:1", Find: n.find}); e.finder != nil || e.fixed.endpoint.String() != "tcp://h:1" {
		t.Error("the address is not used")
	}
	if _, err := New(Options{}); err == nil {
		t.Error("neither an address nor a search is enough")
	}
}

// TestTheListenersTimeIsNotTheServers checks that a call does not time out if the
// listener takes minutes, during which a server with one thread reads nothing.
func TestTheListenersTimeIsNotTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Format{24000, 2, 1}
		server := &fake{info: piper, script: func(p *peer, _ Event) {
			for {
				switch e := p.next(); e.Type {
				case TypeSynthesizeChunk:
					p.speak(f, make([]byte, 400), 100)
				case TypeSynthesizeStop:
					p.event(TypeSynthesizeStopped, nil, nil)
					p.hangUp()
					return
				}
			}
		}}
		defer server.done.Wait()
		e := server.piped(t, Options{AnswerWithin: 4 * time.Second})
		samples := 0
		err := e.Synthesize(t.Context(), long, voice.Options{}, func(pcm []int16) error {
			samples += len(pcm)
			time.Sleep(5 * time.Minute)
			return nil
		})
		if err != nil || samples != 600 {
			t.Errorf("%d samples, %v", samples, err)
		}
	})
}
