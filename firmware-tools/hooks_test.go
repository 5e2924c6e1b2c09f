package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/limit"
	"perch/must"
)

func install(args ...string) (code int, stdout, stderr string) {
	return tools(append([]string{"hooks", "install"}, args...)...)
}

func content(t *testing.T, file string) string {
	t.Helper()
	text := must.Value(os.ReadFile(file))(t)
	return string(text)
}

type hook struct {
	Type, Command string
	Timeout       int
}

// hooked returns the hooks in a settings file with the content text. The key is the event.
func hooked(t *testing.T, text string) map[string][]hook {
	t.Helper()
	var s struct {
		Hooks map[string][]struct{ Hooks []hook }
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	all := map[string][]hook{}
	for event, groups := range s.Hooks {
		for _, g := range groups {
			all[event] = append(all[event], g.Hooks...)
		}
	}
	return all
}

// TestPrintedHooks checks the hooks that hooks install prints. They are commands, because Claude Code
// would show an error at each event if a hook that sends HTTP itself cannot reach the appliance.
func TestPrintedHooks(t *testing.T) {
	key := writeFile(t, "my key", []byte("sesame-opens\n"))
	for _, url := range []string{"http://127.0.0.1:23333/", "http://perch.local:8003"} {
		code, out, _ := install("--url", url, "claude", "--key-file", key)
		all := hooked(t, out)
		want := " --url " + strings.TrimSuffix(url, "/") + " --key-file '" + key + "' # by=perch-tools"
		if code != 0 || strings.Contains(out, "sesame") || strings.Contains(out, `"http"`) || all["WorktreeCreate"] != nil || len(all) != 13 {
			t.Fatalf("%d %s", code, out)
		}
		for event, commands := range all {
			what := " hooks send state"
			if event == "PermissionRequest" {
				what = " hooks send permission"
			}
			if len(commands) != 1 || !strings.HasSuffix(commands[0].Command, what+want) {
				t.Errorf("%s: %+v, want %s", event, commands, what+want)
			}
		}
	}
	for _, wrong := range [][]string{{}, {"emacs"}, {"claude", "codex"}, {"claude", "--url", "perch.local"}, {"claude", "--url", "ftp://x"},
		{"claude", "--nope"}} {
		check(t, "hooks install", call{wrong, 2, ""})
	}
	check(t, "hooks install claude --key-file", call{[]string{writeFile(t, "k", []byte("two words"))}, 1, "does not hold a key"})
}

// TestCodexHooks checks the hooks for Codex. All are commands, because Codex rejects a file that
// contains other hooks.
func TestCodexHooks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "codex")
	t.Setenv("CODEX_HOME", dir)
	code, out, errs := install("codex", "--write")
	file := filepath.Join(dir, "hooks.json")
	if code != 0 || errs != "" || !strings.Contains(out, file) || !strings.Contains(out, "/hooks") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	text := content(t, file)
	if strings.Count(text, "\n  \"") != 1 {
		t.Errorf("it has other members: %s", text)
	}
	all := hooked(t, text)
	for event, hooks := range all {
		h := hooks[0]
		if len(hooks) != 1 || h.Type != "command" || !strings.Contains(h.Command, " --agent codex ") {
			t.Errorf("%s: %+v", event, hooks)
		}
		if ends := event == "SessionEnd" || event == "Interrupt"; ends && h.Timeout > 3 || event == "PermissionRequest" && h.Timeout < 61 {
			t.Errorf("%s waits for %d s", event, h.Timeout)
		}
		if event != "PermissionRequest" && time.Duration(h.Timeout)*time.Second <= stateWithin {
			t.Errorf("%s is killed after %d s, before its request ends after %s", event, h.Timeout, stateWithin)
		}
	}
	if got := strings.Join(slices.Sorted(maps.Keys(all)), " "); got != "Interrupt PermissionRequest PostToolUse PreCompact PreToolUse "+
		"SessionEnd SessionStart Stop SubagentStart SubagentStop UserPromptSubmit" {
		t.Errorf("events are %s", got)
	}
	t.Setenv("CODEX_HOME", "")
	t.Setenv("HOME", dir)
	if code, out, _ := install("codex", "--write"); code != 0 || !strings.Contains(out, filepath.Join(dir, ".codex", "hooks.json")) {
		t.Errorf("%d %s", code, out)
	}
}

