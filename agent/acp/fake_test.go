package acp_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/waittest"
)

// TestMain runs the fake agent instead of the tests if the environment has FAKE_AGENT: the
// tests start the test binary as their agent. FAKE_AGENT is the mode of the fake.
func TestMain(m *testing.M) {
	if mode := os.Getenv("FAKE_AGENT"); mode != "" {
		newFake(mode).run()
		return
	}
	goleak.VerifyTestMain(m)
}

// fake is an agent that performs the steps in the text of the prompt, which are separated by
// semicolons (see script.step).
type fake struct {
	mode, dir string

	mu       sync.Mutex
	asked    int
	answers  map[int]chan string // responses to the fake's requests; key: request ID
	cancel   map[string]chan struct{}
	sessions int
	prompts  map[string]int
}

func newFake(mode string) *fake {
	return &fake{mode: mode, dir: os.Getenv("FAKE_DIR"),
		answers: map[int]chan string{}, cancel: map[string]chan struct{}{}, prompts: map[string]int{}}
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (f *fake) run() {
	_ = os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("pid-%d", os.Getpid())), []byte("agent"), 0o600)
	fmt.Fprintln(os.Stderr, "last words of the fake, with key "+os.Getenv("FAKE_KEY"))
	switch f.mode {
	case "exit":
		os.Exit(3)
	case "mute":
		time.Sleep(time.Hour)
	}
	log, err := os.OpenFile(filepath.Join(f.dir, "heard"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		_, _ = log.Write(line)
		var m rpc
		if json.Unmarshal(line, &m) != nil {
			panic("the client writes garbage")
		}
		f.take(m)
		if f.mode == "deaf" && m.Method == "session/prompt" {
			time.Sleep(time.Hour)
		}
	}
}

// await waits until the test has created the file with this name (see processDir.make).
func (f *fake) await(name string) {
	waittest.Until(time.Hour, func() bool { _, err := os.Stat(filepath.Join(f.dir, name)); return err == nil })
}

func (f *fake) write(v any) {
	text, _ := json.Marshal(v)
	f.raw(append(text, '\n'))
}

func (f *fake) raw(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = os.Stdout.Write(b)
}

type object = map[string]any

func (f *fake) result(id json.RawMessage, result any) {
	f.write(object{"jsonrpc": "2.0", "result": result, "id": id})
}

func (f *fake) fail(id json.RawMessage, code int, message string) {
	f.write(object{"jsonrpc": "2.0", "error": object{"code": code, "message": message}, "id": id})
}

