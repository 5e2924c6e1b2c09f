package wyoming

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/limit"
	"perch/must"
	"perch/voice"
	wire "perch/voice/wyoming"
)

func all() Options {
	return Options{Recognizer: recognizer(refuses), Synthesizer: synthesizer(letters), Mind: answering("Yes.")}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing to serve": {},
		"no language":      {Synthesizer: synthesizer(letters), Languages: []string{"en", "klingon spoken"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestInfo compares the bytes of the info event, because Home Assistant requires every field.
func TestInfo(t *testing.T) {
	o := all()
	o.Name, o.ID, o.Version, o.Languages, o.RecognizerLanguages = "Perch", "perch-1a2b", "0.3.0", []string{"de-CH", "en"}, []string{"en"}
	g := dial(t, serve(t, o))
	g.raw(`{"type": "describe", "version": "1.9.0"}` + "\n")
	rest := `"attribution":{"name":"Perch","url":""},"installed":true,`
	model := func(name, is, languages string) string {
		return `{"name":"` + name + `",` + rest + `"description":"` + is + `","version":"0.3.0","languages":[` + languages + `]}`
	}
	program := func(does, kind, models, more string) string {
		return `[{"name":"Perch",` + rest + `"description":"perch-1a2b ` + does + `","version":"0.3.0","` + kind + `":[` + models + `]` + more + `}]`
	}
	g.expect(wire.TypeInfo, `{"asr":`+program("understands speech", "models", model("fake-recognizer", "fake-recognizer", `"en"`), "")+
		`,"tts":`+program("speaks", "voices", model("fake-synthesizer", "Perch", `"de-CH","en"`), `,"supports_synthesize_streaming":true`)+
		`,"handle":`+program("answers", "models", model("mind", "Perch", `"de-CH","en"`), `,"supports_handled_streaming":true`)+`}`)
}

func TestMissingEnginesAreNotServed(t *testing.T) {
	for name, o := range map[string]Options{
		`"asr"`:    {Recognizer: recognizer(refuses)},
		`"tts"`:    {Synthesizer: synthesizer(letters)},
		`"handle"`: {Mind: answering("Yes.")},
	} {
		address := serve(t, o)
		g := dial(t, address)
		g.event(wire.TypeDescribe, nil, nil)
		info := string(g.next(wire.TypeInfo).Data)
		for _, kind := range []string{`"asr"`, `"tts"`, `"handle"`} {
			if strings.Contains(info, kind) != (kind == name) {
				t.Errorf("the info of one with %s: %s", name, info)
			}
		}
		for kind, request := range map[string]string{`"asr"`: wire.TypeTranscribe, `"tts"`: wire.TypeSynthesizeStart,
			`"handle"`: wire.TypeTranscript} {
			if kind != name {
				g := dial(t, address)
				g.event(request, nil, nil)
				g.refused(codeNone)
			}
		}
	}
}

func TestPingsAndUnknownEvents(t *testing.T) {
	g := dial(t, serve(t, all()))
	g.event("run-satellite", nil, nil)
	g.event("intent", map[string]any{"name": "HassTurnOn"}, []byte("payload"))
	g.event("audio-stop", nil, nil)
	g.event("synthesize-stop", nil, nil)
	g.raw(`{"type":"ping","data":{"text":null}}` + "\n")
	g.event(wire.TypePing, wire.Text{Text: "hö"}, nil)
	g.expect(wire.TypePong, "", wire.TypePong, `{"text":"hö"}`)
}

// everything is what a client sends that makes one request of each kind.
const everything = `{"type":"describe"}` + "\n" +
	`{"type":"transcribe","data":{"language":"en"}}` + "\n" +
	`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}` + "\n" +
	`{"type":"audio-chunk","data":{"rate":16000,"width":2,"channels":1},"payload_length":4}` + "\n\x00\n\xff\x7f" +
	`{"type":"audio-stop","data":{"timestamp":null}}` + "\n" +
	`{"type":"synthesize","data_length":21}` + "\n" + `{"text":"Hi. Hello!"}` +
	`{"type":"transcript","data":{"text":"hello","context":null}}` + "\n"

func TestEveryCutOfTheBytes(t *testing.T) {
	said := func(pieces func(string) []string) (types string) {
		g := dial(t, serve(t, all()))
		for _, p := range pieces(everything) {
			g.raw(p)
		}
		for !strings.Contains(types, typeHandledStop) {
			e, err := g.r.Read()
			if err != nil {
				t.Fatalf("after %s: %v", types, err)
			}
			types += e.Type + " "
		}
		return types
	}
	const want = "info transcript audio-start audio-chunk audio-chunk audio-stop handled-start handled-chunk handled handled-stop "
	if got := said(func(s string) []string { return []string{s} }); got != want {
		t.Errorf("whole: %s, want %s", got, want)
	}
	if got := said(func(s string) []string { return strings.Split(s, "") }); got != want {
		t.Errorf("byte by byte: %s, want %s", got, want)
	}
}

func TestGarbage(t *testing.T) {
	address := serve(t, all())
	for what, test := range map[string]struct{ bytes, code string }{
		"HTTP":                    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", codeFormat},
		"TLS":                     {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", codeFormat},
		"an endless line":         {strings.Repeat("x", 1<<20), codeFormat},
		"a huge payload":          {`{"type":"audio-chunk","payload_length":99999999}` + "\n", codeFormat},
		"huge data":               {`{"type":"transcript","data_length":99999999}` + "\n", codeFormat},
		"a number for a text":     {`{"type":"transcript","data":{"text":1}}` + "\n", codeFormat},
		"a number for a voice":    {`{"type":"synthesize","data":{"text":"a","voice":1}}` + "\n", codeFormat},
		"a ping of a list":        {`{"type":"ping","data":{"text":[]}}` + "\n", codeFormat},
		"sound without a format":  {`{"type":"audio-start"}` + "\n", codeFormat},
		"8 bits":                  {`{"type":"audio-start","data":{"rate":16000,"width":1,"channels":1}}` + "\n", codeFormat},
		"six channels":            {`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":6}}` + "\n", codeFormat},
		"a rate that is a filter": {`{"type":"audio-start","data":{"rate":15999,"width":2,"channels":1}}` + "\n", codeFormat},
		"a chunk of nothing":      {`{"type":"audio-chunk","payload_length":2}` + "\nxx", codeFormat},
		"sound in sound":          {strings.Repeat(`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}`+"\n", 2), codeFormat},
		"two formats": {`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}` + "\n" +
			`{"type":"audio-chunk","data":{"rate":22050,"width":2,"channels":1}}` + "\n", codeFormat},
		"a language nobody knows": {`{"type":"transcribe","data":{"language":"tlh"}}` + "\n" +
			`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}` + "\n", codeLanguage},
		"a voice nobody has":   {`{"type":"synthesize","data":{"text":"a","voice":{"language":"../../etc"}}}` + "\n", codeLanguage},
		"markup":               {`{"type":"synthesize","data":{"text":"<speak>a</speak>","text_format":"ssml"}}` + "\n", codeFormat},
		"a book":               {`{"type":"synthesize","data":{"text":"` + strings.Repeat("a", limit.Said+1) + `"}}` + "\n", codeLength},
		"a hundred sentences":  {`{"type":"synthesize","data":{"text":"` + strings.Repeat("I do. ", 200) + `"}}` + "\n", codeLength},
		"a long ping":          {`{"type":"ping","data":{"text":"` + strings.Repeat("a", limit.Said+1) + `"}}` + "\n", codeLength},
		"a chunk of no stream": {`{"type":"synthesize-chunk","data":{"text":"a"}}` + "\n", codeFormat},
		"a stream in a stream": {strings.Repeat(`{"type":"synthesize-start"}`+"\n", 2), codeFormat},
		"a stream that is a book": {`{"type":"synthesize-start"}` + "\n" + strings.Repeat(
			`{"type":"synthesize-chunk","data":{"text":"`+strings.Repeat("a", 1000)+`"}}`+"\n", 5), codeLength},
	} {
		t.Run(what, func(t *testing.T) {
			g := dial(t, address)
			g.t = t
			_ = g.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(g, test.bytes) // the server may close the connection before it has read all bytes
			for {
				e, err := g.r.Read()
				must.Succeed(t, err)
				if e.Type == wire.TypeError {
					if !strings.Contains(string(e.Data), `"code":"`+test.code+`"`) {
						t.Errorf("%s, want %s", e.Data, test.code)
					}
					break
				}
			}
			g.ended()
		})
	}
}

func TestTooManyRequestsAtOnce(t *testing.T) {
	o := all()
	o.Mind = hanging(nil)
	g := dial(t, serve(t, o))
	for range maxQueued + 2 {
		g.event(wire.TypeTranscript, wire.Text{Text: "hello"}, nil)
	}
	g.refused(codeBusy)
}

func TestConnectionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := run(t, all(), l)
		for n := range maxConns {
			l.dial(t, fmt.Sprintf("192.0.2.%d:4000", n/maxConnsPerPeer)).event(wire.TypeDescribe, nil, nil)
			if n == maxConnsPerPeer-1 {
				g := l.dial(t, "[::ffff:192.0.2.0]:4000")
				g.refused(codeBusy)
			}
		}
		g := l.dial(t, "192.0.2.99:4000")
		g.refused(codeBusy)
		if connections, peers := s.limit.Open(); connections != maxConns || peers != maxConns/maxConnsPerPeer {
			t.Errorf("%d connections of %d peers", connections, peers)
		}
		// The clients read no responses, so the server closes their connections, and a new client is accepted.
		time.Sleep(writeTimeout + time.Second)
		g = l.dial(t, "192.0.2.99:4000")
		g.event(wire.TypePing, nil, nil)
		g.next(wire.TypePong)
	})
}

func TestIdle(t *testing.T) {
	for what, bytes := range map[string]string{
		"silence":                "",
		"half an event":          `{"type":"describe"`,
		"sound that never comes": `{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}` + "\n",
		"text that never comes":  `{"type":"synthesize-start"}` + "\n",
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := piped(t, all())
				began := time.Now()
				g.raw(bytes)
				for {
					e, err := g.r.Read()
					must.Succeed(t, err)
					if e.Type == wire.TypeError {
						break
					}
				}
				g.ended()
				if took := time.Since(began); took < idleTimeout || took > idleTimeout+maxListening {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestWaitingForAnAnswerIsNotIdle(t *testing.T) {
	const long = idleTimeout + 30*time.Second
	synctest.Test(t, func(t *testing.T) {
		o := all()
		o.Mind = &scriptedAgent{think: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
			time.Sleep(long)
			return out(agent.Say{Text: "Done."})
		}}
		g := piped(t, o)
		g.event(wire.TypeTranscript, wire.Text{Text: "hello"}, nil)
		g.next(typeHandledStart)
		g.next(typeHandledChunk)
		g.next(typeHandled)
		g.next(typeHandledStop)
		began := time.Now()
		g.refused(codeIdle)
		if took := time.Since(began); took != idleTimeout {
			t.Errorf("it is idle after %s", took)
		}
	})
}

// TestAClientThatReadsNothingIsDropped checks that the connection is closed and the synthesis cancelled.
func TestAClientThatReadsNothingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := piped(t, Options{Synthesizer: synthesizer(func(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
			for {
				if err := letters(ctx, text, o, out); err != nil {
					ended <- err
					return fmt.Errorf("speak: %w", err)
				}
			}
		})})
		g.event(wire.TypeSynthesize, wire.Text{Text: "Hello."}, nil)
		g.next(wire.TypeAudioStart)
		began := time.Now()
		<-ended
		if took := time.Since(began); took != writeTimeout {
			t.Errorf("it took %s", took)
		}
		if e, err := g.r.Read(); err == nil {
			t.Errorf("%s came after all", e.Type)
		}
	})
}