func TestRemoveHooks(t *testing.T) {
	for name, before := range map[string]string{"settings of theirs": theirs, "none": `{"model": "x"}`, "empty ones": `{"hooks": {}}`} {
		file := writeFile(t, "settings.json", []byte(before))
		if code, _, errs := install("claude", "--write", "--settings", file); code != 0 {
			t.Fatal(errs)
		}
		want := before
		if name == "empty ones" {
			want = `{}`
		}
		check(t, "hooks remove claude --settings "+file, call{nil, 0, ".bak"}, call{nil, 0, "has none of Perch's hooks\n"})
		if !equalJSON([]byte(content(t, file)), []byte(want)) {
			t.Errorf("%s: %s", name, content(t, file))
		}
	}
	missing := filepath.Join(t.TempDir(), "settings.json")
	check(t, "hooks remove claude --settings "+missing, call{nil, 0, "none of Perch's"})
	if _, err := os.Stat(missing); err == nil {
		t.Error("it is written")
	}
	for _, wrong := range [][]string{{}, {"emacs"}, {"claude", "codex"}, {"claude", "--url", "http://x"}} {
		check(t, "hooks remove", call{wrong, 2, ""})
	}
}

const theirs = `{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "permissions": {"allow": ["Bash(a && b)", "x<y"], "big": 12345678901234567890, "exact": 1.50},
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "odd": 1, "hooks": [{"type": "command", "command": "echo '<&>'"}]}],
    "Custom": [],
    "Stop": [{"hooks": [{"type": "http", "url": "http://other/state"}]}]
  },
  "zebra": null, "apple": true
}`

func TestMergeHooksKeepsOwnSettings(t *testing.T) {
	file := writeFile(t, "settings.json", []byte(theirs))
	args := []string{"claude", "--write", "--settings", file, "--url", "http://127.0.0.1:8004"}
	code, out, errs := install(args...)
	text := content(t, file)
	if code != 0 || errs != "" || !strings.Contains(out, ".bak") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	for _, kept := range []string{`"Bash(a && b)"`, `"x<y"`, "12345678901234567890", "1.50", `"echo '<&>'"`, `"Custom": []`, `"odd": 1`,
		`"http://other/state"`, `"zebra": null`} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is lost in %s", kept, text)
		}
	}
	if strings.Index(text, `"zebra"`) > strings.Index(text, `"apple"`) || strings.Index(text, `"$schema"`) > strings.Index(text, `"permissions"`) {
		t.Errorf("the order is another: %s", text)
	}
	backups, err := filepath.Glob(file + ".*.bak")
	if err != nil || len(backups) != 1 || content(t, backups[0]) != theirs {
		t.Errorf("backups are %q, %v", backups, err)
	}
	for _, f := range []string{file, backups[0]} {
		if about, err := os.Stat(f); err != nil || about.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", f, about.Mode(), err)
		}
	}
	if all := hooked(t, text); len(all["PreToolUse"]) != 2 || len(all["Stop"]) != 2 || len(all["PermissionRequest"]) != 1 {
		t.Errorf("hooks are %v", all)
	}
	if code, out, _ := install(args...); code != 0 || !strings.Contains(out, "already") || content(t, file) != text {
		t.Errorf("a second time: %d %s", code, out)
	}
	if code, _, notes := install("claude", "--write", "--settings", file, "--url", "http://perch.local:8003"); code != 0 ||
		!strings.Contains(notes, "--key-file") {
		t.Error(code)
	}
	text = content(t, file)
	if all := hooked(t, text); len(all["PreToolUse"]) != 2 || strings.Contains(text, "127.0.0.1") || len(all["SessionStart"]) != 1 {
		t.Errorf("with another address the hooks are %v", all)
	}
}

func TestMergeCreatesPrivateSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "of", "claude")
	t.Setenv("CLAUDE_CONFIG_DIR", dir)
	code, out, errs := install("claude", "--write")
	file := filepath.Join(dir, "settings.json")
	about, err := os.Stat(file)
	if code != 0 || err != nil || about.Mode().Perm() != 0o600 || strings.Contains(out, "bak") || errs != "" {
		t.Fatalf("%d %s %s %v", code, out, errs, err)
	}
	if all := hooked(t, content(t, file)); !strings.Contains(all["Stop"][0].Command, " hooks send state --url "+localURL) {
		t.Errorf("hooks are %v", all)
	}
	link := filepath.Join(t.TempDir(), "settings.json")
	must.Succeed(t, os.Symlink(file, link))
	if code, _, _ := install("claude", "--write", "--settings", link, "--url", "http://127.0.0.1:3000"); code != 0 {
		t.Error(code)
	}
	if about, err := os.Lstat(link); err != nil || about.Mode()&os.ModeSymlink == 0 || !strings.Contains(content(t, file), ":3000") {
		t.Errorf("the link is %v, %v", about.Mode(), err)
	}
}

