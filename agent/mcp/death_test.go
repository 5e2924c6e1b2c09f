package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/mcp"
	"perch/must"
	"perch/waittest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestHarmlessDeviations(t *testing.T) {
	for _, is := range []string{"split", "garbage", "batch"} {
		t.Run(is, func(t *testing.T) {
			s, _ := child(t, is, mcp.Options{})
			if got := call(t, s, "it.do", ""); got != "done" {
				t.Errorf("it says %q", got)
			}
			must.Succeed(t, s.Check(soon(t)))
		})
	}
}

func TestAnAnswerThatIsTooLongFailsAlone(t *testing.T) {
	for _, is := range []string{"huge", "huge the other way round"} {
		t.Run(is, func(t *testing.T) {
			s, log := child(t, is, mcp.Options{})
			must.Succeed(t, s.Warm(soon(t)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Call(soon(t), "it.do", nil)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "longer than 4 MB") {
				t.Errorf("100 MB ended with %v", err)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 40 {
				t.Errorf("%d MB were taken for it", got)
			}
			if err := s.Check(soon(t)); err != nil || log.Lines("cannot be used") > 0 {
				t.Errorf("the connection did not outlive it: %v", err)
			}
		})
	}
}

func TestLongAnswersAreCut(t *testing.T) {
	s, _ := child(t, "long", mcp.Options{})
	if got := call(t, s, "it.do", ""); len(got) > 32<<10 || !strings.HasPrefix(got, "ää") {
		t.Errorf("%d bytes are handed on", len(got))
	}
}

func TestToolsAreBounded(t *testing.T) {
	s, log := child(t, "many", mcp.Options{})
	tools := s.Tools(soon(t))
	if len(tools) != 100 || log.Lines("not offered") != 1 {
		t.Errorf("%d tools are offered", len(tools))
	}
	for _, tool := range tools {
		if len(tool.Description) > 4<<10 || strings.Contains(tool.Name, "vast") {
			t.Errorf("%s: %d bytes", tool.Name, len(tool.Description))
		}
	}
}

func TestProcessesThatAreNoServer(t *testing.T) {
	for _, c := range []struct {
		is, want string
		o        mcp.Options
	}{
		{"first words", "ended at once (exit status 2)", mcp.Options{}},
		{"noise", "does not speak MCP", mcp.Options{}},
		{"mute", "does not answer in 300ms", mcp.Options{ConnectWithin: 300 * time.Millisecond}},
		{"elder", "refuses to begin: too new for [key]", mcp.Options{}},
	} {
		t.Run(c.is, func(t *testing.T) {
			p := &pauses{next: make(chan struct{})}
			c.o.Pause = p.pause
			s, log := child(t, c.is, c.o)
			err := s.Check(soon(t))
			if err == nil || !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: %v", err)
			}
			if log.Lines("cannot be used") != 1 || strings.Contains(log.String(), "canary") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
	for want, o := range map[string]mcp.Options{
		"no-such-program-here is not installed": {Command: []string{"no-such-program-here", "--token", "canary-canary"}},
		"is not installed":                      {Command: []string{"/nowhere/at/all"}},
		"/ cannot be started":                   {Command: []string{"/"}},
		"its folder /nowhere":                   {Command: []string{"true"}, Dir: "/nowhere"},
		"ended at once (exit status 0)":         {Command: []string{"true"}},
	} {
		s, _ := open(t, o)
		if err := s.Check(soon(t)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: %v", o.Command, err)
		}
	}
}

func TestPausesGrowAndAreLoggedOnce(t *testing.T) {
	p := &pauses{}
	s, log := open(t, mcp.Options{Command: []string{"no-such-program-here"}, Pause: p.pause})
	if err := s.Check(soon(t)); err == nil {
		t.Fatal("it is there")
	}
	waittest.For(t, "it is patient no more", func() bool { return p.count() == 11 })
	if want := "[1s 2s 4s 8s 16s 32s 1m0s 1m0s 1m0s 1m0s 1m0s]"; p.String() != want {
		t.Errorf("it paused %s, not %s", p, want)
	}
	if tools := s.Tools(soon(t)); len(tools) > 0 { // this use causes another attempt
		t.Errorf("there are %d tools", len(tools))
	}
	waittest.For(t, "it tries again", func() bool { return p.count() == 12 })
	if n := log.Lines("cannot be used"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log)
	}
}

func TestACallThatIsNotAnswered(t *testing.T) {
	p := &pauses{}
	s, log := child(t, "silent", mcp.Options{CallWithin: 50 * time.Millisecond, Pause: p.pause})
	must.Succeed(t, s.Warm(soon(t)))
	for range 3 {
		if _, err := s.Call(t.Context(), "it.do", nil); err == nil || !strings.Contains(err.Error(), "does not answer in time") {
			t.Errorf("it ended with %v", err)
		}
	}
	waittest.For(t, "it is started anew", func() bool { return p.count() > 0 })
	if err := s.Check(soon(t)); err != nil || log.Lines("has not answered for a while") != 1 {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestATurnDoesNotWaitForAServer(t *testing.T) {
	s, _ := child(t, "mute", mcp.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if tools := s.Tools(ctx); len(tools) > 0 || time.Since(begun) > 10*time.Second {
		t.Errorf("%d tools after %v", len(tools), time.Since(begun))
	}
	if _, err := s.Call(ctx, "it.do", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call ended with %v", err)
	}
}

func TestAConnectionCutInTheMiddle(t *testing.T) {
	s, _ := child(t, "cut", mcp.Options{Pause: (&pauses{}).pause})
	if _, err := s.Call(soon(t), "it.do", nil); !errors.Is(err, agent.ErrAway) || !strings.Contains(fmt.Sprint(err), "has ended (exit status 1)") {
		t.Errorf("it ended with %v", err)
	}
	must.Succeed(t, s.Check(soon(t)))
}

// answering returns a handler that sends the same response to every request.
func answering(status int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func TestAddressesThatAreNoServer(t *testing.T) {
	const canary = "canary-0123456789"
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another machine gets the key") }))
	defer thief.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"405":           {answering(405, "text/plain", ""), "there is no MCP server at"},
		"a web page":    {answering(200, "text/html", "<h1>welcome "+canary+"</h1>"), "is not an MCP server"},
		"other JSON":    {answering(200, "application/json", `{"welcome":"`+canary+`"}`), "is not an MCP server"},
		"JSON for ever": {answering(200, "application/json", strings.Repeat("[", 5<<20)), "longer than 4 MB"},
		"nothing":       {answering(200, "application/json", ""), "is not an MCP server"},
		"a stream":      {answering(200, "text/event-stream", "data: {}\n\n"), "cannot be used"},
		"empty stream":  {answering(200, "text/event-stream", ""), "cannot be used"},
		"endless event": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "data: "+strings.Repeat("x", 1<<16)+"\n"); err != nil {
					return
				}
			}
		}, "exceeded"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+"/?key="+canary, http.StatusTemporaryRedirect)
		}, "sends elsewhere (HTTP 307 to " + thief.URL + "/)"},
		"refusal": {answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no `+canary+`"}}`),
			"refuses to begin: no [key]"},
		"SSE that sends elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(405)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: endpoint\ndata: "+thief.URL+"/take\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "to another machine"},
		"SSE with another key": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[string]int{http.MethodGet: 401}[r.Method] + map[string]int{http.MethodPost: 405}[r.Method])
		}, "refuses the key"},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(c.handler)
			defer web.Close()
			s, log := open(t, mcp.Options{URL: web.URL + "/here/" + canary + "?q=" + canary, Key: canary})
			defer s.Close()
			err := s.Check(soon(t))
			if err == nil || !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: %v", err)
			}
			if strings.Contains(fmt.Sprint(err), canary) || strings.Contains(log.String(), canary) {
				t.Errorf("a key shows: %v\n%s", err, log)
			}
		})
	}
	home := httptest.NewServer(answering(404, "text/plain", ""))
	defer home.Close()
	h, _ := open(t, mcp.Options{URL: home.URL + "/api/mcp"})
	defer h.Close()
	if err := h.Check(soon(t)); err == nil || !strings.Contains(err.Error(), "add the integration Model Context Protocol Server") {
		t.Error(err)
	}
	s, _ := open(t, mcp.Options{URL: "http://no-such-host.invalid/mcp"})
	if err := s.Check(soon(t)); err == nil || !strings.Contains(err.Error(), "there is no host") {
		t.Error(err)
	}
}

