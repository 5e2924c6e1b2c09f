package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/mcp"
	"perch/agent/thinker"
	"perch/must"
	"perch/waittest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type output struct {
	Text string `json:"text"`
}

// realServer returns a server of the SDK with several tools.
func realServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "1"}, nil)
	add := func(name string, run func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error)) {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: "does " + name}, func(ctx context.Context, r *sdk.CallToolRequest, in output) (
			*sdk.CallToolResult, any, error) {
			result, err := run(ctx, r, in)
			return result, nil, err
		})
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, _ *sdk.CallToolRequest, in output) (*sdk.CallToolResult, error) {
		return text(in.Text), nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
		return nil, errors.New("the disk is full")
	})
	add("picture", func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "A cat."},
			&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}}, nil
	})
	add("slow", func(ctx context.Context, _ *sdk.CallToolRequest, in output) (*sdk.CallToolResult, error) {
		mark(in.Text, "begun")
		<-ctx.Done()
		mark(in.Text, "cancelled")
		return nil, ctx.Err()
	})
	add("die", func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "a last word, token=sesame-open")
		os.Exit(3)
		return nil, nil
	})
	add("env", func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
		return text("none"), nil
	})
	add("offspring", func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
		cmd := exec.Command("sh", "-c", "trap '' TERM; exec sleep 1000")
		err := cmd.Start()
		return text(fmt.Sprint(cmd.Process.Pid)), err
	})
	add("ask", func(ctx context.Context, r *sdk.CallToolRequest, _ output) (*sdk.CallToolResult, error) {
		//lint:ignore SA1019 servers go on asking
		_, err1 := r.Session.ListRoots(ctx, nil)
		//lint:ignore SA1019 servers go on asking
		_, err2 := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{})
		_, err3 := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "?"})
		return text(fmt.Sprintf("%t %t %t", err1 != nil, err2 != nil, err3 != nil)), nil
	})
	add("learn", func(_ context.Context, _ *sdk.CallToolRequest, in output) (*sdk.CallToolResult, error) {
		add(in.Text, func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, error) {
			return text("learned"), nil
		})
		return text("ok"), nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "structured"}, func(context.Context, *sdk.CallToolRequest, output) (*sdk.CallToolResult, map[string]int,
		error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, map[string]int{"degrees": 21}, nil
	})
	return server
}

// hosted returns a realServer whose sessions are closed at the end of the test.
func hosted(t *testing.T) *sdk.Server {
	server := realServer()
	t.Cleanup(func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
	return server
}

func mark(path, what string) {
	if path != "" {
		_ = os.WriteFile(path, []byte(what), 0o600)
	}
}

func serveReal() {
	_ = realServer().Run(context.Background(), &sdk.StdioTransport{})
	os.Exit(0)
}

// exercise tests listing and calling the tools of a realServer over any transport.
func exercise(t *testing.T, s *mcp.Server) {
	t.Helper()
	must.Succeed(t, s.Check(soon(t)))
	names := map[string]thinker.Tool{}
	for _, tool := range s.Tools(soon(t)) {
		names[tool.Name] = tool
	}
	if echo := names["it.echo"]; echo.Description != "does echo" || !strings.Contains(string(echo.Schema), `"text"`) {
		t.Errorf("echo is offered as %s", echo.Schema)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"it.echo", `{"text":"hello"}`, "hello"},
		{"it.picture", `{"text":""}`, "A cat.\n(An image came with it, which cannot be shown here.)"},
		{"it.structured", `{"text":""}`, `{"degrees":21}`},
		{"it.ask", `{"text":""}`, "true true true"},
	} {
		if got := call(t, s, c.tool, c.args); got != c.want {
			t.Errorf("%s says %q, not %q", c.tool, got, c.want)
		}
	}
	_, err := s.Call(soon(t), "it.fail", []byte(`{"text":""}`))
	if err == nil || err.Error() != "the disk is full" || errors.Is(err, agent.ErrAway) {
		t.Errorf("a tool that fails says %v", err)
	}
	for _, wrong := range []string{"it.nothing", "echo", "other.echo"} {
		if _, err := s.Call(soon(t), wrong, nil); err == nil || errors.Is(err, agent.ErrAway) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := s.Call(soon(t), "it.echo", []byte(`{"text":5}`)); err == nil {
		t.Error("arguments of another type are taken")
	}
	call(t, s, "it.learn", `{"text":"dance"}`)
	waittest.For(t, "the new tool is known", func() bool {
		for _, tool := range s.Tools(soon(t)) {
			if tool.Name == "it.dance" {
				return true
			}
		}
		return false
	})
	cancelled(t, s)
}

// cancelled tests that a cancelled call returns soon, and that the server's tool is cancelled.
func cancelled(t *testing.T, s *mcp.Server) {
	t.Helper()
	note := t.TempDir() + "/note"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "it.slow", []byte(`{"text":`+strconv.Quote(note)+`}`))
		ended <- err
	}()
	is := func(want string) func() bool {
		return func() bool { got, _ := os.ReadFile(note); return string(got) == want }
	}
	waittest.For(t, "the slow tool begins", is("begun"))
	cancel()
	begun := time.Now()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled ended with %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v to give up a call", took)
	}
	waittest.For(t, "the server hears of it", is("cancelled"))
	if got := call(t, s, "it.echo", `{"text":"still there"}`); got != "still there" {
		t.Errorf("afterwards it says %q", got)
	}
}