func TestMergeLeavesInvalidSettings(t *testing.T) {
	for _, text := range []string{`{"a": 1, // a comment` + "\n}", `{"hooks": []}`, `{"hooks": {"Stop": {}}}`, `{"hooks": {"Stop": [1]}}`, `[]`,
		`{"a":1}{}`, `null`,
		`{"x":"` + strings.Repeat("x", limit.Message) + `"}`} {
		file := writeFile(t, "settings.json", []byte(text))
		code, _, errs := install("claude", "--write", "--settings", file)
		if code != 1 || content(t, file) != text || len(errs) > 600 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%.40s: %d %.600s", text, code, errs)
		}
		if all, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(all) != 1 {
			t.Errorf("%.40s: left behind are %q", text, all)
		}
	}
	_, _, errs := install("claude", "--write", "--settings", writeFile(t, "settings.json", []byte(`{"disableAllHooks":true}`)))
	if !strings.Contains(errs, "disableAllHooks") {
		t.Errorf("no note about it: %s", errs)
	}
}

func TestSendHookNeverVetoes(t *testing.T) {
	var got []string
	reply := ""
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	defer server.Close()
	send := func(body string, words ...string) string {
		t.Helper()
		f := &hooksFlags{}
		c := hooksSendCommand(f)
		err := errors.Join(c.ParseFlags(append(words, "--url", server.URL, "--key-file", writeFile(t, "key", []byte("sesame")))), f.prepare())
		if err != nil {
			return err.Error()
		}
		var out bytes.Buffer
		if err := sendHook(t.Context(), f, c.Flags().Args(), strings.NewReader(body), &out); err != nil {
			return err.Error()
		}
		return out.String()
	}
	const input = `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"my secret","tool_input":{"content":"x"}}`
	if out := send(input, "state"); out != "" ||
		got[0] != `/state Bearer sesame application/json {"hook_event_name":"UserPromptSubmit","session_id":"s"}` {
		t.Errorf("%q, sent %q", out, got)
	}
	got = got[:1]
	if out := send(input, "state", "--agent", "codex"); out != "" || !strings.HasPrefix(got[1], "/state?agent=codex Bearer sesame ") {
		t.Errorf("%q, sent %q", out, got)
	}
	got = got[:1]
	reply = `{"hookSpecificOutput":{}}`
	if out := send(input, "permission"); out != reply || got[1] != "/permission Bearer sesame application/json "+input {
		t.Errorf("%q, sent %q", out, got)
	}
	if out := send(input, "state"); out != "" {
		t.Errorf("an agent gets %q", out)
	}
	status, reply = http.StatusUnauthorized, `{"error":{"code":"wrong_key","message":"a bearer token is needed"}}`
	if out := send(input, "permission"); out != "the appliance answered 401 Unauthorized: a bearer token is needed" {
		t.Errorf("%q", out)
	}
	if out := send(strings.Repeat("x", limit.Message+1), "permission"); !strings.Contains(out, "more than") {
		t.Errorf("%q", out)
	}
	for _, wrong := range [][]string{{}, {"nothing"}, {"state", "--nope"}, {"state", "--url", "x"}, {"state", "--key-file", "/nowhere"}} {
		if code, out, errs := tools(append([]string{"hooks", "send"}, wrong...)...); code != 0 || out != "" || errs == "" {
			t.Errorf("%q: %d %s %s", wrong, code, out, errs)
		}
	}
}

