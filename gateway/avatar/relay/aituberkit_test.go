package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/must"
)

// fakeAITuber is a fake of AITuberKit's external API as in src/pages/api/v1 and next.config.js of commit
// 6be82fe. It redirects paths without a slash at the end.
type fakeAITuber struct {
	httpFake
	key       string
	receivers []aituberReceiver
}

func newFakeAITuber(t testing.TB) *fakeAITuber {
	f := &fakeAITuber{httpFake: httpFake{t: t}, key: "a-key", receivers: []aituberReceiver{
		{ID: "aituber-receiver-0", Configured: "slides", Name: "Firefox 0", Capabilities: []string{"presentation"}},
		{ID: "aituber-receiver-1", Configured: "stage", Name: "Chrome 1", Capabilities: []string{"presentation", "chat", "speech"}},
		{ID: "aituber-receiver-2", Configured: "obs", Name: "OBS 2", Capabilities: []string{"speech"}},
	}}
	f.start(listen(t, anywhere), http.HandlerFunc(f.serve))
	return f
}

func (f *fakeAITuber) serve(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case !strings.HasSuffix(r.URL.Path, "/"):
		http.Redirect(w, r, r.URL.Path+"/", http.StatusPermanentRedirect)
	case f.key == "":
		answer(http.StatusServiceUnavailable, map[string]string{"error": "AITuberKit API key is not configured", "code": "API_KEY_NOT_CONFIGURED"})
	case r.Header.Get("Authorization") != "Bearer "+f.key:
		answer(http.StatusUnauthorized, map[string]string{"error": "Invalid API key", "code": "INVALID_API_KEY"})
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/receivers/":
		answer(http.StatusOK, map[string]any{"ok": true, "receivers": f.receivers})
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/speak/":
		var s aituberSpeech
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil || s.Receiver == "" || s.Text == "" {
			answer(http.StatusBadRequest, map[string]string{"error": "Text or messages are required"})
			return
		}
		if s.Session != "" {
			s.Session = fmt.Sprintf("answer of %d letters", len(s.Session)) // replaces the ID, which is random
		}
		line, _ := json.Marshal(s)
		f.add(string(line))
		answer(http.StatusAccepted, map[string]any{"ok": true, "count": 1})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestAITuberKitRefuses tests that the owner gets the reason why AITuberKit refuses a connection.
func TestAITuberKitRefuses(t *testing.T) {
	for _, c := range []struct {
		key    string
		change func(*fakeAITuber)
		want   string
	}{
		{"", func(*fakeAITuber) {}, "wants a key and none is set"},
		{"wrong-key", func(*fakeAITuber) {}, "refuses the key"},
		{"a-key", func(f *fakeAITuber) { f.key = "" }, "set AITUBERKIT_API_KEY and NEXT_PUBLIC_AITUBERKIT_API_KEY"},
		{"a-key", func(f *fakeAITuber) { f.receivers = f.receivers[:1] }, "no open page that can speak"},
		{"a-key", func(f *fakeAITuber) {
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
		}, "is not AITuberKit"},
	} {
		f := newFakeAITuber(t)
		c.change(f)
		h := newHarness(t, Target{Kind: "aituberkit", URL: f.URL, Key: c.key})
		h.eventually(c.want, func() bool { return strings.Contains(h.note(), c.want) })
		if c.key != "" && strings.Contains(h.note(), c.key) {
			t.Errorf("the note holds the key: %s", h.note())
		}
		h.stop()
	}
}

// TestAITuberKitRefusesText tests that a refused text does not end the connection.
func TestAITuberKitRefusesText(t *testing.T) {
	f := newFakeAITuber(t)
	serve, opened := f.Config.Handler, atomic.Int32{}
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "Bread") {
			http.Error(w, `{"error":"Text is too long"}`, http.StatusRequestEntityTooLarge)
			return
		}
		if r.URL.Path == "/api/v1/receivers/" {
			opened.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		serve.ServeHTTP(w, r)
	})
	h := newConnected(t, Target{Kind: "aituberkit", URL: f.URL, Key: "a-key"})
	h.happens("", "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("it is said", func() bool { return strings.Contains(h.note(), "Text is too long") })
	h.happens(robotA, "s", turn()...)
	h.eventually("the sentence, and that all is well", func() bool {
		return strings.Contains(f.all(), "It is warm.") && h.note() == ""
	})
	if is := h.relays.List()[0]; opened.Load() != 1 || !is.OK {
		t.Errorf("it was connected %d times: %+v", opened.Load(), is)
	}
}

// TestAITuberChoice tests which of several pages is chosen to speak.
func TestAITuberChoice(t *testing.T) {
	f := newFakeAITuber(t)
	for _, c := range []struct{ wanted, before, id string }{
		{"", "", "aituber-receiver-1"},
		{"", "aituber-receiver-2", "aituber-receiver-2"},
		{"", "aituber-receiver-gone", "aituber-receiver-1"},
		{"obs", "", "aituber-receiver-2"},
		{"Chrome 1", "aituber-receiver-2", "aituber-receiver-1"},
		{"slides", "", ""},
	} {
		if id := aituberChoice(f.receivers, c.wanted, c.before); id != c.id {
			t.Errorf("%+v: %q", c, id)
		}
	}
}

// TestAITuberKitTrial tests that a trial speaks each face's name, a sentence, a notification and a question,
// and that a second trial does so again.
func TestAITuberKitTrial(t *testing.T) {
	f := newFakeAITuber(t)
	h := newConnected(t, Target{Kind: "aituberkit", URL: f.URL, Key: "a-key"})
	for range 2 {
		must.Succeed(t, h.relays.RunTrial(t.Context(), "aituberkit", time.Millisecond, func(string) error { return nil }))
		told := f.clear()
		if len(told) != len(agent.Emotions())+3 || !strings.Contains(told[1], `"text":"[happy] happy"`) {
			t.Errorf("it spoke %d times: %v", len(told), told)
		}
	}
}