func (f *fake) take(m rpc) {
	var p struct {
		ID     string          `json:"sessionId"`
		Old    string          `json:"session_id"`
		Prompt json.RawMessage `json:"prompt"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if p.ID == "" {
		p.ID = p.Old
	}
	switch {
	case m.Method == "initialize":
		f.initialize(m)
	case m.Method == "session/new":
		f.open(m)
	case m.Method == "session/prompt":
		words, blocks := promptWords(p.Prompt)
		stop := make(chan struct{})
		f.mu.Lock()
		f.cancel[p.ID] = stop
		f.prompts[p.ID]++
		f.mu.Unlock()
		s := &script{fake: f, id: m.ID, session: p.ID, stop: stop, blocks: blocks}
		go s.run(words)
	case m.Method == "session/cancel":
		f.mu.Lock()
		if stop := f.cancel[p.ID]; stop != nil {
			close(stop)
			delete(f.cancel, p.ID)
		}
		f.mu.Unlock()
	case m.Method == "session/stop" || m.Method == "session/close":
		f.result(m.ID, object{})
	case m.Method == "":
		n, _ := strconv.Atoi(string(m.ID))
		f.mu.Lock()
		answer := f.answers[n]
		f.mu.Unlock()
		if answer != nil {
			answer <- string(m.Result) + string(m.Error)
		}
	}
}

// promptWords returns the text of the last block that has one, and the number of blocks. For a
// prompt of the older dialect, which is a string, it returns the last line and 0.
func promptWords(prompt json.RawMessage) (string, int) {
	var blocks []struct{ Text string }
	if json.Unmarshal(prompt, &blocks) == nil {
		words := ""
		for _, b := range blocks {
			words = cmp.Or(b.Text, words)
		}
		return words, len(blocks)
	}
	var words string
	_ = json.Unmarshal(prompt, &words)
	return words[strings.LastIndexByte(words, '\n')+1:], 0
}

func (f *fake) initialize(m rpc) {
	switch f.mode {
	case "slow start":
		f.await("go")
	case "refuses":
		f.fail(m.ID, -32603, "the disk is full, and the key is "+os.Getenv("FAKE_KEY"))
		return
	case "version 2":
		f.result(m.ID, object{"protocolVersion": 2})
		return
	case "old":
		f.result(m.ID, object{"name": "zeroclaw"})
		return
	}
	can := object{"sessionCapabilities": object{"close": object{}}}
	switch f.mode {
	case "tools":
		can["mcpCapabilities"] = object{"http": true, "sse": true}
	case "eyes":
		can["promptCapabilities"] = object{"image": true}
	}
	f.result(m.ID, object{"protocolVersion": 1, "agentCapabilities": can})
}

func (f *fake) open(m rpc) {
	switch f.mode {
	case "login":
		f.fail(m.ID, -32000, "Authentication required")
		return
	case "no session":
		f.fail(m.ID, -32603, "pi is not installed, and the key is "+os.Getenv("FAKE_KEY"))
		return
	case "slow session":
		f.await("go")
	case "one session":
		if f.sessions == 1 {
			f.sessions++
			f.fail(m.ID, -32603, "too many sessions")
			return
		}
	}
	f.sessions++
	id := fmt.Sprintf("s%d", f.sessions)
	// An agent may send notifications about a session before the response that opens it.
	f.update(id, object{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
	if f.mode == "old" {
		f.result(m.ID, object{"session_id": id})
		return
	}
	f.result(m.ID, object{"sessionId": id, "modes": nil})
}

func (f *fake) update(session string, update object) {
	f.write(updated(session, update))
}

func updated(session string, update object) object {
	return object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": session, "update": update}}
}

func chunk(session, kind, words string) object {
	return updated(session, object{"sessionUpdate": kind, "content": object{"type": "text", "text": words}})
}

// script is the execution of one prompt.
type script struct {
	*fake
	id      json.RawMessage
	session string
	stop    chan struct{}
	blocks  int
	reason  string
}

func (s *script) run(words string) {
	s.reason = "end_turn"
	for step := range strings.SplitSeq(words, ";") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		if !s.step(verb, rest) {
			return
		}
		select {
		case <-s.stop:
			s.result(s.id, object{"stopReason": "cancelled"})
			return
		default:
		}
	}
	if s.mode == "old" {
		s.result(s.id, object{"content": "😊 All at once."})
		return
	}
	s.result(s.id, object{"stopReason": s.reason})
}

// step performs one step and reports whether the script continues.
func (s *script) step(verb, rest string) bool {
	switch verb {
	case "say":
		s.write(chunk(s.session, "agent_message_chunk", rest))
	case "words":
		for w := range strings.FieldsSeq(rest) {
			s.write(chunk(s.session, "agent_message_chunk", w+" "))
		}
	case "inner":
		s.update(s.session, object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": rest},
			"_meta": object{"claudeCode": object{"parentToolUseId": "t"}}})
	case "think":
		s.write(chunk(s.session, "agent_thought_chunk", rest))
	case "plan":
		var entries []any
		for entry := range strings.SplitSeq(rest, ",") {
			status, step, _ := strings.Cut(entry, " ")
			entries = append(entries, object{"status": status, "content": step, "priority": "medium"})
		}
		s.update(s.session, object{"sessionUpdate": "plan", "entries": entries})
	case "garbage":
		s.raw([]byte("Starting up...\n\x00\xff\xfe\n{\n[]\nnull\n\"x\"\n{\"jsonrpc\":\"2.0\"}\n{\"id\":99999,\"result\":{}}\n\n\r\n"))
		s.raw(append(bytes.Repeat([]byte("x"), 9<<20), '\n'))
		s.update(s.session, object{"sessionUpdate": "from_the_future", "content": 7})
		s.update(s.session, object{"sessionUpdate": "plan", "entries": []any{}})
		s.update("another", object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "not yours"}})
	case "tool":
		f := strings.SplitN(rest, " ", 4)
		u := object{"sessionUpdate": "tool_call_update", "toolCallId": f[0], "kind": f[1], "status": f[2]}
		if len(f) > 3 {
			u["sessionUpdate"], u["title"] = "tool_call", f[3]
		}
		s.update(s.session, u)
	case "named": // a tool with its name in the metadata of claude-agent-acp
		id, name, _ := strings.Cut(rest, " ")
		s.update(s.session, object{"sessionUpdate": "tool_call", "toolCallId": id, "kind": "other", "status": "pending",
			"title": name, "_meta": object{"claudeCode": object{"toolName": name}}})
	case "agent":
		s.update(s.session, object{"sessionUpdate": "tool_call", "toolCallId": rest, "kind": "think", "status": "in_progress",
			"title": "Look around", "_meta": object{"claudeCode": object{"toolName": "Task"}}})
	case "ask", "askforever", "asktwice", "oldask", "fs":
		s.request(verb, rest)
	case "event":
		var params object
		_ = json.Unmarshal([]byte(rest), &params)
		params["session_id"] = s.session
		s.write(object{"jsonrpc": "2.0", "method": "session/event", "params": params})
	case "wait": // waits for session/cancel, and then for a file if rest names one
		<-s.stop
		if rest != "" {
			s.await(rest)
		}
	case "await":
		s.await(rest)
	case "hang":
		return false
	case "die":
		os.Exit(4)
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "shut":
		_ = os.Stdout.Close()
		return false
	case "half":
		text, _ := json.Marshal(chunk(s.session, "agent_message_chunk", rest))
		s.raw(text[:len(text)/2])
		os.Exit(0)
	case "stop":
		s.reason = rest
	case "fail":
		code, message, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(code)
		s.fail(s.id, n, message)
		return false
	case "forgetfirst":
		if s.session == "s1" {
			s.fail(s.id, -32000, "Session not found: s1")
			return false
		}
	case "where":
		s.mu.Lock()
		n := s.prompts[s.session]
		s.mu.Unlock()
		s.write(chunk(s.session, "agent_message_chunk", fmt.Sprintf("Session %s turn %d blocks %d.", s.session, n, s.blocks)))
	case "spawn":
		cmd := exec.Command("sleep", "300")
		_ = cmd.Start()
		_ = os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("pid-%d", cmd.Process.Pid)), nil, 0o600)
	case "flood":
		n, _ := strconv.Atoi(rest)
		for range n {
			s.write(object{"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": object{}})
		}
	case "repeat": // writes text until session/cancel
		for {
			select {
			case <-s.stop:
				return true
			default:
				s.write(chunk(s.session, "agent_message_chunk", rest+" "))
			}
		}
	case "shout", "muse":
		n, _ := strconv.Atoi(rest)
		for range n {
			s.write(chunk(s.session, map[string]string{"shout": "agent_message_chunk", "muse": "agent_thought_chunk"}[verb],
				strings.Repeat("word ", 2000)))
		}
	}
	return true
}

// request sends requests to the client, waits for the responses, and writes them as text.
func (s *script) request(verb, rest string) {
	f := strings.SplitN(rest+"  ", " ", 3)
	id, kind, title := f[0], f[1], strings.TrimSpace(f[2])
	params := object{"sessionId": s.session, "toolCall": object{"toolCallId": id, "kind": kind, "title": title}}
	method := "session/request_permission"
	options := []object{
		{"optionId": "always", "name": "Always", "kind": "allow_always"}, {"optionId": "once", "name": "Allow", "kind": "allow_once"},
		{"optionId": "never", "name": "Never", "kind": "reject_always"}, {"optionId": "no", "name": "Reject", "kind": "reject_once"},
	}
	if kind == "-" {
		params["toolCall"] = object{"toolCallId": id}
	}
	switch verb {
	case "askforever":
		options = append(options[:1], options[3])
	case "oldask":
		params = object{"session_id": s.session, "toolName": rest}
		options = nil
	case "fs":
		method, params, options = "fs/read_text_file", object{"path": "/etc/passwd"}, nil
	}
	if options != nil {
		params["options"] = options
	}
	times := 1
	if verb == "asktwice" {
		times = 2
	}
	var waits []chan string
	for range times {
		s.mu.Lock()
		s.asked++
		n, answer := s.asked, make(chan string, 1)
		s.answers[n] = answer
		s.mu.Unlock()
		s.write(object{"jsonrpc": "2.0", "id": n, "method": method, "params": params})
		waits = append(waits, answer)
	}
	for _, answer := range waits {
		came := <-answer
		s.write(chunk(s.session, "agent_message_chunk", "Answer "+strings.NewReplacer("{", "", "}", "", `"`, "", ":", " ", ",", " ").Replace(
			came)+". "))
	}
}