func TestAServerOverStandardInputAndOutput(t *testing.T) {
	s, _ := child(t, "real", mcp.Options{})
	exercise(t, s)
}

func TestAServerOverStreamableHTTP(t *testing.T) {
	for name, o := range map[string]*sdk.StreamableHTTPOptions{
		"with sessions": nil, "without": {Stateless: true}, "that answers in JSON": {JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := hosted(t)
			web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, o))
			defer web.Close()
			s, _ := open(t, mcp.Options{URL: web.URL + "/mcp"})
			defer s.Close()
			if name == "with sessions" {
				exercise(t, s)
				must.Succeed(t, s.Close())
				for range server.Sessions() {
					t.Error("the server keeps a session")
				}
				return
			}
			must.Succeed(t, s.Check(soon(t)))
			if got := call(t, s, "it.echo", `{"text":"hello"}`); got != "hello" {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestAServerOverSSE(t *testing.T) {
	server := hosted(t)
	mux := http.NewServeMux()
	mux.Handle("/mcp_server/sse", sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
	web := httptest.NewServer(mux)
	defer web.Close()
	for _, path := range []string{"/mcp_server/sse", "/api/mcp"} { // at /api/mcp, the address of newer Home Assistants, SSE is tried at the older path
		s, _ := open(t, mcp.Options{URL: web.URL + path})
		exercise(t, s)
		must.Succeed(t, s.Close())
	}
}

func TestOnlyAndExcept(t *testing.T) {
	s, _ := child(t, "real", mcp.Options{Only: []string{"e*", "fail"}, Except: []string{"env"}})
	var names []string
	for _, tool := range s.Tools(soon(t)) {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "it.echo it.fail" {
		t.Errorf("it offers %s", got)
	}
	if _, err := s.Call(soon(t), "it.env", []byte(`{"text":""}`)); err == nil {
		t.Error("a tool that is not offered can be called")
	}
	none, _ := child(t, "real", mcp.Options{Only: []string{"nothing"}})
	if err := none.Check(soon(t)); err == nil || !strings.Contains(err.Error(), "only and except") {
		t.Errorf("a server of which nothing is left: %v", err)
	}
}

func TestAServerThatEndsIsStartedAnew(t *testing.T) {
	s, log := child(t, "real", mcp.Options{Pause: (&pauses{}).pause})
	if _, err := s.Call(soon(t), "it.die", []byte(`{"text":""}`)); err == nil || !errors.Is(err, agent.ErrAway) ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the call it died of ended with %v", err)
	}
	if tools := s.Tools(t.Context()); len(tools) == 0 {
		t.Error("its tools are not known meanwhile")
	}
	if got := call(t, s, "it.echo", `{"text":"back"}`); got != "back" {
		t.Errorf("it says %q", got)
	}
	if log.Lines("cannot be used") != 1 || log.Lines("can be used again") != 1 || log.Lines("a last word") != 1 {
		t.Errorf("the log says otherwise:\n%s", log)
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the log holds a key:\n%s", log)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	s, _ := child(t, "real", mcp.Options{CallWithin: time.Hour})
	pid, err := strconv.Atoi(call(t, s, "it.offspring", `{"text":""}`))
	must.Succeed(t, err)
	note := t.TempDir() + "/note"
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call(context.Background(), "it.slow", []byte(`{"text":`+strconv.Quote(note)+`}`))
		ended <- err
	}()
	waittest.For(t, "the slow tool begins", func() bool { got, _ := os.ReadFile(note); return string(got) == "begun" })
	must.Succeed(t, s.Close()) // cancels the call
	if err := <-ended; !errors.Is(err, agent.ErrAway) {
		t.Errorf("the call that ran ended with %v", err)
	}
	waittest.For(t, "what the server had started is gone", func() bool { return waittest.Dead(pid) })
	if _, err := s.Call(soon(t), "it.echo", nil); !errors.Is(err, agent.ErrAway) {
		t.Errorf("after Close: %v", err)
	}
	if tools := s.Tools(t.Context()); s.Warm(t.Context()) == nil || len(tools) == 0 {
		t.Errorf("after Close there are %d tools", len(tools))
	}
}
