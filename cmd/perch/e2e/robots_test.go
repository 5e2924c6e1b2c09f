package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/voice"
	"perch/voice/openai"
	"perch/voice/wyoming"
)

// speaker is a server with OpenAI's API for speech, which has all voices except "nobody".
type speaker struct {
	mu    sync.Mutex
	asked []string // the requests as "voice: text"
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Voice, Input string }
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &asked) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, asked.Voice+": "+asked.Input)
	s.mu.Unlock()
	if asked.Voice == "nobody" {
		http.Error(w, `{"error":{"message":"no such voice"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "audio/pcm")
	_, _ = w.Write(make([]byte, 9600))
}

func (s *speaker) was(asked string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a == asked {
			return true
		}
	}
	return false
}

// TestARobotIsNamedByCommand: commands give a robot a name and its own voice, and accept the name. With a voice that
// the engine does not have, the robot speaks in the default voice, and the engine has not failed.
func TestARobotIsNamedByCommand(t *testing.T) {
	speech := &speaker{}
	server := httptest.NewServer(speech)
	defer server.Close()
	c := appliancetest.Config()
	c.Speech.Synthesizers = []config.Engine{{Kind: "openai", Options: &openai.SynthesizerKeys{URL: server.URL + "/v1", Model: "m", Voice: "usual"}}}
	h := open(t, c, t.TempDir())
	for _, mac := range []string{"A0:B1:C2:D3:E4:F5", "A0:B1:C2:D3:E4:F6"} {
		h.StartRobot(simrobot.Options{MAC: mac, Stay: true})
	}
	h.Eventually("both are connected", func() bool { return len(h.Talk.List()) == 2 })
	h.command("robot rename a0:b1:c2:d3:e4:f5 Kitchen", 0, "a0b1c2d3e4f5 is called Kitchen")
	h.command("robot list", 0, "Kitchen")
	h.command("robot rename a0b1c2d3e4f6 KITCHEN", 1, "a0b1c2d3e4f5")
	h.command("robot set kitchen voice=heart brain=reflex", 0, "voice     heart")
	h.command("robot set kitchen language=de", 0, "language  de", `warning: language: no recognizer supports "de": sphinx supports only English`)
	ofLanguage := func(p admin.Part) bool { return p.Name == "language" && strings.Contains(p.Note, "sphinx") }
	if parts := h.Parts(); !slices.ContainsFunc(parts, ofLanguage) {
		t.Errorf("of the language it says nothing: %+v", parts)
	}
	h.command("robot set kitchen language=", 0)
	h.command("robot show KITCHEN", 0, "a0b1c2d3e4f5", "heart", "m5stack-stack-chan")
	for line, want := range map[string]string{
		"robot set kitchen brain=openai":     "reflex",
		"robot set kitchen language=German":  "is not a language",
		"robot set kitchen persona=cook":     "personas",
		"robot set kitchen persona=../x":     "personas",
		"robot rename kitchen a0b1c2d3e4f6":  "MAC address",
		"robot set a0b1c2d3e4f7 voice=heart": "unknown robot: it has never checked in, or was forgotten; perch robot list lists",
	} {
		h.command(line, 1, want)
	}
	for _, line := range []string{"robot set kitchen", "robot set kitchen voice", "robot set kitchen colour=red", "robot rename kitchen",
		"robot show"} {
		h.command(line, 2)
	}
	h.command("robot say kitchen Hello there.", 0)
	h.command("robot say a0b1c2d3e4f6 Hello you.", 0)
	h.Eventually("each speaks in its own voice", func() bool { return speech.was("heart: Hello there.") && speech.was("usual: Hello you.") })
	if speech.was("usual: Hello there.") || speech.was("heart: Hello you.") {
		t.Errorf("asked was %q", speech.asked)
	}
	h.command("notification send --robot kitchen --silent tea", 0)
	h.command("robot set kitchen voice=nobody", 0)
	h.command("robot say kitchen Once more.", 0)
	h.Eventually("it speaks as all do", func() bool { return speech.was("nobody: Once more.") && speech.was("usual: Once more.") })
	for _, p := range h.Parts() {
		if strings.HasPrefix(p.Name, "synthesizer") && !p.OK {
			t.Errorf("%s is said to fail: %s", p.Name, p.Note)
		}
	}
	h.command("robot forget kitchen", 0)
	h.command("robot say kitchen Hello", 1, "perch robot list")
}

// TestRobotsOfTheFile: settings in the configuration file apply, and commands cannot change them.
func TestRobotsOfTheFile(t *testing.T) {
	data := t.TempDir()
	cook := filepath.Join(data, "cook.md")
	must.Succeed(t, os.MkdirAll(filepath.Join(data, "personas"), 0o750))
	for _, path := range []string{cook, filepath.Join(data, "personas", "butler.md")} {
		if err := os.WriteFile(path, []byte("---\nname: "+strings.TrimSuffix(filepath.Base(path),
			".md")+"\nlanguage: en-GB\nvoice: en-gb\n---\nYou serve."), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := appliancetest.Config()
	c.Robots.Each = []config.Robot{{Robot: "A0-B1-C2-D3-E4-F5", Name: "Kitchen", Persona: cook},
		{Robot: "a0b1c2d3e4ff", Name: "hall", Voice: "en-us"}}
	c.Skins.Hooks.Robots = []string{"kitchen"}
	c.Rules = []config.Rule{}
	if wrong := (config.Source{}).Recheck(&c); wrong != nil {
		t.Fatal(wrong)
	}
	h := open(t, c, data)
	for _, mac := range []string{"A0:B1:C2:D3:E4:F5", "A0:B1:C2:D3:E4:F6"} {
		h.Token("/xiaozhi/ota/", "Device-Id", mac)
	}
	h.command("robot list", 0, "Kitchen")
	h.command("robot rename kitchen attic", 1, "set in the configuration file")
	h.command("robot rename a0b1c2d3e4f6 HALL", 1, "a0b1c2d3e4ff")
	own := h.Characters.Of("a0b1c2d3e4f5")
	if own.Persona == nil || own.Persona.Name != "cook" || own.Speech != (voice.Options{Language: "en-GB", Voice: "en-gb"}) || own.Name != "Kitchen" {
		t.Errorf("it is %+v", own)
	}
	if other := h.Characters.Of("a0b1c2d3e4f6"); other.Persona != nil || other.Speech != (voice.Options{Language: "en"}) || other.Name != "" {
		t.Errorf("one without anything is %+v", other)
	}
	h.command("robot set a0b1c2d3e4f6 persona=butler voice=en-us", 0)
	butler := h.Characters.Of("a0b1c2d3e4f6")
	if butler.Persona == nil || butler.Persona.Name != "butler" || butler.Speech.Voice != "en-us" {
		t.Errorf("by command it is %+v", butler)
	}
	turn := agent.Turn{Robot: "a0b1c2d3e4f5", Language: "fr"}
	if h.Characters.Complete(&turn); turn.Name != "Kitchen" || turn.Persona.Name != "cook" || turn.Language != "en-GB" {
		t.Errorf("a turn that joins its talk is %+v", turn)
	}
	h.Stop()
	must.Succeed(t, os.Remove(filepath.Join(data, "personas", "butler.md")))
	h = open(t, c, data)
	if butler := h.Characters.Of("a0b1c2d3e4f6"); butler.Persona != nil || butler.Speech.Voice != "en-us" ||
		!strings.Contains(h.Logged.String(), "butler") {
		t.Errorf("without its file it is %+v", butler)
	}
	h.Robots.SetFixed(map[device.ID]device.Settings{})
}

// TestTheLanguageOfARobot: the language of a robot is that of its setting, or else the language of its check-in if that
// is a configured one, or else the first configured language.
func TestTheLanguageOfARobot(t *testing.T) {
	c := appliancetest.Config()
	c.Language, c.Rules = "en, de, zh", []config.Rule{}
	c.Speech.Recognizers = append(c.Speech.Recognizers, config.Engine{Kind: "wyoming", Options: &wyoming.RecognizerKeys{URL: "tcp://127.0.0.1:1"}})
	if wrong := (config.Source{}).Recheck(&c); wrong != nil {
		t.Fatal(wrong)
	}
	h := open(t, c, t.TempDir())
	for i, said := range []struct{ header, want string }{
		{"de-DE,de;q=0.9,en;q=0.8", "de"}, {"zh-CN", "zh"}, {"xx", "en"}, {"fr", "en"}, {"", "en"}, {strings.Repeat("de-", 5000), "en"},
	} {
		mac := fmt.Sprintf("a0:b1:c2:d3:e4:%02x", i)
		h.Token("/xiaozhi/ota/", "Device-Id", mac, "Accept-Language", said.header)
		id := must.Value(device.ParseID(mac))(t)
		if got := h.Characters.Of(id).Speech; got != (voice.Options{Language: said.want, DetectLanguage: true}) {
			t.Errorf("%.40q: %+v", said.header, got)
		}
		if i == 0 {
			h.command("robot set "+string(id)+" language=zh", 0)
			if got := h.Characters.Of(id).Speech; got != (voice.Options{Language: "zh"}) {
				t.Errorf("with a setting: %+v", got)
			}
		}
	}
	if got := h.Agents.Phrase("zh", "awake"); got != "😊 我在，请说。" {
		t.Errorf("in Chinese it says %q", got)
	}
}

// TestSearchOfTheNetwork: a search on the loopback interface returns lists, which may be empty, and not null.
func TestSearchOfTheNetwork(t *testing.T) {
	c := appliancetest.Config()
	c.MDNS.Interfaces = []string{"lo"}
	h := appliancetest.Start(t, c, t.TempDir())
	var found admin.Found
	h.Admin(http.MethodGet, "/api/v1/found", "", &found)
	if found.Wyoming == nil || found.Ollama == nil || found.HomeAssistant == nil {
		t.Errorf("%+v", found)
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodGet, "/api/v1/found", "")
}
