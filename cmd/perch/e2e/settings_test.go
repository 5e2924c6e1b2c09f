package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/must"
	"perch/store/archive/archivetest"
	"perch/store/storetest"
)

// shownConfig is the response of GET /api/v1/config.
type shownConfig struct {
	config.Shown
	Error struct{ Code, Message string }
}

func (s shownConfig) key(t *testing.T, name string) config.Key {
	t.Helper()
	i := slices.IndexFunc(s.Keys, func(k config.Key) bool { return k.Key == name })
	if i < 0 {
		t.Fatalf("there is no key %s", name)
	}
	return s.Keys[i]
}

// refused returns the status and the body of an *errRefused, and fails the test for any other error.
func refused(t *testing.T, err error) (status int, body struct {
	Error  struct{ Code, Message string }
	Faults []config.Fault
}) {
	t.Helper()
	var no *errRefused
	if !errors.As(err, &no) {
		t.Fatalf("the answer is %v", err)
	}
	must.Succeed(t, json.Unmarshal([]byte(no.text), &body))
	return no.status, body
}

// configured writes a configuration file and runs the program with it, without an MQTT broker. It returns when the
// program serves.
func configured(t *testing.T, text string, env ...string) (p *process, path string) {
	t.Helper()
	path = appliancetest.WriteConfig(t, text)
	p = begin(t, perchBinary(t), t.TempDir(), []string{"--config", path}, append([]string{"PERCH_MQTT_BROKER=none"}, env...)...)
	p.up()
	return p, path
}

const someConfig = `# Our house.
name: house      # by mDNS
persona: {name: Chan}
skins:
  key: "geheim-geheim" # the skins'
speech:
  # a slow speaker
  silence: 800ms
`