// TestEndlessSentenceIsCancelled checks that a sentence is cancelled after sentenceTimeout, even if the client
// reads just fast enough that no write fails.
func TestEndlessSentenceIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := piped(t, Options{Synthesizer: synthesizer(func(_ context.Context, text string, _ voice.Options, out func([]int16) error) error {
			for {
				if err := out(lettersOf(text)); err != nil {
					return err
				}
			}
		})})
		g.event(wire.TypeSynthesize, wire.Text{Text: "Hello."}, nil)
		g.next(wire.TypeAudioStart)
		began := time.Now()
		for {
			time.Sleep(writeTimeout / 2)
			if e, err := g.r.Read(); err != nil || e.Type == wire.TypeError {
				break
			}
		}
		if took := time.Since(began); took < sentenceTimeout || took > sentenceTimeout+2*writeTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

// TestAClientThatLeavesIsNotServed checks that the work for a client is cancelled when the client disconnects, at
// each stage of a request.
func TestAClientThatLeavesIsNotServed(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	wait := func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	address := serve(t, Options{
		Recognizer: recognizer(func(ctx context.Context, _ *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
			return voice.Transcript{}, wait(ctx)
		}),
		Synthesizer: synthesizer(func(ctx context.Context, _ string, _ voice.Options, _ func([]int16) error) error { return wait(ctx) }),
		Mind: &scriptedAgent{think: func(ctx context.Context, _ agent.Turn, _ func(agent.Reply) error) error {
			return wait(ctx)
		}},
	})
	for stage, events := range map[string][]string{
		"while he speaks":       {wire.TypeAudioStart},
		"while he is heard":     {wire.TypeAudioStart, wire.TypeAudioStop},
		"while we speak":        {wire.TypeSynthesize},
		"while he sends text":   {wire.TypeSynthesizeStart, wire.TypeSynthesizeChunk},
		"while we think":        {wire.TypeTranscript},
		"with more that waits":  {wire.TypeTranscript, wire.TypeTranscript, wire.TypeSynthesize, wire.TypeAudioStart},
		"after half of another": {wire.TypeTranscript, ""},
	} {
		t.Run(stage, func(t *testing.T) {
			g := dial(t, address)
			for _, name := range events {
				if name == "" {
					g.raw(`{"type":`)
					continue
				}
				g.event(name, map[string]any{"text": "Hello you. And", "rate": 16000, "width": 2, "channels": 1}, nil)
			}
			<-began
			g.Close()
			if err := <-ended; err != context.Canceled {
				t.Error(err)
			}
		})
	}
}

