package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
)

// shownConfig is what a page is told of the configuration.
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

// refused is the error of an answer that is one.
func refused(t *testing.T, err error) (status int, body struct {
	Error  struct{ Code, Message string }
	Faults []config.Fault
}) {
	t.Helper()
	var no *errRefused
	if !errors.As(err, &no) {
		t.Fatalf("the answer is %v", err)
	}
	if err := json.Unmarshal([]byte(no.text), &body); err != nil {
		t.Fatal(err)
	}
	return no.status, body
}

// configured runs the program with a configuration file.
func configured(t *testing.T, text string, env ...string) (p *process, path string) {
	t.Helper()
	path = appliancetest.Written(t, text)
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

// TestAnOwnerChangesTheConfiguration as a page does: a key is set, its line alone
// changes, everybody who looks is told, and a restart applies it.
func TestAnOwnerChangesTheConfiguration(t *testing.T) {
	t.Parallel()
	p, path := configured(t, someConfig)
	defer p.stop()
	ctx := t.Context()
	var shown shownConfig
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil {
		t.Fatal(err)
	}
	if shown.File != path || !shown.Writable || shown.Before || shown.Restart || strings.Contains(shown.Text, "geheim") ||
		!strings.Contains(shown.Text, "  key: •••••• # the skins'\n") {
		t.Errorf("shown is %+v", shown)
	}
	silence := shown.key(t, "speech.silence")
	if silence.Value != "800ms" || silence.Default != "600ms" || silence.Given != "file" || silence.Line != 8 || silence.Type != "duration" ||
		!strings.Contains(silence.Doc, "silence that ends an utterance") {
		t.Errorf("%+v", silence)
	}
	if key := shown.key(t, "skins.key"); key.Value != "" || key.Set == nil || !*key.Set || key.Type != "secret" {
		t.Errorf("%+v", key)
	}
	if by := shown.key(t, "mqtt.broker"); by.Given != "environment" || by.By != "PERCH_MQTT_BROKER" {
		t.Errorf("%+v", by)
	}
	if by := shown.key(t, "listen"); by.Given != "flag" || by.By != "--listen" {
		t.Errorf("%+v", by)
	}
	told := p.streamed(t, "/api/v1/events", "event: changed")
	var done struct {
		Digest  string
		Restart bool
	}
	set := map[string]any{"persona.name": "Bo", "speech.silence": "700ms", "timezone": "Europe/Berlin"}
	change := map[string]any{"digest": shown.Digest, "set": set}
	if err := p.ask(ctx, "PUT", "/api/v1/config", change, &done); err != nil || !done.Restart {
		t.Fatal(err, done)
	}
	want := strings.NewReplacer("Chan", "Bo", "800ms", "700ms").Replace(someConfig) + "timezone: Europe/Berlin\n"
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	if text, err := os.ReadFile(path + ".before"); err != nil || string(text) != someConfig {
		t.Errorf("before it was %s (%v)", text, err)
	}
	if line := <-told; !strings.Contains(line, `"what":"settings"`) {
		t.Errorf("others are told %s", line)
	}
	// Another owner has the file as it was.
	status, body := refused(t, p.ask(ctx, "PUT", "/api/v1/config", change, nil))
	if status != 409 || body.Error.Code != "changed_since" {
		t.Errorf("%d %+v", status, body)
	}
	before := p.run(t)
	if err := p.ask(ctx, "POST", "/api/v1/restart", nil, nil); err != nil {
		t.Fatal(err)
	}
	p.up() // the same process, with the same flags
	if after := p.run(t); after == before {
		t.Error("it has not started anew")
	}
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || shown.key(t, "persona.name").Value != "Bo" || shown.Restart ||
		!shown.Before || shown.Digest != done.Digest {
		t.Errorf("after the restart: %+v, %v", shown.key(t, "persona.name"), err)
	}
}

// run is what this start of the program is known by.
func (p *process) run(t *testing.T) string {
	t.Helper()
	id := <-p.streamed(t, "/api/v1/events", "id: ")
	run, _, _ := strings.Cut(strings.TrimPrefix(id, "id: "), ".")
	return run
}

// streamed returns the lines of a stream that begin with something, and what follows
// it in its message.
func (p *process) streamed(t *testing.T, path, begins string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
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

// TestAConfigurationWithFaultsIsNotWritten: each is told with its line and key, and the
// appliance does not restart into what would not start.
func TestAConfigurationWithFaultsIsNotWritten(t *testing.T) {
	t.Parallel()
	p, path := configured(t, someConfig)
	defer p.stop()
	ctx := t.Context()
	var shown shownConfig
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(strings.Replace(shown.Text, "800ms", "10s", 1), "name: house", "nmae: house", 1)
	var checked struct {
		Text   string
		Faults []config.Fault
	}
	if err := p.ask(ctx, "POST", "/api/v1/config/check", map[string]any{"text": bad}, &checked); err != nil || checked.Text != bad {
		t.Errorf("%v %+v", err, checked)
	}
	const want = `[{"line":2,"key":"nmae","message":"there is no such key"},` +
		`{"line":8,"key":"speech.silence","message":"an utterance ends after 200ms to 3s of silence, not 10s"}]`
	are := func(faults []config.Fault) bool {
		text, err := json.Marshal(faults)
		return err == nil && string(text) == want
	}
	if !are(checked.Faults) {
		t.Errorf("the faults are %+v", checked.Faults)
	}
	status, body := refused(t, p.ask(ctx, "PUT", "/api/v1/config", map[string]any{"text": bad, "digest": shown.Digest}, nil))
	if status != 422 || body.Error.Code != "faults" || !are(body.Faults) || !strings.Contains(body.Error.Message, "line 2: nmae") {
		t.Errorf("%d %+v", status, body)
	}
	set := map[string]any{"mqtt.broker": "embedded", "listen": []string{":1"}, "robots.keep_turns": "many", "no.such": 1}
	_, body = refused(t, p.ask(ctx, "PUT", "/api/v1/config", map[string]any{"set": set, "digest": shown.Digest}, nil))
	for _, says := range []string{"PERCH_MQTT_BROKER sets it", "--listen sets it", "`many` is not what belongs here", "there is no such key"} {
		if !slices.ContainsFunc(body.Faults, func(f config.Fault) bool { return strings.Contains(f.Message, says) }) {
			t.Errorf("no fault says %q: %+v", says, body.Faults)
		}
	}
	for _, none := range []string{`{}`, `{"text":"","set":{}}`, `{"set":{"name":"x"},"digest":""}`} {
		if err := p.ask(ctx, "PUT", "/api/v1/config", []byte(none), nil); err == nil {
			t.Errorf("%s is taken", none)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != someConfig {
		t.Errorf("the file is %s (%v)", text, err)
	}
	// Somebody breaks it by hand.
	if err := os.WriteFile(path, []byte("name: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body := refused(t, p.ask(ctx, "POST", "/api/v1/restart", nil, nil)); status != 422 || !strings.Contains(body.Error.Message, "line 1") {
		t.Errorf("%d %+v", status, body)
	}
	if err := p.ask(ctx, "GET", "/api/v1/config", nil, &shown); err != nil || !shown.Restart || len(shown.Faults) != 1 || shown.Text != "name: [" {
		t.Errorf("%v %+v", err, shown.Shown)
	}
	if err := p.ask(ctx, "PUT", "/api/v1/config", map[string]any{"text": someConfig, "digest": shown.Digest}, nil); err != nil {
		t.Errorf("it cannot be mended: %v", err)
	}
}

// TestThePageFollowsTheLog, and the doctor looks, one at a time.
func TestThePageFollowsTheLog(t *testing.T) {
	t.Parallel()
	p, _ := configured(t, someConfig, "PERCH_SPEECH_RECOGNIZERS_0_KIND=openai", "PERCH_SPEECH_RECOGNIZERS_0_URL=http://127.0.0.1:9/v1",
		"PERCH_SPEECH_RECOGNIZERS_0_MODEL=m", "RUNTIME_DIRECTORY="+t.TempDir()) // as the service manager gives it
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
