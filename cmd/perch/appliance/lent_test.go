package appliance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device"
)

// asAgent has the test binary be a coding agent, which uses each of its tools
// that the words of a prompt name.
const asAgent = "PERCHTEST_AGENT"

// served is an MCP server as an agent is told of it.
type mcpServed struct {
	Type, Name, URL string
	Headers         []struct{ Name, Value string }
}

// serveAgent speaks the Agent Client Protocol, and MCP to the server it is given.
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
				said = server.use(m.Params.Prompt[len(m.Params.Prompt)-1].Text)
			}
			write(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "s1",
				"update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": said}}}})
			result["stopReason"] = "end_turn"
		}
		write(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// post sends one request of MCP, and returns what is answered.
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

// use connects, and calls the tool with the arguments that stand in the words.
func (s mcpServed) use(words string) string {
	_, header,
		_ := s.post("",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := header.Get("Mcp-Session-Id")
	s.post(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_, _, listed := s.post(session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	_, listed, _ = strings.Cut(listed, "data: ")
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	_ = json.Unmarshal([]byte(listed), &list)
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	name, args, _ := strings.Cut(words, " ")
	_, _, called := s.post(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args))
	_, called, _ = strings.Cut(called, `"text":"`)
	called, _, _ = strings.Cut(called, `"`)
	return strings.ReplaceAll(strings.Join(names, " and "), "_", "-") + ": " + called
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

// TestACodingAgentHasTools: an agent that Perch has started finds the robot's
// tools, timers and memory by MCP, as a language model would; a guest's turn has
// what a guest has, and a stranger's has no agent. When the turn is over its
// bearer does nothing more, and when the talk is, it opens nothing.
func TestACodingAgentHasTools(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(t.TempDir(), "told")
	for _, local := range [][]string{{"127.0.0.1:0"}, nil} {
		c := appliancetest.Config()
		c.Local = local
		c.Brains = []config.Brain{{Kind: "acp", Command: []string{self}, Env: map[string]string{asAgent: told},
			Within: config.Duration(20 * time.Second)}}
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
			return strings.Join(said, " ")
		}
		body := &torso{}
		const all = "cancel-timer and end-talk and get-perception and lookAt and notify and perform-skill and play-clip and recall and remember and " +
			"self-robot-turn and setExpression and set-timer and speak and wave: "
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f5", Body: body}, `self_robot_turn {"yaw":30}`); got != all+"turned" ||
			fmt.Sprint(body.turned) != "[self.robot.turn30]" {
			t.Errorf("it has %s, and turned %v", got, body.turned)
		}
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f5", Body: body}, `set_timer {"seconds":600,"text":"The tea is ready."}`); !strings.HasPrefix(
			got, all+"Set.") || len(h.Timers.Pending("a0b1c2d3e4f5", time.Now())) != 1 {
			t.Errorf("it said %s, and there are %v", got, h.Timers.Pending("a0b1c2d3e4f5", time.Now()))
		}
		if got := answer(agent.Turn{Untrusted: true}, `set_timer {"seconds":600,"text":"The tea is ready."}`); !strings.HasPrefix(got,
			"lookAt and play-clip and recall and remember and setExpression and speak and wave:") ||
			len(h.Timers.Pending("a0b1c2d3e4f5", time.Now())) != 1 {
			t.Errorf("a guest: %s", got)
		}
		if got := answer(agent.Turn{Robot: "a0b1c2d3e4f6", Untrusted: true, Body: body}, `self_robot_turn {"yaw":60}`); got != "" ||
			len(body.turned) != 1 {
			t.Errorf("a stranger: %s, %v", got, body.turned)
		}
		var server mcpServed
		text, err := os.ReadFile(told)
		if err == nil {
			err = json.Unmarshal(text, &server)
		}
		if err != nil || server.Type != "http" || server.Name != "perch" || !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
			t.Errorf("it was told of %s, %v", text, err)
		}
		if got := server.use(`remember {"fact":"It is void."}`); !strings.Contains(got, "nobody is being answered") ||
			len(h.Memory.Search("void", time.Now())) > 0 {
			t.Errorf("after the turn: %s", got)
		}
		if err := h.Mind.Forget("desk"); err != nil {
			t.Fatal(err)
		}
		if status, _, text := server.post("", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`); status != http.StatusUnauthorized {
			t.Errorf("after the talk: %d %s", status, text)
		}
		h.Stop()
	}
}
