package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install runs the command and returns what it says.
func install(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"hooks", "install"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return file
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hooked are the hooks of a block, by event: their URL or command.
func hooked(t *testing.T, text string) map[string][]string {
	t.Helper()
	var s struct {
		Hooks map[string][]struct {
			Hooks []struct{ Type, URL, Command string }
		}
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	all := map[string][]string{}
	for event, groups := range s.Hooks {
		for _, g := range groups {
			for _, h := range g.Hooks {
				all[event] = append(all[event], h.URL+h.Command)
			}
		}
	}
	return all
}

// TestBlock: what is printed, for an appliance on this machine and for another.
func TestBlock(t *testing.T) {
	key := written(t, "my key", "sesame-opens\n")
	code, out, _ := install(t, "claude", "--url", "http://127.0.0.1:23333/", "--key-file", key)
	all := hooked(t, out)
	if code != 0 || all["PreToolUse"][0] != "http://127.0.0.1:23333/state?by=perch-tools" || all["PermissionRequest"][0] != "http://127.0.0.1:23333/permission?by=perch-tools" ||
		all["SessionStart"] != nil || all["WorktreeCreate"] != nil || strings.Count(out, `"Authorization": "Bearer sesame-opens"`) != len(all) {
		t.Errorf("%d %s", code, out)
	}
	code, out, _ = install(t, "--url", "http://perch.local:8003", "claude", "--key-file", key)
	all = hooked(t, out)
	want := " hooks send state --url http://perch.local:8003 --key-file '" + key + "' # by=perch-tools"
	if code != 0 || !strings.HasSuffix(all["SessionStart"][0], want) || strings.Contains(out, "sesame") || !strings.Contains(all["PermissionRequest"][0], "hooks send permission") {
		t.Errorf("%d %s\nwant %s", code, out, want)
	}
	for _, wrong := range [][]string{{}, {"emacs"}, {"claude", "codex"}, {"claude", "--url", "perch.local"}, {"claude", "--url", "ftp://x"}, {"claude", "--nope"}} {
		if code, _, says := install(t, wrong...); code != 2 || strings.Count(says, "\n") != 1 {
			t.Errorf("%q: %d %s", wrong, code, says)
		}
	}
	if code, _, says := install(t, "claude", "--key-file", written(t, "k", "two words")); code != 1 || !strings.Contains(says, "holds no key") {
		t.Errorf("%d %s", code, says)
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

// TestMerge: the user's own settings stay as they are; a backup holds what was;
// a second time changes nothing, and another address takes the first's place.
func TestMerge(t *testing.T) {
	file := written(t, "settings.json", theirs)
	args := []string{"claude", "--write", "--settings", file, "--url", "http://127.0.0.1:8004"}
	code, out, says := install(t, args...)
	text := content(t, file)
	if code != 0 || says != "" || !strings.Contains(out, ".bak") {
		t.Fatalf("%d %s %s", code, out, says)
	}
	for _, kept := range []string{`"Bash(a && b)"`, `"x<y"`, "12345678901234567890", "1.50", `"echo '<&>'"`, `"Custom": []`, `"odd": 1`, `"http://other/state"`, `"zebra": null`} {
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
	if code, out, _ := install(t, args...); code != 0 || !strings.Contains(out, "already") || content(t, file) != text {
		t.Errorf("a second time: %d %s", code, out)
	}
	if code, _, _ := install(t, "claude", "--write", "--settings", file, "--url", "http://perch.local:8003"); code != 0 {
		t.Error(code)
	}
	text = content(t, file)
	if all := hooked(t, text); len(all["PreToolUse"]) != 2 || strings.Contains(text, "127.0.0.1") || len(all["SessionStart"]) != 1 {
		t.Errorf("with another address the hooks are %v", all)
	}
	if code, _, _ := install(t, args...); code != 0 || hooked(t, content(t, file))["SessionStart"] != nil {
		t.Errorf("an event that is no longer told is still there: %s", content(t, file))
	}
}

// TestMergeIntoNothing: settings that are not there are made, for nobody else to
// read.
func TestMergeIntoNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "of", "claude")
	t.Setenv("CLAUDE_CONFIG_DIR", dir)
	code, out, says := install(t, "claude", "--write")
	file := filepath.Join(dir, "settings.json")
	about, err := os.Stat(file)
	if code != 0 || err != nil || about.Mode().Perm() != 0o600 || strings.Contains(out, "bak") || says != "" {
		t.Fatalf("%d %s %s %v", code, out, says, err)
	}
	if all := hooked(t, content(t, file)); all["Stop"][0] != keyless+"/state?by=perch-tools" {
		t.Errorf("hooks are %v", all)
	}
	link := filepath.Join(t.TempDir(), "settings.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := install(t, "claude", "--write", "--settings", link, "--url", "http://127.0.0.1:3000"); code != 0 {
		t.Error(code)
	}
	if about, err := os.Lstat(link); err != nil || about.Mode()&os.ModeSymlink == 0 || !strings.Contains(content(t, file), ":3000") {
		t.Errorf("the link is %v, %v", about.Mode(), err)
	}
}

// TestNotMerged: what cannot be read is left alone, byte by byte.
func TestNotMerged(t *testing.T) {
	for _, text := range []string{`{"a": 1, // a comment` + "\n}", `{"hooks": []}`, `{"hooks": {"Stop": {}}}`, `{"hooks": {"Stop": [1]}}`, `[]`, `{"a":1}{}`, `null`,
		`{"x":"` + strings.Repeat("x", mostSettings) + `"}`} {
		file := written(t, "settings.json", text)
		code, _, says := install(t, "claude", "--write", "--settings", file)
		if code != 1 || content(t, file) != text || len(says) > 600 || strings.Count(says, "\n") != 1 {
			t.Errorf("%.40s: %d %.600s", text, code, says)
		}
		if all, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(all) != 1 {
			t.Errorf("%.40s: left behind are %q", text, all)
		}
	}
	_, _, says := install(t, "claude", "--write", "--settings", written(t, "settings.json", `{"disableAllHooks":true}`))
	if !strings.Contains(says, "disableAllHooks") {
		t.Errorf("nobody is told: %s", says)
	}
}

// TestSend: a hook passes on what it is told, and never says no on its own.
func TestSend(t *testing.T) {
	var got []string
	reply := ""
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	defer server.Close()
	send := func(body string, words ...string) string {
		t.Helper()
		f, err := parseHooks("send", append(words, "--url", server.URL, "--key-file", written(t, "key", "sesame")), io.Discard)
		if err != nil {
			return err.Error()
		}
		var out bytes.Buffer
		if err := sendHook(t.Context(), f, strings.NewReader(body), &out); err != nil {
			return err.Error()
		}
		return out.String()
	}
	const told = `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"my secret","tool_input":{"content":"x"}}`
	if out := send(told, "state"); out != "" || got[0] != `/state Bearer sesame application/json {"hook_event_name":"UserPromptSubmit","session_id":"s"}` {
		t.Errorf("%q, sent %q", out, got)
	}
	reply = `{"hookSpecificOutput":{}}`
	if out := send(told, "permission"); out != reply || got[1] != "/permission Bearer sesame application/json "+told {
		t.Errorf("%q, sent %q", out, got)
	}
	if out := send(told, "state"); out != "" {
		t.Errorf("an agent is told %q", out)
	}
	status, reply = http.StatusUnauthorized, `{"error":{"code":"wrong_key","message":"a bearer token is needed"}}`
	if out := send(told, "permission"); out != "the appliance answered 401 Unauthorized: a bearer token is needed" {
		t.Errorf("%q", out)
	}
	if out := send(strings.Repeat("x", mostHook+1), "permission"); !strings.Contains(out, "more than") {
		t.Errorf("%q", out)
	}
	for _, wrong := range [][]string{{}, {"nothing"}, {"state", "--nope"}, {"state", "--url", "x"}, {"state", "--key-file", "/nowhere"}} {
		var out, says bytes.Buffer
		if code := run(t.Context(), append([]string{"hooks", "send"}, wrong...), &out, &says); code != 0 || out.Len() > 0 || says.Len() == 0 {
			t.Errorf("%q: %d %s %s", wrong, code, out.String(), says.String())
		}
	}
}

// FuzzMerge: whatever the settings are, ours are in them afterwards, once, or
// nothing is changed.
func FuzzMerge(f *testing.F) {
	for _, text := range []string{theirs, `{}`, `{"hooks":{}}`, `{"hooks":{"Stop":[{"hooks":[{"url":"x?by=perch-tools"},{"command":"y"}]}]}}`, `{"hooks":null}`} {
		f.Add([]byte(text))
	}
	flags, err := parseHooks("install", nil, io.Discard)
	if err != nil {
		f.Fatal(err)
	}
	block := flags.block("perch-tools")
	f.Fuzz(func(t *testing.T, text []byte) {
		var settings object
		if json.Unmarshal(text, &settings) != nil {
			return
		}
		once, err := merged(settings, block)
		if err != nil {
			return
		}
		var again object
		if err := json.Unmarshal(once.pretty(), &again); err != nil {
			t.Fatalf("%s: %v", once.text(), err)
		}
		twice, err := merged(again, block)
		if err != nil || !same(once.text(), twice.text()) {
			t.Fatalf("%s became %s, %v", once.text(), twice.text(), err)
		}
		if strings.Count(string(once.text()), "/permission?"+mark) < 1 || len(once) < len(settings) {
			t.Fatalf("%s became %s", text, once.text())
		}
	})
}