func TestCloseEndsEverything(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	began := make(chan struct{}, 8)
	o := all()
	o.Mind = hanging(began)
	s := newServer(t, o, l)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var clients []*client
	for n := range 4 {
		g := dial(t, l.Addr().String())
		if n > 0 {
			g.event(wire.TypeTranscript, wire.Text{Text: "hello"}, nil)
			<-began
		}
		clients = append(clients, g)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if connections, _ := s.limit.Open(); connections != 0 {
		t.Errorf("%d connections are left", connections)
	}
	for _, g := range clients {
		if e, err := g.r.Read(); err == nil {
			t.Errorf("%s %s after the end", e.Type, e.Data)
		}
	}
	s.Close()
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// TestClientsChooseModelsAndVoices: by name, or else by language.
func TestClientsChooseModelsAndVoices(t *testing.T) {
	model := func(name string, languages ...string) wire.Model { return wire.Model{Name: name, Languages: languages} }
	hears := func(name string, languages ...string) Model[voice.Recognizer] {
		return Model[voice.Recognizer]{model(name, languages...), recognizer(func(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
			return voice.Transcript{Text: name + " hears " + o.Language}, u.Wait(ctx)
		})}
	}
	spoken := make(chan string, 1)
	speaks := func(name string, languages ...string) Model[voice.Synthesizer] {
		return Model[voice.Synthesizer]{model(name, languages...), synthesizer(func(_ context.Context, _ string, o voice.Options, _ func([]int16) error) error {
			spoken <- name + " speaks " + o.Language
			return nil
		})}
	}
	address := serve(t, Options{
		Recognizers:  []Model[voice.Recognizer]{hears("small", "en", "de"), hears("large", "de", "fr")},
		Synthesizers: []Model[voice.Synthesizer]{speaks("joe", "en-US"), speaks("jenny", "en-GB"), speaks("anna", "de-DE")},
	})
	for request, want := range map[wire.Transcribe]string{
		{}:                              "small hears en",
		{Name: "large"}:                 "large hears de",
		{Name: "large", Language: "fr"}: "large hears fr",
		{Language: "de"}:                "small hears de",
		{Language: "fr"}:                "large hears fr",
		{Name: "unknown"}:               "small hears en",
	} {
		g := dial(t, address)
		g.event(wire.TypeTranscribe, request, nil)
		g.event(wire.TypeAudioStart, wire.Format{Rate: 16000, Width: 2, Channels: 1}, nil)
		g.event(wire.TypeAudioStop, nil, nil)
		g.expect(wire.TypeTranscript, `{"text":"`+want+`"}`)
		g.Close()
	}
	for request, want := range map[wire.Voice]string{
		{}:                              "joe speaks en-US",
		{Name: "jenny"}:                 "jenny speaks en-GB",
		{Name: "anna", Language: "en"}:  "anna speaks de-DE",
		{Language: "en_GB"}:             "jenny speaks en-GB",
		{Language: "en-AU"}:             "joe speaks en-AU",
		{Language: "de"}:                "anna speaks de",
		{Name: "alba", Language: "xyz"}: "joe speaks en-US",
	} {
		g := dial(t, address)
		g.event(wire.TypeSynthesize, wire.Synthesize{Text: "Hi.", Voice: &request}, nil)
		g.next(wire.TypeAudioStart)
		g.next(wire.TypeAudioStop)
		if got := <-spoken; got != want {
			t.Errorf("%+v: %s, want %s", request, got, want)
		}
		g.Close()
	}
	g := dial(t, address)
	g.event(wire.TypeDescribe, nil, nil)
	if info := string(g.next(wire.TypeInfo).Data); strings.Count(info, `"models":`) != 1 || strings.Count(info, `"languages":`) != 5 || strings.Contains(info, `"installed":false`) {
		t.Errorf("the info is %s", info)
	}
}

// TestLocalEvents checks that a further event of a client on this machine is handled until the client disconnects, and that
// clients of the network are refused.
func TestLocalEvents(t *testing.T) {
	handled, ended := make(chan string, 2), make(chan error, 1)
	o := Options{Local: map[string]Handler{
		"remove": func(_ context.Context, e wire.Event, send func(string, any) error) error {
			handled <- string(e.Data)
			return send("removed", map[string]any{"ok": true})
		},
		"get": func(ctx context.Context, _ wire.Event, _ func(string, any) error) error {
			handled <- ""
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		},
	}}
	l := newPipes()
	run(t, o, l)
	for _, stranger := range []string{"192.168.1.7:4000", "[fe80::1%eth0]:4000", "[::ffff:192.0.2.0]:4000", "@", ""} {
		g := l.dial(t, stranger)
		g.event("remove", nil, nil)
		g.refused(codeLocal)
	}
	if len(handled) > 0 {
		t.Error("an event of a stranger was handled")
	}
	for _, local := range []string{"127.0.0.1:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"} {
		g := l.dial(t, local)
		g.event("remove", map[string]any{"name": "a"}, nil)
		g.expect("removed", `{"ok":true}`)
		if data := <-handled; data != `{"name":"a"}` {
			t.Errorf("%s: the data is %s", local, data)
		}
		g.event("get", nil, nil)
		<-handled
		must.Succeed(t, g.Close())
		if err := <-ended; err == nil {
			t.Errorf("%s: the handler did not end", local)
		}
	}
}
