package appliance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/anthropic"
	"perch/agent/mcp"
	openaibrain "perch/agent/openai"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// toolModel is a fake server of a language model, with OpenAI's and Anthropic's protocols. If the user's message
// is the name of a tool and its arguments, the model calls this tool. After the result it writes "That is done."
type toolModel struct {
	mu   sync.Mutex
	used used
}

func (m *toolModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	dialects := map[string]func(*toolModel, http.ResponseWriter, []byte) error{
		"/v1/chat/completions": (*toolModel).openai, "/v1/messages": (*toolModel).anthropic}
	dialect, known := dialects[r.URL.Path]
	if err == nil && known {
		w.Header().Set("Content-Type", "text/event-stream")
		err = dialect(m, w, body)
	}
	if err != nil || !known {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
	}
}

// offered records a tool of a request.
func (m *toolModel) offered(name string, schema json.RawMessage) {
	m.used.Tools = append(m.used.Tools, thinker.Tool{Name: name, Schema: schema})
}

// last returns the tools of the latest request and the latest results of tools.
func (m *toolModel) last() used {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// openai answers a request for a chat completion.
func (m *toolModel) openai(w http.ResponseWriter, body []byte) error {
	var asked struct {
		Stream bool
		Tools  []struct {
			Type     string
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		Messages []struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil || !asked.Stream {
		return fmt.Errorf("no stream is asked for: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Tools = nil
	for _, tool := range asked.Tools {
		m.offered(tool.Function.Name, tool.Function.Parameters)
	}
	send := func(delta any, finish string) {
		choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
		if finish != "" {
			choice["finish_reason"] = finish
		}
		text, _ := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []any{choice}})
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	last := asked.Messages[len(asked.Messages)-1]
	if last.Role == "tool" {
		if last.ToolCallID != "call_1" {
			return fmt.Errorf("the answer is to %q", last.ToolCallID)
		}
		m.used.Answers = []string{last.Content}
		send(map[string]any{"role": "assistant", "content": "That is "}, "")
		send(map[string]any{"content": "done."}, "")
		send(struct{}{}, "stop")
	} else {
		name, args, _ := strings.Cut(last.Content, " ")
		call := func(function any) any {
			return map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function", "function": function}}}
		}
		send(call(map[string]string{"name": name, "arguments": ""}), "")
		for _, part := range []string{args[:1], args[1:]} {
			send(call(map[string]string{"arguments": part}), "")
		}
		send(struct{}{}, "tool_calls")
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// anthropic answers a request for a message.
func (m *toolModel) anthropic(w http.ResponseWriter, body []byte) error {
	var asked struct {
		Stream bool
		Tools  []struct {
			Name        string
			InputSchema json.RawMessage `json:"input_schema"`
		}
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text string
				ToolUseID  string `json:"tool_use_id"`
				Content    []struct{ Text string }
			}
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil || !asked.Stream {
		return fmt.Errorf("no stream is asked for: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Tools = nil
	for _, tool := range asked.Tools {
		m.offered(tool.Name, tool.InputSchema)
	}
	send := func(kind, rest string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
	block := func(begin, kind, field string, parts ...string) {
		send("content_block_start", `,"index":0,"content_block":`+begin)
		for _, part := range parts {
			text, _ := json.Marshal(part)
			send("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":%q,%q:%s}`, kind, field, text))
		}
		send("content_block_stop", `,"index":0`)
	}
	send("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,`+
		`"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	content := asked.Messages[len(asked.Messages)-1].Content
	last, stop := content[len(content)-1], "end_turn"
	if last.Type == "tool_result" {
		if last.ToolUseID != "toolu_1" || len(last.Content) != 1 {
			return fmt.Errorf("the answer is to %q, %v", last.ToolUseID, last.Content)
		}
		m.used.Answers = []string{last.Content[0].Text}
		block(`{"type":"text","text":""}`, "text_delta", "text", "That is ", "done.")
	} else {
		name, args, _ := strings.Cut(last.Text, " ")
		block(fmt.Sprintf(`{"type":"tool_use","id":"toolu_1","name":%q,"input":{}}`, name), "input_json_delta", "partial_json", args[:1], args[1:])
		stop = "tool_use"
	}
	send("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}`, stop))
	send("message_stop", "")
	return nil
}

// toolDriver is a brain that calls the tool that a person names.
type toolDriver struct {
	brain config.Engine
	used  func() used // returns the tools that were offered and the results in the latest turn
}

// toolDrivers returns a brain of each kind: openai, anthropic, and acp, a coding agent that uses the tools
// over MCP.
func toolDrivers(t *testing.T) map[string]toolDriver {
	t.Helper()
	served := func() (string, func() used) {
		m := &toolModel{}
		server := httptest.NewServer(m)
		t.Cleanup(server.Close)
		return server.URL, m.last
	}
	chat, ofChat := served()
	messages, ofMessages := served()
	self := must.Value(os.Executable())(t)
	told := toldAt(filepath.Join(t.TempDir(), "told"))
	return map[string]toolDriver{
		"openai":    {appliancetest.OpenAI(openaibrain.Options{URL: chat + "/v1", Model: "m"}), ofChat},
		"anthropic": {appliancetest.Anthropic(anthropic.Options{URL: messages, Model: "m", Key: "k"}), ofMessages},
		"acp":       {config.Engine{Kind: "acp", Options: &acp.Options{Command: []string{self}, Env: map[string]string{asAgent: string(told)}, Silence: 20 * time.Second}}, func() used { return told.used(t) }},
	}
}

// within reports whether the JSON value got contains want: objects may have further fields, and other values
// must be equal.
func within(want, got any) bool {
	w, is := want.(map[string]any)
	if !is {
		return reflect.DeepEqual(want, got)
	}
	g, is := got.(map[string]any)
	for key, value := range w {
		is = is && within(value, g[key])
	}
	return is
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return v
}

// avatarTool is a call of a tool, such as one of the six of agent-manifest/0.1, and its expected effect.
type avatarTool struct {
	name, schema  string
	args, answers string               // arguments and expected result
	head          []simrobot.HeadMoved // positions of the head, in this order
	shows         string               // the only face that is shown: the emoji, and the nearest face that a Stack-chan has
	says          string               // a sentence that the robot shows
	keeps         string               // a fact in the memory
}

// at returns a position of the head without a speed.
func at(yaw, pitch int) simrobot.HeadMoved { return simrobot.HeadMoved{Yaw: yaw, Pitch: pitch} }

var sixTools = []avatarTool{
	{name: "wave", args: `{"duration_ms":1800}`, answers: `{"ok":true}`,
		head:   []simrobot.HeadMoved{at(0, 30), at(-18, 30), at(18, 30), at(-12, 30), at(0, 15)},
		schema: `{"type":"object","properties":{"duration_ms":{"type":"integer","minimum":500,"maximum":5000,"default":1500}}}`},
	{name: "lookAt", args: `{"target":"user"}`, answers: `{"ok":true}`, head: []simrobot.HeadMoved{at(0, 30)},
		schema: `{"type":"object","properties":{"target":{"type":"string","enum":["user","camera","center"]}},"required":["target"]}`},
	{name: "play_clip", args: `{"name":"nod"}`, answers: `{"ok":true}`,
		head: []simrobot.HeadMoved{at(0, 30), at(0, 8), at(0, 28), at(0, 8), at(0, 30)},
		schema: `{"type":"object","properties":{"name":{"type":"string"},"loop":{"type":"boolean","default":false},` +
			`"fade_ms":{"type":"integer","default":200}},"required":["name"]}`},
	{name: "setExpression", args: `{"preset":"surprised"}`, answers: `{"ok":true}`, shows: "😮 happy",
		schema: `{"type":"object","properties":{"preset":{"type":"string","enum":["neutral","happy","sad","surprised","confused","focused"]},` +
			`"intensity":{"type":"number","minimum":0,"maximum":1,"default":1}},"required":["preset"]}`},
	{name: "speak", args: `{"text":"The tide is high."}`, answers: `{"ok":true}`, says: "The tide is high.",
		schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`},
	{name: "remember", answers: "Remembered.", keeps: "Ann drinks green tea.",
		args: `{"key":"tea","name":"Tea","description":"what Ann drinks","type":"feedback","body":"Ann drinks green tea."}`,
		schema: `{"type":"object","properties":{"key":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},` +
			`"type":{"type":"string","enum":["user","feedback","project","reference"]},"body":{"type":"string"}},"required":["key","name","description","type","body"]}`},
	{name: "lookAt", args: `{"target":"center"}`, answers: `{"ok":true}`, head: []simrobot.HeadMoved{at(0, 15)}, schema: `{}`},
	{name: "lookAt", args: `{"target":"moon"}`, answers: `Error: target is user, camera or center, not "moon"`, schema: `{}`},
	// The robot's own tool, with angles beyond the range of its servos.
	{name: "self_robot_set_head_angles", args: `{"yaw":128,"pitch":90}`, answers: "true", head: []simrobot.HeadMoved{at(128, 85)}, schema: `{}`},
	{name: "self_robot_set_head_angles", args: `{"yaw":-40,"pitch":0}`, answers: "true", head: []simrobot.HeadMoved{at(-40, 5)}, schema: `{}`},
}

// TestTheSixToolsMoveARobot checks, for each of toolDrivers, that the tools of an avatar are offered with their
// schemas, that a call has the expected result, and that the robot carries it out.
func TestTheSixToolsMoveARobot(t *testing.T) {
	t.Parallel()
	for name, driver := range toolDrivers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := appliancetest.Config()
			c.Brains, c.Mood = []config.Engine{driver.brain}, "off" // moods would move the head, too
			h := appliancetest.Start(t, c, t.TempDir())
			h.Adopt("A0:B1:C2:D3:E4:F5")
			var played atomic.Int64 // number of samples
			r := h.StartCompanion(simrobot.Options{Play: func(_ int, pcm []int16) { played.Add(int64(len(pcm))) }})
			h.WaitForTools(r.ID())
			for _, tool := range sixTools {
				before := played.Load()
				talksOf(h, r, driver, tool)
				if played.Load() == before {
					t.Errorf("%s: nothing is heard", tool.name)
				}
			}
			if r.Off(); r.Stats().Bad > 0 {
				t.Errorf("it could not play all: %+v", r.Stats())
			}
		})
	}
}

// talksOf makes the brain call a tool in a turn of the robot, and checks the effect.
func talksOf(h *appliancetest.Appliance, r *appliancetest.Robot, driver toolDriver, tool avatarTool) {
	h.T.Helper()
	before := len(r.Observations())
	since := func() []simrobot.Observation { return r.Observations()[before:] }
	must.Succeed(h.T, h.Talk.InjectText(h.T.Context(), r.ID(), tool.name+" "+tool.args))
	h.Eventually("the talk about "+tool.name+" is over", func() bool {
		seen := since()
		spoke := slices.Index(seen, simrobot.Observation(simrobot.Entered{State: simrobot.Speaking}))
		return spoke >= 0 && slices.ContainsFunc(seen[spoke:],
			appliancetest.Match(func(e simrobot.Entered) bool { return e.State != simrobot.Speaking }))
	})
	used := driver.used()
	i := slices.IndexFunc(used.Tools, func(t thinker.Tool) bool { return t.Name == tool.name })
	if i < 0 || !within(decoded(h.T, []byte(tool.schema)), decoded(h.T, used.Tools[i].Schema)) {
		h.T.Errorf("%s is offered at %d of %v", tool.name, i, used.Tools)
	}
	if len(used.Answers) != 1 || strings.TrimPrefix(used.Answers[0], "The tool failed: ") != tool.answers {
		h.T.Errorf("%s answers %q, want %q", tool.name, used.Answers, tool.answers)
	}
	var head []simrobot.HeadMoved
	moved := func() bool {
		head = nil
		for _, o := range since() {
			if m, is := o.(simrobot.HeadMoved); is {
				head = append(head, at(m.Yaw, m.Pitch))
			}
		}
		return len(head) >= len(tool.head)
	}
	if h.Eventually(tool.name+" moves the head", moved); !slices.Equal(head, tool.head) {
		h.T.Errorf("%s %s moves the head to %v, want %v", tool.name, tool.args, head, tool.head)
	}
	saw := func(want string, is func(simrobot.Observation) bool) {
		if !slices.ContainsFunc(since(), is) {
			h.T.Errorf("%s: %s is not seen among %v", tool.name, want, since())
		}
	}
	if tool.shows != "" {
		var faces []string
		for _, o := range since() {
			if e, is := o.(simrobot.EmotionShown); is {
				faces = append(faces, e.Emoji+" "+e.Face)
			}
		}
		if !slices.Equal(faces, []string{tool.shows}) {
			h.T.Errorf("%s shows %q, want %s", tool.name, faces, tool.shows)
		}
	}
	if tool.says != "" {
		saw(tool.says, appliancetest.Shows(tool.says))
	}
	saw("the answer", appliancetest.Shows("That is done."))
	if tool.keeps != "" {
		var kept []struct{ Key, Type, Body, Description string }
		h.Admin(http.MethodGet, "/api/v1/memory?type=feedback&q=green", "", &kept)
		if len(kept) != 1 || kept[0].Key != "tea" || kept[0].Body != tool.keeps || kept[0].Description != "what Ann drinks" {
			h.T.Errorf("there is kept %v", kept)
		}
	}
}

// TestGesturesOfAvatarPrograms checks that a model can make a gesture that only the words of a relay name, and
// that the error for an unknown gesture lists the names.
func TestGesturesOfAvatarPrograms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"backflip": `{"ok":true}`, "somersault": "idle, backflip"} {
		model := &toolCaller{tool: "play_clip", args: `{"name":"` + name + `"}`}
		c := appliancetest.Config()
		c.Brains = []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: model.serve(t), Model: "m"})}
		c.Relays = config.Relays{{Kind: "webhook", URL: "http://127.0.0.1:9/", Words: map[string]string{"gesture.backflip": "Flip"}}}
		h := appliancetest.Start(t, c, t.TempDir())
		s, err := agent.AnswerText(t.Context(), h.Mind, agent.Turn{Conversation: "c", Text: "go"}, func(agent.Reply) error { return nil })
		if err != nil || !strings.Contains(s.Text, want) { // the model repeats the result of the tool
			t.Errorf("%s: %q, %v", name, s.Text, err)
		}
	}
}

// TestACodingAgentTurnsTheHeadAndSetsATimer checks that a coding agent (ACP, Agent Client Protocol) calls several
// tools in one turn, over the MCP server that Perch offers to it.
func TestACodingAgentTurnsTheHeadAndSetsATimer(t *testing.T) {
	t.Parallel()
	driver := toolDrivers(t)["acp"]
	c := appliancetest.Config()
	c.Brains, c.Mood = []config.Engine{driver.brain}, "off"
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	r := h.StartCompanion(simrobot.Options{})
	h.WaitForTools(r.ID())
	const words = `self_robot_set_head_angles {"yaw":-40,"pitch":20} then self_robot_get_head_angles {} then ` +
		`set_timer {"seconds":600,"text":"The tea is ready."}`
	must.Succeed(t, h.Talk.InjectText(t.Context(), r.ID(), words))
	h.Await(r, "its head turns", appliancetest.HeadAt(-40, 20))
	var timers []struct {
		Robot device.ID
		Text  string
		Due   time.Time
	}
	h.Eventually("there is a timer", func() bool {
		h.Admin(http.MethodGet, "/api/v1/timers", "", &timers)
		return len(timers) > 0
	})
	if left := time.Until(timers[0].Due); len(timers) != 1 || timers[0].Robot != r.ID() || timers[0].Text != "The tea is ready." ||
		left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("there are %v", timers)
	}
	h.Await(r, "it says so", appliancetest.Entered(simrobot.Speaking))
	if got := driver.used().Answers; len(got) != 3 || got[1] != `{"yaw":-40,"pitch":20}` || !strings.HasPrefix(got[2], "Set. It rings at ") {
		t.Errorf("it is answered %q", got)
	}
}

// TestAProgramMovesARobotOverMCP checks that a program with the skins' key can call a robot's own tools at /mcp.
func TestAProgramMovesARobotOverMCP(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	r := h.StartCompanion(simrobot.Options{})
	h.WaitForTools(r.ID())
	client, err := mcp.New(mcp.Options{Name: "perch", URL: h.URL("/mcp"), Key: appliancetest.Key, Log: slog.New(slog.DiscardHandler)})
	must.Succeed(t, err)
	defer client.Close()
	const head = "perch.a0b1c2d3e4f5_robot_set_head_angles"
	tools := client.Tools(t.Context())
	if !slices.ContainsFunc(tools, func(t thinker.Tool) bool { return t.Name == head }) {
		t.Fatalf("it is offered %v", tools)
	}
	if answer, err := client.Call(t.Context(), head, json.RawMessage(`{"yaw":-40,"pitch":90}`)); err != nil || answer != "true" {
		t.Errorf("%q, %v", answer, err)
	}
	if _, err := client.Call(t.Context(), head, json.RawMessage(`{"yaw":"left"}`)); err == nil {
		t.Error("an angle is no word")
	}
	h.Await(r, "its head turns", appliancetest.HeadAt(-40, 85))
}