func TestTheKeyIsSentAndAServerMayBeStartedAnew(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	fresh := func() {
		server := hosted(t)
		h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
		handler.Store(&h)
	}
	fresh()
	var keyless atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			keyless.Add(1)
		}
		(*handler.Load()).ServeHTTP(w, r)
	}))
	defer web.Close()
	s, log := open(t, mcp.Options{URL: web.URL, Key: "sesame", Pause: (&pauses{}).pause})
	defer s.Close()
	call(t, s, "it.echo", `{"text":"one"}`)
	fresh() // the new server does not know the session
	if got := call(t, s, "it.echo", `{"text":"two"}`); got != "two" {
		t.Errorf("it says %q", got)
	}
	if n := keyless.Load(); n > 0 {
		t.Errorf("%d requests were without the key", n)
	}
	if log.Lines("cannot be used") > 0 {
		t.Errorf("a moment's absence is logged:\n%s", log)
	}
}

func TestAnAddressThatGoesAwayAndComesBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	at := listener.Addr().String()
	serve := func(l net.Listener) *http.Server {
		server := hosted(t)
		web := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
		go func() { _ = web.Serve(l) }()
		return web
	}
	web := serve(listener)
	p := &pauses{next: make(chan struct{})}
	s, log := open(t, mcp.Options{URL: "http://" + at, Pause: p.pause})
	defer s.Close()
	call(t, s, "it.echo", `{"text":"one"}`)
	_ = web.Close()
	if _, err := s.Call(soon(t), "it.echo", []byte(`{"text":"two"}`)); err == nil || !errors.Is(err, agent.ErrAway) {
		t.Errorf("while it is away: %v", err)
	}
	p.next <- struct{}{}
	waittest.For(t, "its absence is logged", func() bool { return log.Lines("cannot be used") == 1 })
	p.next <- struct{}{}
	waittest.For(t, "it is tried a third time", func() bool { return p.count() == 3 })
	if tools := s.Tools(t.Context()); len(tools) == 0 || s.Check(t.Context()) == nil {
		t.Errorf("meanwhile %d tools are known", len(tools))
	}
	if listener, err = net.Listen("tcp", at); err != nil {
		t.Skip("somebody has taken the port: ", err)
	}
	web = serve(listener)
	defer web.Close()
	p.next <- struct{}{}
	waittest.For(t, "it is back", func() bool { return log.Lines("can be used again") == 1 })
	if got := call(t, s, "it.echo", `{"text":"three"}`); got != "three" || log.Lines("cannot be used") != 1 {
		t.Errorf("it says %q\n%s", got, log)
	}
}

