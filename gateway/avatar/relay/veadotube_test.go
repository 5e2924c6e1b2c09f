package relay

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/must"
)

// fakeVeado is a fake of veadotube mini as its documentation describes the program.
type fakeVeado struct {
	*fake
	mu     sync.Mutex
	states string // states in the response to "list"
	stack  []string
}

func newFakeVeado(t testing.TB, address string) *fakeVeado {
	f := &fakeVeado{stack: []string{"1"},
		states: `[{"id":"1","name":"base","thumbHash":"x"},{"id":"26","name":"Joy"},{"id":"27","name":"Thinking pose"},{"id":"28","name":"sad"}]`}
	f.fake = greetingFake(t, address, func() any {
		return rawText(`instance:{"event":"info","name":"veadotube mini","id":"mini-1","version":"2.1","language":"en","server":"127.0.0.1:2424"}`)
	}, f.reply)
	return f
}

// again starts the program again with its first state.
func (f *fakeVeado) again() {
	f.stack = []string{"1"}
	f.fake.again()
}

func (f *fakeVeado) reply(message []byte) []any {
	text, is := strings.CutPrefix(string(message), "nodes:")
	var m struct {
		Event, Type, ID string
		Payload         struct{ Event, State string }
	}
	if !is || json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m.Event + " " + m.Type + " " + m.ID + " " + m.Payload.Event {
	case "list   ":
		return []any{rawText(`nodes: {"event":"list","entries":[{"type":"boolean","id":"mini","name":"push-to-talk"},` +
			`{"type":"stateEvents","id":"mini","name":"avatar state"}]}` + "\x00")} // some builds append a zero byte
	case "payload stateEvents mini list":
		return []any{rawText(`nodes: {"event":"payload","type":"stateEvents","id":"mini","name":"avatar state","payload":` +
			`{"event":"list","states":` + f.states + `}}`)}
	case "payload stateEvents mini push":
		f.stack = append(f.stack, m.Payload.State)
	case "payload stateEvents mini pop":
		if i := slices.Index(f.stack, m.Payload.State); i >= 0 {
			f.stack = slices.Delete(f.stack, i, i+1)
		}
	}
	return nil
}

// line returns a message, or "" for a request for a list, because these requests are repeated.
func (f *fakeVeado) line(message string) string {
	if strings.Contains(message, `"list"`) {
		return ""
	}
	return strings.TrimSpace(message)
}

func (f *fakeVeado) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.stack, " ")
}

// TestVeadotube tests that veadotube is found by its file, and shows a turn.
func TestVeadotube(t *testing.T) {
	f := newFakeVeado(t, "")
	h := newHarness(t, Target{Kind: "veadotube"})
	h.eventually("none runs", func() bool { return strings.Contains(h.note(), "no veadotube is running") })
	writeInstance(t, h.home, "mini-1", time.Now().Unix(), f.address)
	h.eventually("it is connected", func() bool { return h.relays.List()[0].OK })
	if note := h.note(); note != "" {
		t.Errorf("the note is %q", note)
	}
	if got := f.query(); got != "n=Perch" {
		t.Errorf("it calls itself %q", got)
	}
	h.happens(robotA, "s", turn()[:4]...)
	h.eventually("it thinks", func() bool { return f.seen() == "1 27" })
	h.happens(robotA, "s", turn()[6:]...) // without the tool, because no state of veadotube shows work
	h.eventually("it smiles while it speaks", func() bool { return f.seen() == "1 26" })
	h.happens(robotA, "s", event.TurnEnded{End: event.EndDone}, event.RobotOffline{})
	h.stop()
	h.eventually("nothing is left when Perch has gone", func() bool { return f.seen() == "1" })
	if strings.Index(f.all(), `"pop","state":"27"`) < strings.Index(f.all(), `"push","state":"26"`) {
		t.Errorf("what lies below is seen between two states:\n%s", f.all())
	}
}

// writeInstance writes the file of an instance.
func writeInstance(t testing.TB, home, id string, at int64, server string) {
	t.Helper()
	folder := filepath.Join(home, ".veadotube", "instances")
	must.Succeed(t, os.MkdirAll(folder, 0o700))
	text := fmt.Sprintf(`{"time":%d,"name":"veadotube mini","id":"%s","version":"2.1","language":"en","server":"%s"}`, at, id, server)
	must.Succeed(t, os.WriteFile(filepath.Join(folder, id), []byte(text), 0o600))
}

