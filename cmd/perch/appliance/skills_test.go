package appliance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/assist"
	openaibrain "perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/waittest"
)

// writeSkill writes a bundle into the folder skills of a data directory. files maps names to contents.
func writeSkill(t *testing.T, data, name string, files map[string]string) {
	t.Helper()
	folder := filepath.Join(data, "skills", name)
	must.Succeed(t, os.MkdirAll(folder, 0o700))
	for file, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
}

// signSkill signs a bundle with the appliance's key.
func signSkill(t *testing.T, data, name string) {
	t.Helper()
	key, _, err := datadir.SigningKey(data, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	s := must.Value(skill.Read(filepath.Join(data, "skills", name)))(t)
	must.Value(skill.Sign(s, key.Private()))(t)
}

// TestAModelUsesASkillThatTheOwnerHasSigned checks that a model uses a signed skill, and is not offered a skill without
// a signature.
func TestAModelUsesASkillThatTheOwnerHasSigned(t *testing.T) {
	t.Parallel()
	m := &toolCaller{tool: "tide", args: "{}"}
	sea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "at six") }))
	defer sea.Close()
	data := t.TempDir()
	for _, name := range []string{"tide", "wind"} {
		writeSkill(t, data, name, map[string]string{"manifest.json": fmt.Sprintf(`{"name":%q,"description":"Knows it."}`, name),
			"SKILL.md":   "Ask for the " + name + " first.",
			"tools.json": fmt.Sprintf(`{"tools":[{"name":%q,"description":"Looks it up.","url":%q}]}`, name, sea.URL)})
	}
	signSkill(t, data, "tide")
	c := appliancetest.Config()
	c.Brains = []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: m.serve(t), Model: "m"})}
	c.Skins.Key = "key-of-the-skins-0123"
	h := appliancetest.Start(t, c, data)
	h.Expect(200, "It says: at six.", "POST", "/v1/chat/completions", `{"model":"perch","messages":[{"role":"user","content":"The tide?"}]}`,
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

// TestWhatASkillRemembersIsOfItsSession checks that a fact remembered by a skill has the session of the call, which
// determines the character that remembers it.
func TestWhatASkillRemembersIsOfItsSession(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(data, "characters"), 0o700))
	leo := []byte(`{"spec":"agent-manifest/0.2","name":"Leo"}`)
	must.Succeed(t, os.WriteFile(filepath.Join(data, "characters", "leo.json"), leo, 0o600))
	c := appliancetest.Config()
	c.Robots.Each = []config.Robot{{Robot: "a0b1c2d3e4f5", Character: "leo"}}
	h := appliancetest.Start(t, c, data)
	h.Robots.CheckIn(device.CheckIn{ID: "a0b1c2d3e4f5", Board: "m5stack-stack-chan"}, time.Now())
	must.Value(h.Robots.Adopt("a0b1c2d3e4f5", time.Now()))(t)
	if who := h.Characters.Who("a0b1c2d3e4f5", ""); who != "leo" { // the configured character of a new robot applies without a restart
		t.Errorf("the robot that has come is %s", who)
	}
	from := h.Bus.ReadFrom(1)
	_, err := h.Skills.Perform(t.Context(), skill.Call{Session: "skin:1", Skill: "remember", Args: json.RawMessage(`{"content":"Ann drinks tea."}`)})
	must.Succeed(t, err)
	for {
		e := must.Value(from.Next(t.Context()))(t)
		if _, is := e.Event.(event.Remembered); is {
			if e.Session != "skin:1" {
				t.Errorf("it is remembered in the session %q", e.Session)
			}
			return
		}
	}
}

// tideSkill returns the files of a bundle with sentences, a JSON list, and a tool whose endpoint is url.
func tideSkill(url, sentences string) map[string]string {
	return map[string]string{
		"manifest.json": `{"name":"tide","version":"1.0.0","description":"Knows the tide.","animationHint":"bow","handler":"high_water",` +
			`"voicePattern":"High water at {{output}}, {{place}}.","sentences":{"en":` + sentences + `}}`,
		"tools.json": `{"tools":[{"name":"high_water","description":"Looks it up.","url":"` + url + `"}]}`,
	}
}