// TestServerThatFloodsRequestsIsStopped tests that a server that sends many requests and reads no
// response is stopped.
func TestServerThatFloodsRequestsIsStopped(t *testing.T) {
	s, _ := child(t, "curious", mcp.Options{Pause: (&pauses{next: make(chan struct{})}).pause})
	must.Succeed(t, s.Warm(soon(t)))
	if _, err := s.Call(soon(t), "it.do", nil); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("it ended with %v", err)
	}
}

func TestInvalidOptions(t *testing.T) {
	log := logTo(&waittest.Buffer{})
	for want, o := range map[string]mcp.Options{
		"cannot be the name":             {Command: []string{"x"}, Log: log},
		"needs a log":                    {Name: "it", Command: []string{"x"}},
		"needs a command":                {Name: "it", Log: log},
		"both a command":                 {Name: "it", Command: []string{"x"}, URL: "http://x", Log: log},
		"a key is only for a url":        {Name: "it", Command: []string{"x"}, Key: "k", Log: log},
		"is not a valid address":         {Name: "it", URL: "ftp://canary/", Log: log},
		"its url is not a valid address": {Name: "it", URL: "http://canary:x/", Log: log},
		"its key has":                    {Name: "it", URL: "http://x", Key: "canary\n", Log: log},
		"the name of a tool nor":         {Name: "it", URL: "http://x", Only: []string{"[a"}, Log: log},
		"is not NAME=value":              {Name: "it", Command: []string{"x"}, Env: []string{"canary"}, Log: log},
		"must be above":                  {Name: "it", URL: "http://x", CallWithin: -1, Log: log},
		`"a.b" cannot be the name of`:    {Name: "a.b", URL: "http://x", Log: log},
	} {
		if _, err := mcp.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", want, err)
		}
	}
	s, err := mcp.New(mcp.Options{Name: "it", Command: []string{"no-such"}, Log: log})
	if err != nil || s.Name() != "it" || s.Close() != nil || s.Close() != nil {
		t.Errorf("one that was never used: %v", err)
	}
}