func TestBriefSendsNoSecrets(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"npm test","description":"x","timeout":7}`, `{"command":"npm test"}`},
		{"Bash", `{"command":"` + strings.Repeat("é", 2000) + `"}`, `{"command":"` + strings.Repeat("é", 500) + `"}`},
		{"Write", `{"file_path":"/a/b","content":"secret"}`, `{"file_path":"/a/b"}`},
		{"NotebookEdit", `{"notebook_path":"/a/b","new_source":"secret"}`, `{"notebook_path":"/a/b"}`},
		{"WebFetch", `{"url":"https://u:p@example.org/x?key=secret","prompt":"secret"}`, `{"url":"https://example.org"}`},
		{"Task", `{"description":"Find it","prompt":"secret"}`, `{"description":"Find it"}`},
		{"Grep", `{"pattern":"price"}`, `{"pattern":"price"}`},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.js\n@@\n-secret\n+*** Add File: secret\n*** Add File: b.js\n*** End Patch"}`,
			`{"command":"*** Update File: a.js\n*** Add File: b.js\n"}`},
		{"mcp__mail__send", `{"command":"secret","description":"secret"}`, ``},
		{"Bash", `["secret"]`, ``},
		{"Bash", `{"command":{"secret":1}}`, ``},
	} {
		body := `{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"secret","cwd":"secret",` +
			`"tool_name":"` + c.tool + `","tool_use_id":"t1","agent_id":"a1","tool_input":` + c.input + `,"tool_response":"secret"}`
		want := `{"agent_id":"a1","hook_event_name":"PreToolUse","session_id":"s",` +
			`"tool_input":` + c.want + `,"tool_name":"` + c.tool + `","tool_use_id":"t1"}`
		if c.want == "" {
			want = strings.Replace(want, `"tool_input":,`, "", 1)
		}
		if got := string(withoutContent([]byte(body))); got != want {
			t.Errorf("%s: %s\nwant %s", c.tool, got, want)
		}
	}
}

// TestStopsAreSent checks what is sent for the event Stop: the status of background tasks, and
// StopFailure if the transcript ends with an error of the model's API. Nothing else in the input or in
// the transcript is sent.
func TestStopsAreSent(t *testing.T) {
	for name, c := range map[string]struct{ last, want string }{
		"over":              {`{"type":"assistant"}`, `{"background_tasks":[{"status":"running"}],"hook_event_name":"Stop","session_id":"s","stop_hook_active":true}`},
		"after an error":    {`{"type":"assistant","isApiErrorMessage":true}`, `{"background_tasks":[{"status":"running"}],"hook_event_name":"StopFailure","session_id":"s","stop_hook_active":true}`},
		"without an ending": {``, `{"background_tasks":[{"status":"running"}],"hook_event_name":"Stop","session_id":"s","stop_hook_active":true}`},
	} {
		transcript := filepath.Join(t.TempDir(), "t.jsonl")
		must.Succeed(t, os.WriteFile(transcript, []byte(strings.Repeat(`{"type":"user","text":"secret"}`+"\n", 5000)+c.last+"\n"), 0o600))
		body := `{"hook_event_name":"Stop","session_id":"s","transcript_path":"` + transcript + `","stop_hook_active":true,` +
			`"last_assistant_message":"secret","background_tasks":[{"id":"b","command":"secret","status":"running"}]}`
		if got := string(withoutContent([]byte(body))); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// FuzzMerge checks that a second merge of the same hooks changes nothing, and that a merge removes no
// member of the settings.
func FuzzMerge(f *testing.F) {
	for _, text := range []string{theirs, `{}`, `{"hooks":{}}`, `{"hooks":{"Stop":[{"hooks":[{"command":"x # by=perch-tools"},{"command":"y"}]}]}}`,
		`{"hooks":null}`} {
		f.Add([]byte(text))
	}
	flags := &hooksFlags{address: localURL}
	must.Succeed(f, flags.prepare())
	block := flags.block("perch-tools", codingAgents()[0])
	f.Fuzz(func(t *testing.T, text []byte) {
		var settings object
		if json.Unmarshal(text, &settings) != nil {
			return
		}
		once, err := mergeHooks(settings, block)
		if err != nil {
			return
		}
		var again object
		if err := json.Unmarshal(once.pretty(), &again); err != nil {
			t.Fatalf("%s: %v", once.text(), err)
		}
		twice, err := mergeHooks(again, block)
		if err != nil || !equalJSON(once.text(), twice.text()) {
			t.Fatalf("%s became %s, %v", once.text(), twice.text(), err)
		}
		if strings.Count(string(once.text()), "hooks send permission") < 1 || len(once) < len(settings) {
			t.Fatalf("%s became %s", text, once.text())
		}
	})
}
