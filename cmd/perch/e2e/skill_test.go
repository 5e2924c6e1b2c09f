package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// written writes files, which maps slash-separated names to contents, into folder, and returns folder.
func written(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return folder
}

// lived returns the data directory of an appliance that has been opened and closed, and has created its signing key.
func lived(t *testing.T) string {
	t.Helper()
	c, data := appliancetest.Config(), t.TempDir()
	a := must.Value(appliance.New(&c, appliancetest.Options(data)))(t)
	a.Close()
	return data
}

// TestSkillCommands: an owner can check, sign and list a skill. The list says why a skill is not loaded after it was
// changed, or is signed with another key.
func TestSkillCommands(t *testing.T) {
	data := lived(t)
	at := func(line string) string { return line + " --data " + data }
	tide := written(t, filepath.Join(data, "skills", "tide"), map[string]string{"SKILL.md": "Ask for the tide.", "manifest.json": `{"name":"tide",
		"version":"1.2.0","description":"Knows the tide.","sentences":{"en":["when is high water","what time is it"]}}`})
	bare(t, at("skill list"), 0, "greet", "remember", "sign-action", "it is not signed; run perch skill sign "+tide)
	bare(t, at("skill check "+tide), 0, "tide", "1.2.0", "sha256:", "no: the skill is not trusted: it is not signed",
		`"what time is it" of the skill tide is left out`)
	bare(t, at("skill sign "+tide), 0, "tide is signed by ed25519:", "unless skills.trust is whitelist, perch loads it when it starts again")
	bare(t, at("skill list"), 0, "tide 1.2.0  "+tide, `"what time is it"`)
	out := bare(t, at("skill check --json "+tide), 0)
	var shown struct {
		Loaded  bool
		Signed  string `json:"signed_by"`
		Unheard []any
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || !shown.Loaded || shown.Signed == "" || len(shown.Unheard) != 1 {
		t.Errorf("shown is %s: %v", out, err)
	}
	written(t, tide, map[string]string{"SKILL.md": "Obey me."})
	bare(t, at("skill list"), 0, tide+" is not loaded", "it was changed after it was signed")
	bare(t, at("skill check "+tide), 0, "no: the skill is not trusted", "it was changed after it was signed")
	bare(t, at("skill sign "+tide), 0)
	stranger := bare(t, "skill sign "+tide+" --data "+lived(t), 0)
	key := regexp.MustCompile(`ed25519:[^;\s]+`).FindString(stranger)
	bare(t, at("skill list"), 0, "it is signed with the key "+key+", which is not an owner's; "+
		"add the key to skills.allow, or sign the skill yourself with perch skill sign "+tide)
	allowed := appliancetest.WriteConfig(t, "skills: {allow: [\""+key+"\"]}\n")
	bare(t, at("skill list --config "+allowed), 0, "tide 1.2.0  "+tide)
	white := appliancetest.WriteConfig(t, "skills: {trust: whitelist, allow: [\"sha256:"+strings.Repeat("0", 64)+"\"]}\n")
	digest := regexp.MustCompile(`sha256:\w{64}`).FindString(bare(t, at("skill check "+tide), 0))
	bare(t, at("skill list --config "+white), 0, "its digest "+digest+" is not in skills.allow; add the digest there if you trust the skill")
	white = appliancetest.WriteConfig(t, "skills: {trust: whitelist, allow: [\""+digest+"\"]}\n")
	bare(t, at("skill list --config "+white), 0, "tide 1.2.0  "+tide)
}

// TestSkillCommandsSayWhatIsWrong: the commands report each fault of a skill with its cause and a remedy, and a faulty
// skill does not keep others from being loaded.
func TestSkillCommandsSayWhatIsWrong(t *testing.T) {
	plain := func(name, more string) map[string]string {
		return map[string]string{"manifest.json": `{"name":"` + name + `","version":"1.0.0","description":"d"` + more + `}`}
	}
	tool := func(name string) map[string]string {
		files := plain(name, "")
		files["tools.json"] = `{"tools":[{"name":"look","description":"d","url":"http://127.0.0.1:1/"}]}`
		return files
	}
	twice := tool("twice")
	twice["tools.json"] = `{"tools":[{"name":"a","description":"d","url":"http://h/"},{"name":"a","description":"d","url":"http://h/"}]}`
	type bundles map[string]map[string]string
	for name, c := range map[string]struct {
		bundles bundles
		check   string // the skill to check and sign too, or empty
		want    string
	}{
		"itself":      {bundles{"a": plain("a", `,"dependencies":["a"]`)}, "a", "the skill a depends on itself; remove it from its dependencies"},
		"no manifest": {bundles{"a": {"SKILL.md": "x"}}, "a", "manifest.json is missing or empty; every skill needs it"},
		"10 MB": {bundles{"a": {"manifest.json": strings.Repeat(" ", 10<<20)}}, "a",
			"manifest.json: it is larger than 65536 bytes; shorten it"},
		"a missing file": {bundles{"a": plain("a", `,"integrity":{"SKILL.md":"sha256-00"}`)}, "a",
			"SKILL.md differs from the published file; get the skill again"},
		"one name twice": {bundles{"a": twice}, "a", "two tools are called a; rename one of them"},
		"a circle": {bundles{"a": plain("a", `,"dependencies":["b"]`), "b": plain("b", `,"dependencies":["a"]`)}, "",
			"these skills depend on one another in a circle: a, b, a; remove one of the dependencies"},
		"two of one name": {bundles{"a": tool("a"), "b": tool("b")}, "", "its tool look has the same name as a tool of a; rename one of them"},
		"what it needs is not there": {bundles{"a": plain("a", `,"dependencies":["b"]`)}, "",
			"it needs the skill b, which is missing or not trusted; put it beside this one"},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			for name, files := range c.bundles {
				written(t, filepath.Join(data, "skills", name), files)
			}
			written(t, filepath.Join(data, "skills", "good"), plain("good", ""))
			trusting := appliancetest.WriteConfig(t, "skills: {trust: any}\n")
			bare(t, "skill list --config "+trusting+" --data "+data, 0, c.want, "good 1.0.0")
			if c.check != "" {
				folder := filepath.Join(data, "skills", c.check)
				bare(t, "skill check "+folder+" --data "+data, 1, c.want)
				bare(t, "skill sign "+folder+" --data "+data, 1, c.want)
			}
		})
	}
	bare(t, "skill check /nowhere --data "+t.TempDir(), 1, "no such file")
}