// TestVeadotubeInstances tests that the newest running instance is used.
func TestVeadotubeInstances(t *testing.T) {
	home := t.TempDir()
	p := veadotube{&programConfig{home: home}}
	now := time.Unix(1739023315, 0)
	look := func() string {
		address, err := p.address(now)
		if err != nil {
			return err.Error()
		}
		return address
	}
	if got := look(); !strings.Contains(got, "no veadotube is running") {
		t.Errorf("without a folder: %s", got)
	}
	writeInstance(t, home, "mini-old", now.Unix()-11, "127.0.0.1:1")
	writeInstance(t, home, "mini-mad", now.Unix()+1000, "127.0.0.1:2")
	folder := filepath.Join(home, ".veadotube", "instances")
	for name, text := range map[string]string{"garbage": "{", "huge": strings.Repeat(" ", limit.Data+1), "list": "[]"} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	if got := look(); !strings.Contains(got, "no veadotube is running") {
		t.Errorf("of those that have gone: %s", got)
	}
	writeInstance(t, home, "mini-off", now.Unix()-9, "")
	if got := look(); !strings.Contains(got, "switched off") {
		t.Errorf("without a server: %s", got)
	}
	writeInstance(t, home, "mini-a", now.Unix()-5, "127.0.0.1:2424")
	writeInstance(t, home, "veado-b", now.Unix()-3, "127.0.0.1:2425")
	if got := look(); got != "ws://127.0.0.1:2425" {
		t.Errorf("of two: %s", got)
	}
}

// TestWithoutHome tests that without a home directory nothing is read from the working directory.
func TestWithoutHome(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Now()
	writeInstance(t, ".", "mini", now.Unix(), "127.0.0.1:2424")
	if at, err := (veadotube{&programConfig{}}).address(now); err == nil || !strings.Contains(err.Error(), "no home") {
		t.Errorf("veadotube: %s %v", at, err)
	}
	must.Succeed(t, os.MkdirAll(".clawd", 0o700))
	text := fmt.Sprintf(`{"app":"clawd-on-desk","port":%d}`, clawdMaxPort)
	must.Succeed(t, os.WriteFile(filepath.Join(".clawd", "runtime.json"), []byte(text), 0o600))
	at := func(home string) string {
		return clawd{&programConfig{home: home, Target: Target{URL: clawdURL}}}.addresses()[0]
	}
	if last := fmt.Sprintf("http://127.0.0.1:%d", clawdMaxPort); at("") != clawdURL || at(".") != last {
		t.Errorf("clawd: %s, with a home %s", at(""), at("."))
	}
}

// TestPipe tests that a pipe in place of a program's file does not block.
func TestPipe(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".clawd", "runtime.json")
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Skipf("no pipe can be made here: %s", out)
	}
	read := make(chan []string, 1)
	go func() { read <- clawd{&programConfig{home: home, Target: Target{URL: clawdURL}}}.addresses() }()
	select {
	case at := <-read:
		if at[0] != clawdURL {
			t.Errorf("it says %s", at[0])
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for somebody to write to the pipe")
	}
}

// TestVeadotubeStates tests the states for scenes, and the messages for a change.
func TestVeadotubeStates(t *testing.T) {
	table := wordsOf(t, veadotubeKind(), map[string]string{"state.working": "typing at the desk", "face.angry": ""})
	l := &veadoLink{words: table, node: "mini", states: []veadoState{{"a", "happy"}, {"b", "Speaking"}, {"c", "typing at the desk"}, {"d", "angry"},
		{"e", "Idle"}, {"f", "curiosity"}}}
	for _, c := range []struct {
		is   Scene
		want string
	}{
		{Scene{State: agent.Speaking, Face: "happy"}, "a"},
		{Scene{State: agent.Speaking}, "b"},
		{Scene{State: agent.Speaking, Face: "angry"}, "b"}, // the owner has set the word for angry to ""
		{Scene{State: agent.Working, Face: "happy"}, "c"},
		{Scene{State: agent.Thinking, Face: "happy"}, "a"},
		{Scene{State: agent.Thinking}, ""},
		{Scene{State: agent.Idle}, "e"},
		{Scene{State: agent.Idle, Mood: moodOf("curiosity")}, "f"},
	} {
		if got := l.stateFor(c.is); got != c.want {
			t.Errorf("%+v looks %q and not %q", c.is, got, c.want)
		}
	}
	l.pushed = "a"
	if got := l.changes("a"); got != nil {
		t.Errorf("no change: %v", got)
	}
	if got := l.changes("b"); len(got) != 2 || got[0].Payload.Event != "push" || got[0].Payload.State != "b" || got[1].Payload.State != "a" {
		t.Errorf("to another: %v", got)
	}
	if got := l.changes(""); len(got) != 1 || got[0].Payload.Event != "pop" {
		t.Errorf("to none: %v", got)
	}
	l.states = nil
	if note := l.warning(); !strings.Contains(text(note), "0 states") {
		t.Errorf("without states: %q", note)
	}
}
