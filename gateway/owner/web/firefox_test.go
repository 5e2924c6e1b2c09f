package web_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// firefox is a page that is open in Firefox, driven by WebDriver BiDi. What it does not come to within patience fails the
// test, and so does an error in its console.
type firefox struct {
	t       *testing.T
	socket  *websocket.Conn
	answers <-chan message // what Firefox sends; closed with the connection
	page    string         // the browsing context
	last    int            // the number of the last command
}

// message is an answer to a command, or an event.
type message struct {
	ID             int
	Result         json.RawMessage
	Error, Message string
	Method         string
	Params         struct{ Level, Text string }
}

// listening is what Firefox says once it can be driven.
var listening = regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)

// startFirefox runs a headless Firefox until the test ends. It trusts an authority, and finds
// perch.local on this machine.
func startFirefox(t *testing.T, authority string) *firefox {
	t.Helper()
	if testing.Short() {
		t.Skip("the browser runs in make test-all")
	}
	path, err := exec.LookPath("firefox-esr")
	need(t, err == nil, "firefox-esr is not installed: make deps installs it")
	profile := t.TempDir()
	trust(t, profile, authority)
	must.Succeed(t, os.WriteFile(filepath.Join(profile, "user.js"), []byte(`
		user_pref("network.dns.localDomains", "perch.local");
		user_pref("intl.accept_languages", "en");
		user_pref("media.autoplay.default", 0);
		user_pref("media.navigator.streams.fake", true);
		user_pref("media.navigator.permission.disabled", true);
		user_pref("dom.ipc.processCount", 1);
		user_pref("fission.autostart", false);
		user_pref("browser.startup.page", 0);
		user_pref("datareporting.policy.dataSubmissionEnabled", false);
		user_pref("app.update.enabled", false);
	`), 0o600))
	cmd := appliancetest.ChildCommand(path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0")
	cmd.Env = append(os.Environ(), "HOME="+profile, "TZ=UTC", "MOZ_CRASHREPORTER_DISABLE=1")
	stderr := must.Value(cmd.StderrPipe())(t)
	address, ended := make(chan string, 1), make(chan struct{})
	must.Succeed(t, appliancetest.RunChild(cmd, func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		_, _ = io.Copy(io.Discard, stderr)
		_ = cmd.Wait() // it is killed
	}))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	f := &firefox{t: t}
	select {
	case at := <-address:
		socket, answer, err := websocket.DefaultDialer.DialContext(t.Context(), at+"/session", nil)
		must.Succeed(t, err)
		_ = answer.Body.Close()
		answers := make(chan message)
		f.socket, f.answers = socket, answers
		var reading sync.WaitGroup
		reading.Go(func() {
			defer close(answers)
			for m := (message{}); socket.ReadJSON(&m) == nil; m = (message{}) {
				select {
				case answers <- m:
				case <-t.Context().Done():
					return
				}
			}
		})
		t.Cleanup(func() {
			_ = socket.Close()
			reading.Wait()
		})
	case <-ended:
		t.Fatal("Firefox has ended")
	case <-time.After(time.Minute):
		t.Fatal("Firefox does not start")
	}
	see := must.Value(os.ReadFile("testdata/see.js"))(t)
	f.call("session.new", map[string]any{"capabilities": map[string]any{}})
	f.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}})
	f.call("script.addPreloadScript", map[string]any{"functionDeclaration": "() => {" + string(see) + "}"})
	var made struct{ Context string }
	must.Succeed(t, json.Unmarshal(f.call("browsingContext.create", map[string]any{"type": "tab"}), &made))
	f.page = made.Context
	f.call("browsingContext.setViewport", map[string]any{"context": f.page, "viewport": map[string]int{"width": 1400, "height": 900}})
	return f
}

// call sends a command and returns its result.
func (f *firefox) call(method string, params map[string]any) json.RawMessage {
	f.t.Helper()
	result, answered := f.callWithin(2*time.Minute, method, params) // the first command waits until Firefox has started
	if !answered {
		f.t.Fatalf("%s: Firefox does not answer", method)
	}
	return result
}