// TestASkillIsPerformedBesideHomeAssistant checks that Perch performs skills by their sentences if the brain is assist,
// which sends all other texts to Home Assistant. In the test Home Assistant cannot be reached.
func TestASkillIsPerformedBesideHomeAssistant(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	writeSkill(t, data, "tide", map[string]string{"manifest.json": `{"name":"tide","description":"d","voicePattern":"It is high in the {{place}}.",` +
		`"sentences":{"en":["how high is the {place}"]}}`})
	signSkill(t, data, "tide")
	c := appliancetest.Config()
	c.Brains = []config.Engine{{Kind: "assist", Options: &assist.Options{URL: "http://127.0.0.1:9", Token: "x"}}}
	h := appliancetest.Start(t, c, data)
	for text, want := range map[string]string{"How high is the garden?": "It is high in the garden.", "what time is it": ""} {
		s, err := agent.AnswerText(t.Context(), h.Mind, agent.Turn{Conversation: "c", Text: text}, func(agent.Reply) error { return nil })
		if s.Text != want || (err == nil) != (want != "") {
			t.Errorf("%q is answered %q; %v", text, s.Text, err)
		}
	}
}

// TestASpokenSentencePerformsASkill checks a skill's sentence that is spoken to a robot: the embedded recognizer
// recognizes it, the reflex brain calls the skill's endpoint, and the robot speaks the voicePattern and makes the
// gesture. Sentences that overlap others, or have words that the recognizer does not know, are left out without an
// effect on other sentences. After a change of the bundle and a restart, the new sentences apply.
func TestASpokenSentencePerformsASkill(t *testing.T) {
	t.Parallel()
	var asked string
	var mu sync.Mutex
	sea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = string(body)
		mu.Unlock()
		_, _ = io.WriteString(w, "six")
	}))
	defer sea.Close()
	data := t.TempDir()
	writeSkill(t, data, "tide", tideSkill(sea.URL, `["tell me the water level in the {place}","what time is it","tell me the hochwasserstand"]`))
	signSkill(t, data, "tide")
	writeSkill(t, data, "wind", map[string]string{"manifest.json": `{"name":"wind","description":"d","sentences":{"en":["tell me the wind"]}}`})
	const mac = "A0:B1:C2:D3:E4:F5"
	h := appliancetest.Start(t, appliancetest.Config(), data)
	h.Adopt(mac)
	r := h.RunRobot(simrobot.Options{MAC: mac, Say: appliancetest.Sentences(t, "tell me the water level in the garden")})
	if !r.HasShown("High water at six, garden.") {
		t.Errorf("the robot does not say it: %v", r.Observations())
	}
	mu.Lock()
	if want := `{"agentId":"default","args":{"place":"garden"},"skill":"tide","tool":"high_water"}`; asked != want {
		t.Errorf("the endpoint is asked %s", asked)
	}
	mu.Unlock()
	if _, bowed := r.LastTime(appliancetest.Match(func(c simrobot.Called) bool {
		return strings.Contains(c.Name, "set_head_angles") && strings.Contains(c.Arguments, `"pitch":5`)
	})); !bowed {
		t.Error("the robot does not bow")
	}
	for _, want := range []string{`sentence \"what time is it\" of the skill tide`, "hochwasserstand", "wind"} {
		if !strings.Contains(h.Logged.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	said := func(text string) string {
		t.Helper()
		s, err := agent.AnswerText(t.Context(), h.Mind, agent.Turn{Conversation: "c", Text: text}, func(agent.Reply) error { return nil })
		must.Succeed(t, err)
		return s.Text
	}
	if got := said("tell me the wind"); strings.Contains(got, "one") || !strings.Contains(got, "do not know") {
		t.Errorf("the sentence of a skill that is not loaded is answered: %q", got)
	}
	if got := said("tell me the hochwasserstand"); got != "High water at six." {
		t.Errorf("a typed word that the recognizer does not know is answered %q", got)
	}
	h.Stop()
	writeSkill(t, data, "tide", tideSkill(sea.URL, `["how high is the water"]`))
	signSkill(t, data, "tide")
	h = appliancetest.Start(t, appliancetest.Config(), data)
	if got := said("how high is the water"); got != "High water at six." {
		t.Errorf("after a change it says %q", got)
	}
	if got := said("tell me the water level in the garden"); !strings.Contains(got, "do not know") {
		t.Errorf("the old sentence is answered: %q", got)
	}
}

// TestAnMCPServerIsBehindASkill checks a skill whose tool belongs to an MCP server, here an example of MCP's Go library
// that serves HTTP. The skill is performed directly, by a sentence and by a model. After the end of the server, the
// skill's error names the address.
func TestAnMCPServerIsBehindASkill(t *testing.T) {
	t.Parallel()
	program, at := built(t, "github.com/modelcontextprotocol/go-sdk/examples/server/everything"), appliancetest.FreeAddress(t)
	server := exec.Command(program, "-http", at)
	must.Succeed(t, server.Start())
	ended := sync.OnceFunc(func() { _ = server.Process.Kill(); _ = server.Wait() })
	t.Cleanup(ended)
	waittest.For(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", at)
		return err == nil && conn.Close() == nil
	})
	model := &toolCaller{tool: "greet", args: `{"name":"Ben"}`}
	data := t.TempDir()
	writeSkill(t, data, "porter", map[string]string{
		"manifest.json": `{"name":"porter","description":"Announces people.","handler":"greet","voicePattern":"The porter says {{output}}.",` +
			`"mcpServers":{"door":"http://` + at + `/"},"sentences":{"en":["announce {person}"]},"slots":{"person":"name"}}`,
		"tools.json": `{"tools":[{"name":"greet","description":"Greets somebody.","mcp":"door","input_schema":{"type":"object",` +
			`"properties":{"name":{"type":"string"}},"required":["name"]}}]}`})
	signSkill(t, data, "porter")
	c := appliancetest.Config()
	c.Brains = []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: model.serve(t), Model: "m"}), {Kind: "reflex", Options: &reflex.Keys{}}}
	h := appliancetest.Start(t, c, data)
	call := skill.Call{Skill: "porter", Args: json.RawMessage(`{"name":"Anna"}`)}
	if r, err := h.Skills.Perform(t.Context(), call); err != nil || !r.Success || r.Output != "Hi Anna" {
		t.Errorf("performed it answers %+v, %v", r, err)
	}
	say := func(brain, text string) string {
		t.Helper()
		turn := agent.Turn{Conversation: brain, Brain: brain, Text: text}
		s := must.Value(agent.AnswerText(t.Context(), h.Mind, turn, func(agent.Reply) error { return nil }))(t)
		return s.Text
	}
	if got := say("openai", "Who is there?"); !strings.HasPrefix(got, "The porter says Hi Ben. It says: Already said to the person") {
		t.Errorf("the model says %q", got)
	}
	if got := say("reflex", "announce anna"); got != "The porter says Hi anna." {
		t.Errorf("the sentence is answered %q", got)
	}
	ended()
	if _, err := h.Skills.Perform(t.Context(), call); err == nil || !strings.Contains(err.Error(), at) {
		t.Errorf("without the server: %v", err)
	}
	if got := say("reflex", "announce anna"); got != "That did not work." {
		t.Errorf("without the server the sentence is answered %q", got)
	}
	h.Stop()
}