// processDir is the folder in which the agents of a test write what they have received, and a
// file for each process.
type processDir struct {
	t   *testing.T
	dir string
}

func (h processDir) received() string {
	text, _ := os.ReadFile(filepath.Join(h.dir, "heard"))
	return string(text)
}

// make creates a file that the agent waits for.
func (h processDir) make(name string) {
	h.t.Helper()
	must.Succeed(h.t, os.WriteFile(filepath.Join(h.dir, name), nil, 0o600))
}

// pids returns the IDs of all processes that the test's agents have reported.
func (h processDir) pids() (pids []int) {
	found, _ := filepath.Glob(filepath.Join(h.dir, "pid-*"))
	for _, name := range found {
		pid, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), "pid-"))
		pids = append(pids, pid)
	}
	return pids
}

// empty fails the test if any of the processes still runs. Agents must have ended; processes
// that they have started get two seconds to end.
func (h processDir) empty() {
	h.t.Helper()
	for _, pid := range h.pids() {
		what, _ := os.ReadFile(filepath.Join(h.dir, fmt.Sprintf("pid-%d", pid)))
		if string(what) == "agent" && !waittest.Dead(pid) || !waittest.Until(2*time.Second, func() bool { return waittest.Dead(pid) }) {
			h.t.Errorf("process %d (%s) is still there", pid, what)
		}
	}
}