// callWithin is call that waits for the answer for a while only. Meanwhile it hears what the page's console says.
func (f *firefox) callWithin(wait time.Duration, method string, params map[string]any) (result json.RawMessage, answered bool) {
	f.t.Helper()
	f.last++
	must.Succeed(f.t, f.socket.WriteJSON(map[string]any{"id": f.last, "method": method, "params": params}))
	late := time.After(wait)
	for {
		select {
		case <-late:
			return nil, false
		case m, open := <-f.answers:
			switch {
			case !open:
				f.t.Fatalf("%s: Firefox has ended", method)
			case m.Method == "log.entryAdded" && m.Params.Level == "error":
				f.t.Errorf("the page's console: %s", m.Params.Text)
			case m.ID == f.last && m.Error != "":
				f.t.Fatalf("%s: %s: %s", method, m.Error, m.Message)
			case m.ID == f.last:
				return m.Result, true
			}
		}
	}
}

// open opens an address.
func (f *firefox) open(url string) {
	f.t.Helper()
	f.call("browsingContext.navigate", map[string]any{"context": f.page, "url": url, "wait": "complete"})
}

// evaluate returns the value of an expression in the page, awaited. known is false in a page that is being left: its promises
// stay unsettled, and Firefox does not answer.
func (f *firefox) evaluate(expression string, into any) (known bool) {
	f.t.Helper()
	var answer struct{ Result struct{ Value string } }
	result, answered := f.callWithin(10*time.Second, "script.evaluate", map[string]any{"target": map[string]string{"context": f.page}, "awaitPromise": true,
		"expression": "(async () => globalThis.see ? JSON.stringify(await (" + expression + ")) : '')()"})
	if !answered {
		return false
	}
	must.Succeed(f.t, json.Unmarshal(result, &answer))
	if answer.Result.Value == "" {
		return false
	}
	must.Succeed(f.t, json.Unmarshal([]byte(answer.Result.Value), into))
	return true
}

// until waits for a condition in the page.
func (f *firefox) until(condition string) {
	f.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); f.frame() {
		held := false
		if f.evaluate("!!("+condition+")", &held) && held {
			return
		}
	}
	var shown string
	f.evaluate(`location.href + " shows: " + see.text(document.body)`, &shown)
	f.t.Fatalf("not within %s: %s\n%.2000s", patience, condition, shown)
}

// frame waits a little, by the page's clock.
func (f *firefox) frame() {
	f.t.Helper()
	var waited bool
	f.evaluate("new Promise((r) => setTimeout(() => r(true), 50))", &waited)
}

// sees waits until there is an element.
func (f *firefox) sees(selector string) {
	f.t.Helper()
	f.until("see.has(" + quote(selector) + ")")
}

// says waits until an element shows a text.
func (f *firefox) says(selector, text string) {
	f.t.Helper()
	f.until("see.says(" + quote(selector) + ", " + quote(text) + ")")
}

// click presses the left button of the mouse on an element, once it can be hit.
func (f *firefox) click(selector string) {
	f.t.Helper()
	var at struct {
		X, Y float64
		Why  string
	}
	for end := time.Now().Add(patience); ; f.frame() {
		at.Why = ""
		if f.evaluate("see.at("+quote(selector)+")", &at) && at.Why == "" {
			break
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s cannot be clicked: %s", selector, at.Why)
		}
	}
	f.perform(map[string]any{"type": "pointer", "id": "mouse", "actions": []map[string]any{
		{"type": "pointerMove", "x": int(at.X), "y": int(at.Y)}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}}})
}

// fill replaces the text of a field by what is typed.
func (f *firefox) fill(selector, text string) {
	f.t.Helper()
	f.click(selector)
	var done bool
	f.evaluate("(see.one("+quote(selector)+").select(), true)", &done)
	f.press(strings.Split(text, "")...)
}

// tabKey is the key Tab in WebDriver's notation.
const tabKey = "\ue004"

// press presses keys.
func (f *firefox) press(keys ...string) {
	f.t.Helper()
	var actions []map[string]any
	for _, key := range keys {
		actions = append(actions, map[string]any{"type": "keyDown", "value": key}, map[string]any{"type": "keyUp", "value": key})
	}
	f.perform(map[string]any{"type": "key", "id": "keys", "actions": actions})
}

func (f *firefox) perform(source map[string]any) {
	f.t.Helper()
	f.call("input.performActions", map[string]any{"context": f.page, "actions": []any{source}})
}
