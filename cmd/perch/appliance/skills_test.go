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
	"strings"
	"sync"
	"testing"

	"perch/agent/skill"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
)

// sailor is a model that looks up the tide first. It keeps what it is asked.
type sailor struct {
	mu   sync.Mutex
	asks []string
}

func (m *sailor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.asks = append(m.asks, string(body))
	first := len(m.asks) == 1
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	delta := `{"content":"High water is at six."}`
	if first {
		delta = `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"tide","arguments":"{}"}}]}`
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: [DONE]\n\n", delta)
}

// TestAModelUsesASkillThatTheOwnerHasSigned, and not one that nobody has.
func TestAModelUsesASkillThatTheOwnerHasSigned(t *testing.T) {
	t.Parallel()
	var m sailor
	brain := httptest.NewServer(&m)
	defer brain.Close()
	sea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "at six") }))
	defer sea.Close()
	data := t.TempDir()
	for _, name := range []string{"tide", "wind"} {
		folder := filepath.Join(data, "skills", name)
		tools := fmt.Sprintf(`{"tools":[{"name":%q,"description":"Looks it up.","url":%q}]}`, name, sea.URL)
		for file, text := range map[string]string{"manifest.json": fmt.Sprintf(`{"name":%q,"description":"Knows it."}`, name), "tools.json": tools,
			"SKILL.md": "Ask for the " + name + " first."} {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	key, err := appliance.SigningKey(data, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tide, err := skill.Read(filepath.Join(data, "skills", "tide"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := skill.Sign(tide, key); err != nil {
		t.Fatal(err)
	}
	c := appliancetest.Config()
	c.Brains = []config.Brain{{Kind: "openai", URL: brain.URL + "/v1", Model: "m"}}
	c.Skins.Key = "key-of-the-skins-0123"
	h := appliancetest.Start(t, c, data)
	h.Expect(200, "High water is at six.", "POST", "/v1/chat/completions", `{"model":"perch","messages":[{"role":"user","content":"The tide?"}]}`,
		"Authorization", "Bearer "+c.Skins.Key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asks) != 2 || !strings.Contains(m.asks[1], "at six") || !strings.Contains(m.asks[0], "Ask for the tide first.") {
		t.Fatalf("the model is asked %s", m.asks)
	}
	if all, err := json.Marshal(m.asks); err != nil || strings.Contains(string(all), "Ask for the wind first.") {
		t.Errorf("a skill that nobody has signed is used: %v", err)
	}
}