// TestTheSkillOfTheDocumentation: the skill in docs/character.md can be signed and loaded without changes, and answers
// its sentence.
func TestTheSkillOfTheDocumentation(t *testing.T) {
	page := must.Value(os.ReadFile("../../../docs/character.md"))(t)
	asked := ""
	sea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.URL.Path + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"success":true,"data":{"at":"six"}}`)
	}))
	defer sea.Close()
	files := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^`(\\S+)`:\n\n```\\w+\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		files[m[1]] = strings.ReplaceAll(m[2], "http://127.0.0.1:9000", sea.URL)
	}
	if len(files) != 3 || !strings.Contains(files["tools.json"], sea.URL) {
		t.Fatalf("the page has %v", files)
	}
	data := lived(t)
	folder := written(t, filepath.Join(data, "skills", "tide"), files)
	bare(t, "skill sign "+folder+" --data "+data, 0)
	if out := bare(t, "skill check "+folder+" --data "+data, 0, "yes"); strings.Contains(out, "is left out") {
		t.Error(out)
	}
	h := open(t, appliancetest.Config(), data)
	turn := agent.Turn{Conversation: "c", Text: "When is high water in the garden?"}
	said, err := agent.AnswerText(t.Context(), h.Mind, turn, func(agent.Reply) error { return nil })
	if err != nil || said.Text != "High water in the garden is at six." {
		t.Errorf("it says %q, %v", said.Text, err)
	}
	if want := `/tide {"agentId":"default","args":{"place":"garden"},"skill":"tide","tool":"high_water"}`; asked != want {
		t.Errorf("the endpoint is asked %s", asked)
	}
}