// TestAnOwnerChangesTheConfiguration: the owner's page can set and reset keys. The response names the source of each
// value, an event reports the change, and a restart applies the keys that need one. The configuration file is not
// changed.
func TestAnOwnerChangesTheConfiguration(t *testing.T) {
	t.Parallel()
	p, path := configured(t, someConfig)
	defer p.stop()
	ctx := t.Context()
	var shown shownConfig
	must.Succeed(t, p.ask(ctx, "GET", "/api/v1/config", nil, &shown))
	if shown.File != path || shown.Settings != filepath.Join(p.data, config.OverlayFile) || len(shown.Restart) > 0 || strings.Contains(shown.Text, "geheim") ||
		!strings.Contains(shown.Text, "  key: •••••• # the skins'\n") {
		t.Errorf("shown is %+v", shown)
	}
	silence := shown.key(t, "speech.silence")
	if silence.Value != "800ms" || silence.Default != "600ms" || silence.From != "file" || silence.Line != 8 || silence.Type != "duration" ||
		!strings.Contains(silence.Doc, "silence that ends an utterance") {
		t.Errorf("%+v", silence)
	}
	if key := shown.key(t, "skins.key"); fmt.Sprint(key.Value) != "map[set:true]" || key.Type != "secret" {
		t.Errorf("%+v", key)
	}
	if by := shown.key(t, "mqtt.broker"); by.From != "environment" || by.By != "PERCH_MQTT_BROKER" {
		t.Errorf("%+v", by)
	}
	if by := shown.key(t, "listen"); by.From != "flag" || by.By != "--listen" {
		t.Errorf("%+v", by)
	}
	told := p.streamed(t, "/api/v1/events", "event: changed")
	var done config.Changes
	set := map[string]any{"persona.name": "Bo", "speech.silence": "700ms", "timezone": "Europe/Berlin"}
	if err := p.ask(ctx, "PUT", "/api/v1/config", map[string]any{"set": set}, &done); err != nil {
		t.Fatal(err, done)
	}
	line := <-told
	for strings.Contains(line, `"what":"voices"`) { // sent when an engine has listed its voices
		line = <-told
	}
	if !strings.Contains(line, `"what":"settings"`) {
		t.Errorf("others are told %s", line)
	}
	if err := p.ask(ctx, "PUT", "/api/v1/config/debug.listen", "127.0.0.1:0", &done); err != nil || !done.Restart || !slices.Contains(done.Keys, "debug.listen") {
		t.Errorf("an address is set: %+v, %v", done, err)
	}
	for key, want := range map[string]string{"persona.name": "Bo", "speech.silence": "700ms", "name": "house"} {
		if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || shown.key(t, key).Value != want ||
			(shown.key(t, key).From == "settings") != (key != "name") || !slices.Contains(shown.Restart, "debug.listen") {
			t.Errorf("%+v, %q, %v", shown.key(t, key), shown.Restart, err)
		}
	}
	before := p.run(t)
	must.Succeed(t, p.ask(ctx, "POST", "/api/v1/restart", nil, nil))
	p.up() // the process is the same: it executes the program again, with the same arguments
	if after := p.run(t); after == before {
		t.Error("it has not started anew")
	}
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || shown.key(t, "persona.name").Value != "Bo" || len(shown.Restart) > 0 {
		t.Errorf("after the restart: %+v, %q, %v", shown.key(t, "persona.name"), shown.Restart, err)
	}
	if err := p.ask(ctx, "DELETE", "/api/v1/config/persona.name", nil, &done); err != nil {
		t.Error(err)
	}
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || shown.key(t, "persona.name").Value != "Chan" ||
		shown.key(t, "persona.name").From != "file" {
		t.Errorf("given back: %+v, %v", shown.key(t, "persona.name"), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != someConfig {
		t.Errorf("the owner's file is\n%s", text)
	}
}

// TestAnHourOfClicking: two clients send 120 valid and invalid changes each at the same time. The configuration file is
// not changed, the API then shows the last accepted changes, and the settings can be loaded again.
func TestAnHourOfClicking(t *testing.T) {
	t.Parallel()
	seed := storetest.Number(t, "PERCH_SEED", rand.Uint64())
	t.Logf("PERCH_SEED=%d", seed)
	h := appliancetest.Configured(t, "# Our house.\nname: house      # by mDNS\nspeech:\n  # a slow speaker\n  silence: 800ms\n")
	own := must.Value(os.ReadFile(h.File))(t)
	values := map[string][]string{ // the last value of each key is invalid
		"robots.keep_turns": {`5`, `50`, `"60"`, `-1`}, "speech.silence": {`"700ms"`, `"1s"`, `"10s"`},
		"language": {`"en"`, `["en","fr"]`, `"German"`}, "robots.greeting": {`true`, `false`, `"maybe"`},
		"allowed_hosts": {`["a.example"]`, `[]`, `"[b.example]"`, `{"a":1}`}, "bridge.key": {`"another-key"`, `"a-third-key"`, `"short"`},
		"brains":                      {`[{"kind":"none"}]`, `"[{kind: reflex}]"`, `[]`},
		"speech.synthesizers.0.voice": {`"de"`, `"en-us"`, `"--x"`}, "speech.synthesizers.0.speed": {`150`, `200`, `"fast"`},
	}
	keys := slices.Sorted(maps.Keys(values))
	acknowledged := []map[string]bool{{}, {}} // for each client and key, whether the last accepted change set a value
	var owners sync.WaitGroup
	for owner := range acknowledged {
		r := rand.New(rand.NewPCG(seed, uint64(owner)))
		owners.Go(func() {
			for range 120 {
				key := keys[r.IntN(len(keys)/2)*2+owner] // no key is changed by both clients
				all := values[key]
				place, method, body := r.IntN(len(all)+1), http.MethodDelete, ""
				if place < len(all) {
					method, body = http.MethodPut, all[place]
				} else if strings.Contains(key, ".0.") {
					continue // a DELETE would remove the key from its list entry
				}
				want := http.StatusOK
				if place == len(all)-1 {
					want = http.StatusUnprocessableEntity
				}
				status, answer := h.Owner(method, "/api/v1/config/"+key, body)
				if status != want {
					t.Errorf("%s %s %s: %d %s", method, key, body, status, answer)
				}
				if status == http.StatusOK {
					acknowledged[owner][key] = method == http.MethodPut
				}
			}
		})
	}
	owners.Wait()
	if text, err := os.ReadFile(h.File); err != nil || string(text) != string(own) {
		t.Errorf("the owner's file is\n%s", text)
	}
	var shown shownConfig
	h.Admin(http.MethodGet, "/api/v1/config", "", &shown)
	if len(shown.Faults) > 0 {
		t.Error(shown.Faults)
	}
	for _, all := range acknowledged {
		for key, given := range all {
			if is := shown.key(t, key); given != (is.From == "settings") {
				t.Errorf("%s is from %s", key, is.From)
			}
		}
	}
	if _, err := (config.Source{File: h.File, Overlay: shown.Settings}).Load(); err != nil {
		t.Errorf("it does not start again: %v", err)
	}
}

// run returns the identifier of this start of the program: the part of an event's ID before the dot.
func (p *process) run(t *testing.T) string {
	t.Helper()
	id := <-p.streamed(t, "/api/v1/events", "id: ")
	run, _, _ := strings.Cut(strings.TrimPrefix(id, "id: "), ".")
	return run
}

// streamed returns the lines of an event stream that begin with begins. The next line is appended to each, unless
// begins starts with "id". Lines are dropped while 1000 of them are unread.
func (p *process) streamed(t *testing.T, path, begins string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := must.Value(http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil))(t)
	r.Header.Set("Authorization", "Bearer "+p.token)
	answer := must.Value((&http.Transport{DisableKeepAlives: true}).RoundTrip(r))(t)
	found := make(chan string, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer answer.Body.Close()
		defer close(found)
		for scan := bufio.NewScanner(answer.Body); scan.Scan(); {
			if line := scan.Text(); strings.HasPrefix(line, begins) {
				if !strings.HasPrefix(begins, "id") {
					scan.Scan()
					line += scan.Text()
				}
				select {
				case found <- line:
				default:
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	return found
}

// TestAConfigurationWithFaultsIsNotWritten: each fault is reported with its line and key, nothing is written, and the
// appliance refuses to restart with a configuration that it could not start with.
func TestAConfigurationWithFaultsIsNotWritten(t *testing.T) {
	t.Parallel()
	p, path := configured(t, someConfig)
	defer p.stop()
	ctx := t.Context()
	var shown shownConfig
	must.Succeed(t, p.ask(ctx, "GET", "/api/v1/config", nil, &shown))
	bad := strings.Replace(strings.Replace(shown.Text, "800ms", "10s", 1), "name: house", "nmae: house", 1)
	var checked config.Checked
	if err := p.ask(ctx, "POST", "/api/v1/config/check", map[string]any{"text": bad}, &checked); err != nil {
		t.Errorf("%v %+v", err, checked)
	}
	const want = `[{"line":2,"key":"nmae","message":"there is no such key"},` +
		`{"line":8,"key":"speech.silence","message":"an utterance ends after 200ms to 3s of silence, not 10s"}]`
	if text, err := json.Marshal(checked.Faults); err != nil || string(text) != want {
		t.Errorf("the faults are %s", text)
	}
	status, body := refused(t, p.ask(ctx, "PUT", "/api/v1/config/speech.silence", "10s", nil))
	if status != 422 || body.Error.Code != "faults" || len(body.Faults) != 1 || body.Faults[0].Key != "speech.silence" ||
		body.Error.Message != "nothing was changed: speech.silence: an utterance ends after 200ms to 3s of silence, not 10s" {
		t.Errorf("%d %+v", status, body)
	}
	set := map[string]any{"mqtt.broker": "embedded", "listen": []string{":1"}, "robots.keep_turns": "many", "no.such": 1}
	_, body = refused(t, p.ask(ctx, "PUT", "/api/v1/config", map[string]any{"set": set}, nil))
	for _, says := range []string{"PERCH_MQTT_BROKER sets this key", "--listen sets this key", "there is no such key"} {
		if !slices.ContainsFunc(body.Faults, func(f config.Fault) bool { return strings.Contains(f.Message, says) }) {
			t.Errorf("no fault says %q: %+v", says, body.Faults)
		}
	}
	for _, none := range []string{`{}`, `{"text":""}`, `{"set":{}}`} {
		if err := p.ask(ctx, "PUT", "/api/v1/config", []byte(none), nil); err == nil {
			t.Errorf("%s is taken", none)
		}
	}
	if _, err := os.Stat(shown.Settings); err == nil {
		t.Error("something was written")
	}
	// The owner breaks the file with an editor.
	must.Succeed(t, os.WriteFile(path, []byte("name: ["), 0o600))
	if status, body := refused(t, p.ask(ctx, "POST", "/api/v1/restart", nil, nil)); status != 422 || !strings.Contains(body.Error.Message, "line 1") {
		t.Errorf("%d %+v", status, body)
	}
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || len(shown.Faults) != 1 || shown.Text != "" || shown.Why == "" {
		t.Errorf("%v %+v", err, shown.Shown)
	}
	if status, _ := refused(t, p.ask(ctx, "PUT", "/api/v1/config/name", "cottage", nil)); status != 422 {
		t.Errorf("a configuration that would not start is changed: %d", status)
	}
}

// TestSetAndUnset: perch set and perch unset change a running appliance, and the overlay file of one that does not run,
// with the same checks. If the overlay has a fault, the start fails, and the error says how to mend it.
func TestSetAndUnset(t *testing.T) {
	t.Parallel()
	h := appliancetest.Configured(t, "name: house\n")
	own := must.Value(os.ReadFile(h.File))(t)
	stopped := " --data " + t.TempDir() + " --config " + h.File
	for _, flags := range []string{" --data " + h.Data, stopped} {
		for _, c := range []struct {
			line string
			code int
			says string
		}{
			{"set persona.name Bo", 0, ""},
			{"set memory.most 100 --json", 0, `"restart"`},
			{"set allowed_hosts [a.example,b.example]", 0, ""},
			{"set memory.most 3", 1, "nothing was changed: "},
			{"set memory.most 3", 1, "memory.most: it must be 10 to 2000, not 3"},
			{"set nmae x", 1, "nmae: there is no such key"},
			{"set name", 2, "it takes KEY VALUE, but 1 argument was given"},
			{"unset memory.most", 0, ""},
			{"unset nmae", 1, "nmae: there is no such key"},
		} {
			if out := bare(t, c.line+flags, c.code); !strings.Contains(out, c.says) {
				t.Errorf("perch %s says %s", c.line+flags, out)
			}
		}
		_, data, _ := strings.Cut(flags, "--data ")
		data, _, _ = strings.Cut(data, " ")
		text, err := os.ReadFile(filepath.Join(data, config.OverlayFile))
		if want := "allowed_hosts:\n    - a.example\n    - b.example\npersona:\n    name: Bo\n"; err != nil || !strings.HasSuffix(string(text), "a setting.\n"+want) {
			t.Errorf("the settings are %s, %v", text, err)
		}
	}
	if now, err := os.ReadFile(h.File); err != nil || string(now) != string(own) {
		t.Errorf("the owner's file is %s", now)
	}
	_, data, _ := strings.Cut(strings.TrimSpace(stopped), " ")
	data, _, _ = strings.Cut(data, " ")
	archivetest.Write(t, filepath.Join(data, config.OverlayFile), []byte("speech: {silence: 10s}\n"))
	const cure = "perch unset speech.silence removes this setting, so that the configuration file decides again"
	for _, line := range []string{"check-config " + h.File + " --data " + data, "serve" + stopped} {
		if out := bare(t, line, exitUsage); !strings.Contains(out, config.OverlayFile+":1: speech.silence: an utterance ends") || !strings.Contains(out, cure) {
			t.Errorf("perch %s says %s", line, out)
		}
	}
	bare(t, "unset speech.silence"+stopped, 0)
	if out := bare(t, "check-config "+h.File+" --data "+data, 0); !strings.Contains(out, " and "+data) {
		t.Errorf("it says %s", out)
	}
}

// TestThePageFollowsTheLog: the log is sent as an event stream, filtered by level. The doctor can be run through the
// API, but not twice at the same time.
func TestThePageFollowsTheLog(t *testing.T) {
	t.Parallel()
	p, _ := configured(t, someConfig, "PERCH_SPEECH_RECOGNIZERS_0_KIND=openai", "PERCH_SPEECH_RECOGNIZERS_0_URL=http://127.0.0.1:9/v1",
		"PERCH_SPEECH_RECOGNIZERS_0_MODEL=m", "RUNTIME_DIRECTORY="+t.TempDir()) // the variable that systemd sets
	defer p.stop()
	lines := p.streamed(t, "/api/v1/logs", "data: ")
	all := p.streamed(t, "/api/v1/logs?level=info", "event: line")
	ready := false
	for !ready {
		select {
		case line := <-all:
			ready = strings.Contains(line, `"level":"info","msg":"perch is ready"`)
		case <-time.After(startWithin):
			t.Fatal("nothing of the start is told")
		}
	}
	if first := <-lines; !strings.Contains(first, `"attrs":{`) {
		t.Errorf("the first line is %s", first)
	}
	if status, body := refused(t, p.ask(t.Context(), "GET", "/api/v1/logs?level=loud", nil, nil)); status != 400 || body.Error.Code != "bad_level" {
		t.Errorf("%d %+v", status, body)
	}
	var report struct {
		Items []struct {
			Name, Level, Note string
			OK                bool
		}
	}
	busy := make(chan error, 1)
	go func() { busy <- p.ask(t.Context(), "GET", "/api/v1/doctor", nil, &report) }()
	second := p.ask(t.Context(), "GET", "/api/v1/doctor", nil, nil)
	first := <-busy
	if first == nil {
		first, second = second, first
	} else if second == nil {
		if err := p.ask(t.Context(), "GET", "/api/v1/doctor", nil, &report); err != nil {
			t.Error(err)
		}
	}
	if status, body := refused(t, first); status != 409 || body.Error.Code != "busy" || second != nil {
		t.Errorf("two at once: %d %+v, %v", status, body, second)
	}
	levels := map[string]string{}
	for _, i := range report.Items {
		levels[i.Name] = i.Level
		if i.OK != (i.Level != "problem") || i.Note == "" {
			t.Errorf("%+v", i)
		}
	}
	if levels["configuration"] != "ok" || levels["appliance"] != "ok" || levels["recognizer openai"] != "problem" || len(levels) < 12 {
		t.Errorf("the doctor finds %+v", report.Items)
	}
	if report.Items[0].OK {
		t.Error("what does not work is not first")
	}
}