// TestAManifestChoosesSkills checks that a character whose manifest lists skills has only these and the built-in ones,
// for sentences, tools and direct calls. A character without a list has all skills; one with an empty list has only the
// built-in ones.
func TestAManifestChoosesSkills(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"tide", "wind"} {
		writeSkill(t, data, name, map[string]string{"manifest.json": fmt.Sprintf(
			`{"name":%q,"description":"Knows it.","voicePattern":"The %s is fine.","sentences":{"en":["tell me the %s"]}}`, name, name, name)})
	}
	c := appliancetest.Config()
	c.Skills.Trust = skill.Any
	for name, list := range map[string]string{"sailor": `,"skills":[{"uri":"skills/tide/","version":"1.0.0"}]`, "baker": `,"skills":[]`,
		"anybody": ``} {
		file := filepath.Join(data, name+".json")
		must.Succeed(t, os.WriteFile(file, []byte(`{"spec":"agent-manifest/0.2","name":"X"`+list+`}`), 0o600))
		c.Characters = append(c.Characters, config.Character{Name: name, Manifest: file})
	}
	h := appliancetest.Start(t, c, data)
	for character, want := range map[string]string{"sailor": "tide", "baker": "", "anybody": "tide wind", "default": "tide wind"} {
		turn := agent.Turn{Session: "s", Conversation: character}
		h.Characters.Play(&turn, strings.TrimPrefix(character, "default"), "")
		offered := fmt.Sprint(h.Skills.Tools(turn), h.Skills.Block(turn))
		for _, name := range []string{"tide", "wind"} {
			has := strings.Contains(want, name)
			if strings.Contains(offered, name) != has {
				t.Errorf("%s is offered %s: %t, not %t", character, name, !has, has)
			}
			turn.Text = "tell me the " + name
			said, err := agent.AnswerText(t.Context(), h.Mind, turn, func(agent.Reply) error { return nil })
			if err != nil || strings.Contains(said.Text, "is fine") != has {
				t.Errorf("%s, asked for %s, says %q, %v", character, name, said.Text, err)
			}
			if _, err := h.Skills.Perform(t.Context(), skill.Call{Agent: character, Skill: name}); errors.Is(err, skill.ErrUnknown) == has {
				t.Errorf("%s performs %s: %v", character, name, err)
			}
		}
		if r, err := h.Skills.Perform(t.Context(), skill.Call{Agent: character, Skill: "greet"}); err != nil || r.Output != "Hello!" {
			t.Errorf("%s does not greet: %v", character, err)
		}
	}
}
