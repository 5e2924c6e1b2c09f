package appliance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/mcp"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/must"
)

// asAgent is the name of an environment variable. If it is set, the test binary runs serveAgent instead of tests; the
// value is the path of the file of toldAt.
const asAgent = "PERCHTEST_AGENT"

// mcpServed describes an MCP server in a request of ACP.
type mcpServed struct {
	Type, Name, URL string
	Headers         []struct{ Name, Value string }
}

// serveAgent runs a coding agent: a server of ACP (Agent Client Protocol) on standard input and output. The agent calls
// the tools that a prompt names, on the MCP server that it was given.
func serveAgent() {
	var server mcpServed
	write := func(v any) {
		text, _ := json.Marshal(v)
		fmt.Printf("%s\n", text)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				MCPServers []mcpServed `json:"mcpServers"`
				Prompt     []struct{ Text string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := map[string]any{}
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"mcpCapabilities": map[string]any{"http": true}}}
		case "session/new":
			if len(m.Params.MCPServers) > 0 {
				server = m.Params.MCPServers[0]
			}
			text, _ := json.Marshal(server)
			_ = os.WriteFile(os.Getenv(asAgent), text, 0o600)
			result["sessionId"] = "s1"
		case "session/prompt":
			said := "No tools."
			if server.URL != "" {
				u := server.use(m.Params.Prompt[len(m.Params.Prompt)-1].Text)
				text, _ := json.Marshal(u)
				_ = os.WriteFile(os.Getenv(asAgent)+usedFile, text, 0o600)
				said = "That is done."
			}
			write(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "s1",
				"update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": said}}}})
			result["stopReason"] = "end_turn"
		}
		write(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// post sends an MCP request, and returns the status, header and body of the response.
func (s mcpServed) post(session, body string) (status int, header http.Header, answer string) {
	r, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		return 0, nil, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range s.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	a, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, a.Header, string(text)
}

// used holds the tools that an agent was offered in a turn, and the results of its calls.
type used struct {
	Tools   []thinker.Tool
	Answers []string
}

// use connects as an MCP client and makes the calls in words, which has the form "a {} then b {}".
func (s mcpServed) use(words string) (u used) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, bearer, _ := strings.Cut(s.Headers[0].Value, " ")
	client, err := mcp.New(mcp.Options{Name: s.Name, URL: s.URL, Key: bearer, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return used{Answers: []string{err.Error()}}
	}
	defer client.Close()
	for _, tool := range client.Tools(ctx) {
		tool.Name = strings.TrimPrefix(tool.Name, s.Name+".")
		u.Tools = append(u.Tools, tool)
	}
	for call := range strings.SplitSeq(words, " then ") {
		name, args, _ := strings.Cut(call, " ")
		answer, err := client.Call(ctx, s.Name+"."+name, json.RawMessage(args))
		if err != nil {
			answer = "Error: " + err.Error()
		}
		u.Answers = append(u.Answers, answer)
	}
	return u
}

// toldAt is the path of the file into which serveAgent writes the MCP server that it was given. The file with usedFile
// appended to the path contains the used of the latest turn.
type toldAt string

const usedFile = ".used"

func (f toldAt) used(t *testing.T) (u used) {
	t.Helper()
	text, err := os.ReadFile(string(f) + usedFile)
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err != nil {
		t.Error(err)
	}
	return u
}

// String returns the names of the tools and the results.
func (u used) String() string {
	var names []string
	for _, tool := range u.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " and ") + ": " + strings.Join(u.Answers, " ")
}

// torso is a robot that can turn its head.
type torso struct{ turned []string }

func (*torso) Tools() []device.Tool {
	return []device.Tool{{Name: "self.robot.turn", Schema: device.Schema{Properties: map[string]device.Argument{"yaw": {Type: "integer"}}}}}
}
func (b *torso) Call(_ context.Context, name string, args map[string]any) (device.Result, error) {
	b.turned = append(b.turned, fmt.Sprint(name, args["yaw"]))
	return device.Result{Text: "turned"}, nil
}
func (*torso) Reboot(context.Context) error { return nil }

// TestACodingAgentHasTools checks the tools of a coding agent: with a robot it has the robot's tools, timers and
// memory. In an untrusted turn without a robot it has only memory, and a robot that is not adopted gets no agent. After
// the turn the MCP server refuses calls, and after the conversation it refuses the token.
func TestACodingAgentHasTools(t *testing.T) {
	self := must.Value(os.Executable())(t)
	told := toldAt(filepath.Join(t.TempDir(), "told"))
	for _, local := range [][]string{{"127.0.0.1:0"}, nil} {
		c := appliancetest.Config()
		c.Local = local
		c.Brains = []config.Engine{{Kind: "acp", Options: &acp.Options{Command: []string{self}, Env: map[string]string{asAgent: string(told)}, Silence: 20 * time.Second}}}
		h := appliancetest.Start(t, c, t.TempDir())
		answer := func(turn agent.Turn, words string) string {
			t.Helper()
			turn.Conversation, turn.Text, turn.Now, turn.Language = "desk", words, time.Now(), "en"
			var said []string
			err := h.Mind.Answer(t.Context(), turn, func(r agent.Reply) error {
				if say, is := r.(agent.Say); is {
					said = append(said, say.Text)
				}
				return nil
			})
			if err != nil && !errors.Is(err, agent.ErrNoBrain) {
				t.Error(err)
			}
			if len(said) == 0 {
				return ""
			}
			return told.used(t).String()
		}
		body := &torso{}
		const all = "cancel_timer and end_talk and get_perception and lookAt and notify and perform_skill and play_clip and recall and remember and " +
			"self_robot_turn and setExpression and set_timer and speak and wave: "
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f5", Body: body}, `self_robot_turn {"yaw":30}`); got != all+"turned" ||
			fmt.Sprint(body.turned) != "[self.robot.turn30]" {
			t.Errorf("it has %s, and turned %v", got, body.turned)
		}
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f5", Body: body}, `set_timer {"seconds":600,"text":"The tea is ready."}`); !strings.HasPrefix(
			got, all+"Set.") || len(h.Timers.Pending("a0b1c2d3e4f5", time.Now())) != 1 {
			t.Errorf("it said %s, and there are %v", got, h.Timers.Pending("a0b1c2d3e4f5", time.Now()))
		}
		if got := answer(agent.Turn{Untrusted: true}, `set_timer {"seconds":600,"text":"The tea is ready."}`); !strings.HasPrefix(got,
			"recall and remember: ") ||
			len(h.Timers.Pending("a0b1c2d3e4f5", time.Now())) != 1 {
			t.Errorf("a guest: %s", got)
		}
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f6", Untrusted: true, Body: body}, `self_robot_turn {"yaw":60}`); got != "" ||
			len(body.turned) != 1 {
			t.Errorf("a stranger: %s, %v", got, body.turned)
		}
		var server mcpServed
		text, err := os.ReadFile(string(told))
		if err == nil {
			err = json.Unmarshal(text, &server)
		}
		if err != nil || server.Type != "http" || server.Name != "perch" || !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
			t.Errorf("it was told of %s, %v", text, err)
		}
		if got := server.use(`remember {"fact":"It is void."}`).String(); !strings.Contains(got, "nobody is being answered") ||
			len(h.Memory.Search("void", time.Now())) > 0 {
			t.Errorf("after the turn: %s", got)
		}
		must.Succeed(t, h.Mind.Forget("desk"))
		if status, _, text := server.post("", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`); status != http.StatusUnauthorized {
			t.Errorf("after the talk: %d %s", status, text)
		}
		h.Stop()
	}
}
