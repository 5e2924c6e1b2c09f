package manifest_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/manifest"
	"perch/must"
)

// TestPublishedManifests parses the two example manifests of the format's guide, and one of a
// character that neither speaks nor hears.
func TestPublishedManifests(t *testing.T) {
	aria := must.Value(manifest.Read(t.Context(), nil, "testdata/aria.json"))(t)
	if aria.Name != "Aria" || aria.ID() != "aria" || aria.Brain.Provider != manifest.Anthropic || aria.Brain.Model != "claude-opus-4-6" ||
		aria.Instructions != "You are Aria, a friendly guide. Be concise and helpful." || aria.Tools != nil || aria.MemoryTokens != 0 {
		t.Errorf("%+v", aria)
	}
	remarked(t, aria, "A browser's voice")
	leo := must.Value(manifest.Read(t.Context(), nil, "testdata/leo.json"))(t)
	tools := []string{"wave", "lookAt", "play_clip", "setExpression", "speak"}
	skills := []manifest.Skill{{URI: "skills/wave/", Version: "0.1.0"}, {URI: "ipfs://bafy.../football-drills/", Version: "1.0.0"}}
	if leo.ID() != "coach-leo" || *leo.Brain.Temperature != 0.8 || leo.MemoryTokens != 8192 || !slices.Equal(leo.Tools, tools) ||
		!slices.Equal(leo.Skills, skills) || leo.Voice != (manifest.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB"}) {
		t.Errorf("%+v", leo)
	}
	remarked(t, leo, "instructions.md, which is missing in the bundle", "football-drills/ is on IPFS", "body.uri is on IPFS",
		"A browser's voice or speech recognition", "voice.tts.proxyURL has no effect")
	silent := must.Value(manifest.Parse([]byte(`{"spec": "agent-manifest/0.1", "name": "Mo", "voice": `+
		`{"tts": {"provider": "none", "rate": 1.2, "style": 0}, "stt": {"provider": "none"}}}`), manifest.Alone))(t)
	if silent.Voice.Provider != manifest.None || silent.Recognizer != manifest.None {
		t.Errorf("%+v", silent)
	}
	remarked(t, silent, "does not speak", "does not hear", "voice.tts.rate has no effect", "voice.tts.style has no effect")
	for _, m := range []manifest.Manifest{aria, leo} {
		given := read(t, "testdata/"+map[string]string{"Aria": "aria", "Coach Leo": "leo"}[m.Name]+".json")
		exported, err := m.Export()
		if err != nil || !reflect.DeepEqual(anything(t, exported), anything(t, given)) {
			t.Errorf("exported %s, %v", exported, err)
		}
	}
}

// TestClips tests the clips of a manifest, and the remarks about invalid ones.
func TestClips(t *testing.T) {
	for _, c := range []struct{ meta, clips, remark string }{
		{`{"edits":{"animations":{"Celebrate":"av-party","finale":"Armature|Finale 2"}},"model":7}`, "map[celebrate:av-party finale:]", ""},
		{`{"edits":{"animations":{"take a bow":"bow"}}}`, "map[]", `The animation "take a bow" is left out`},
		{`{"edits":{"animations":["bow"]}}`, "map[]", "meta.edits.animations has no effect"},
	} {
		m := must.Value(manifest.Parse([]byte(`{"spec":"agent-manifest/0.2","name":"X","meta":`+c.meta+`}`), manifest.Alone))(t)
		if got := fmt.Sprint(m.Clips); got != c.clips || len(m.Remarks) != min(len(c.remark), 1) || !strings.Contains(strings.Join(m.Remarks, ""), c.remark) {
			t.Errorf("%s: %s, %q", c.meta, got, m.Remarks)
		}
	}
}

// TestUnknownToolsAreRemarked tests that there is a remark about each unknown tool, and no other.
func TestUnknownToolsAreRemarked(t *testing.T) {
	m := must.Value(manifest.Parse([]byte(`{"spec":"agent-manifest/0.2","name":"X","tools":["wave","see_screen","remember"]}`), manifest.Alone))(t)
	remarked(t, m, "The tool see_screen is not built in")
	if len(m.Remarks) != 1 {
		t.Errorf("%q", m.Remarks)
	}
}

func remarked(t *testing.T, m manifest.Manifest, want ...string) {
	t.Helper()
	all := strings.Join(m.Remarks, "\n")
	for _, part := range want {
		if !strings.Contains(all, part) {
			t.Errorf("%q is not remarked in %s", part, all)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data := must.Value(os.ReadFile(name))(t)
	return data
}

func anything(t *testing.T, data []byte) (all any) {
	t.Helper()
	must.Succeed(t, json.Unmarshal(data, &all))
	return all
}

const told = "---\ntemperature: 0.2\nmaxTokens: 99\nprovider: none\nlanguage: de\n---\n\n# Leo\n\nDu bist Leo.\n"

// TestABundle tests that a bundle has the same content when it is read from a folder, from a zip
// file and from an address.
func TestABundle(t *testing.T) {
	dir := t.TempDir()
	leo := read(t, "testdata/leo.json")
	for name, text := range map[string]string{"manifest.json": string(leo), "instructions.md": told} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	must.Succeed(t, z.AddFS(os.DirFS(dir)))
	must.Succeed(t, z.Close())
	zipped := filepath.Join(t.TempDir(), "leo.zip")
	must.Succeed(t, os.WriteFile(zipped, packed.Bytes(), 0o600))
	server := httptest.NewTLSServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for _, place := range []string{dir, filepath.Join(dir, "manifest.json"), zipped, server.URL + "/manifest.json"} {
		m, err := manifest.Read(t.Context(), server.Client(), place)
		if err != nil || m.Instructions != "# Leo\n\nDu bist Leo." || *m.Brain.Temperature != 0.2 || m.Brain.MaxTokens != 99 ||
			m.Brain.Provider != manifest.None || m.Language != "de" || m.Brain.Model != "claude-opus-4-6" {
			t.Errorf("%s: %+v, %v", place, m, err)
			continue
		}
		exported := must.Value(m.Export())(t) // one file with the instructions inlined
		again, err := manifest.Parse(exported, manifest.Alone)
		if err != nil || again.Instructions != m.Instructions || again.Brain.Provider != manifest.None || again.Language != "de" {
			t.Errorf("%s: %+v, %v", place, again, err)
		}
	}
}

// TestTheMemoryOfABundle tests that the memory is read from a file of the bundle, and is part of
// the exported manifest.
func TestTheMemoryOfABundle(t *testing.T) {
	const text = `{"spec":"agent-manifest/0.2","name":"Leo","memory":{"mode":"local","index":"memory/MEMORY.md","maxTokens":99}}`
	files := map[string]string{"memory/MEMORY.md": "# Memory\r\n- Ann likes tea.\n"}
	open := func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return []byte(data), nil
		}
		return nil, fs.ErrNotExist
	}
	m := must.Value(manifest.Parse([]byte(text), open))(t)
	if m.Memory != "# Memory\n- Ann likes tea." || m.MemoryTokens != 99 || len(m.Remarks) > 0 {
		t.Errorf("%q, %d, %q", m.Memory, m.MemoryTokens, m.Remarks)
	}
	if again := must.Value(manifest.Parse(must.Value(m.Export())(t), manifest.Alone))(t); again.Memory != m.Memory || again.MemoryTokens != 99 {
		t.Errorf("exported is %q", again.Memory)
	}
	if m := must.Value(manifest.Parse([]byte(text), manifest.Alone))(t); m.Memory != "" || len(m.Remarks) != 1 ||
		!strings.Contains(m.Remarks[0], "memory.index names memory/MEMORY.md, which is missing") {
		t.Errorf("without the file: %q, %q", m.Memory, m.Remarks)
	}
	files["memory/MEMORY.md"] = strings.Repeat("x", 32<<10+1)
	if _, err := manifest.Parse([]byte(text), open); !errors.Is(err, manifest.Err) || !strings.Contains(err.Error(), "memory.index has more than 32768 bytes") {
		t.Error(err)
	}
}

// TestSkillsOfABundle tests that there is a remark about a skill in the bundle, which is not imported,
// and none about skills outside of the bundle.
func TestSkillsOfABundle(t *testing.T) {
	dir := t.TempDir()
	text := `{"spec":"agent-manifest/0.2","name":"Leo","skills":[{"uri":"skills/tide/"},{"uri":"./skills/none"},{"uri":"../tide"},
		{"uri":"/skills/tide"},{"uri":"https://example.com/tide"}]}`
	must.Succeed(t, os.MkdirAll(filepath.Join(dir, "skills", "tide"), 0o700))
	for _, name := range []string{"manifest.json", "skills/tide/manifest.json"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	m, err := manifest.Read(t.Context(), nil, dir)
	if err != nil || len(m.Remarks) != 1 || !strings.Contains(m.Remarks[0], "The skill in skills/tide of the bundle is not imported") {
		t.Errorf("%q %v", m.Remarks, err)
	}
}

func TestInvalidManifests(t *testing.T) {
	const begin = `{"spec":"agent-manifest/0.2","name":"X"`
	for text, want := range map[string]string{
		"":                                    "no JSON",
		"[]":                                  "array",
		"null":                                "no JSON object",
		`{"spec":"agent-manifest/0.3"}`:       "spec is",
		`{"spec":"agent-manifest/0.1"}`:       "name is",
		begin + `,"brain":{"provider":3}}`:    "brain.provider may not be a JSON number",
		begin + `,"brain":{"provider":"x"}}`:  "brain.provider is none, anthropic",
		begin + `,"brain":{"temperature":3}}`: "brain.temperature",
		begin + `,"brain":{"maxTokens":-1}}`:  "brain.maxTokens",
		begin + `,"brain":{"instructions":"../x.md"}}`:                               "outside of the bundle",
		begin + `,"brain":{"instructions":"/etc/x.md"}}`:                             "outside of the bundle",
		begin + `,"brain":{"instructions":"---\nx: 1"}}`:                             "not closed",
		begin + `,"brain":{"instructions":"---\n[\n---"}}`:                           "front matter",
		begin + `,"brain":{"instructions":"---\nx: 1\n---  y"}}`:                     "not closed",
		begin + `,"brain":{"instructions":"a\u0000b"}}`:                              "UTF-8",
		begin + `,"brain":{"instructions":"` + strings.Repeat("x", 32<<10+1) + `"}}`: "32768",
		begin + `,"memory":{"maxTokens":1000000}}`:                                   "memory.maxTokens",
		begin + `,"tools":["a\nb"]}`:                                                 "tools.0",
		begin + `,"x":"` + strings.Repeat("x", 10<<20) + `"}`:                        "more than 1048576 bytes",
	} {
		m, err := manifest.Parse([]byte(text), manifest.Alone)
		if !errors.Is(err, manifest.Err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %+v, %v", text, m, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	long := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		_, _ = w.Write(make([]byte, 10<<20))
	}))
	defer long.Close()
	for place, want := range map[string]string{
		"http://a.example/m.json": "must begin with https://",
		"https://u:p@a.example/m": "must begin with https://",
		"ipfs://bafy/m.json":      "ipfs:// addresses are not supported",
		long.URL + "/m.json?k=s3": "more than 1048576 bytes",
		long.URL + "/away":        "away from https",
		"testdata/none.json":      "no such file",
		"testdata":                "no such file",
	} {
		_, err := manifest.Read(t.Context(), long.Client(), place)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// TestFrontMatterInItsOwnFileIsExported tests that the exported manifest contains the fields of a
// front matter that has no text after it.
func TestFrontMatterInItsOwnFileIsExported(t *testing.T) {
	for name, c := range map[string]struct {
		file, language, model string
	}{
		"front matter alone":             {"---\nlanguage: de-AT\nbrain: {model: m, temperature: 0.5, maxTokens: 90}\n---\n", "de-AT", "m"},
		"front matter and blank lines":   {"---\nlanguage: de-AT\nmodel: m\n---\n\n \t\n", "de-AT", "m"},
		"front matter without a newline": {"---\nmodel: m\n---", "", "m"},
		"front matter and spaces":        {"---\nmodel: m\n---  ", "", "m"},
		"front matter and a tab":         {"---\nmodel: m\n---\t", "", "m"},
		"front matter, space, newline":   {"---\nmodel: m\n--- \n", "", "m"},
		"an empty file":                  {"", "", ""},
		"a file of spaces":               {" \n", "", ""},
	} {
		m, err := manifest.Parse([]byte(`{"spec":"agent-manifest/0.2","name":"X","brain":{"instructions":"x.md"}}`),
			func(string) ([]byte, error) { return []byte(c.file), nil })
		if err != nil || m.Language != c.language || m.Brain.Model != c.model {
			t.Errorf("%s is read as %+v, %v", name, m, err)
			continue
		}
		exported := must.Value(m.Export())(t)
		again, err := manifest.Parse(exported, manifest.Alone)
		if err != nil || again.Language != c.language || !reflect.DeepEqual(again.Brain, m.Brain) || again.Instructions != "" ||
			len(again.Remarks) > 0 {
			t.Errorf("%s: %s is read as %+v, %v", name, exported, again, err)
		}
	}
}

func TestAPersonaAsAManifest(t *testing.T) {
	warm := 0.3
	m, err := manifest.Of(agent.Persona{Name: "Cook", Text: "Du kochst.", Language: "de-AT", Voice: "thorsten",
		Brain: agent.BrainOptions{Model: "m", Temperature: &warm, MaxTokens: 90}})
	must.Succeed(t, err)
	exported := must.Value(m.Export())(t)
	m, err = manifest.Parse(exported, manifest.Alone)
	if err != nil || m.Name != "Cook" || m.Instructions != "Du kochst." || m.Language != "de-AT" || m.Voice.ID != "thorsten" ||
		m.Brain.Model != "m" || m.Brain.Temperature == nil || *m.Brain.Temperature != warm || m.Brain.MaxTokens != 90 {
		t.Errorf("%s: %+v, %v", exported, m, err)
	}
}

// FuzzBundle tests that a bundle with any manifest and any instructions that can be parsed is the
// same after an export.
func FuzzBundle(f *testing.F) {
	f.Add([]byte(`{"spec":"agent-manifest/0.2","name":"A","brain":{"instructions":"a.md"}}`), []byte("---\nname: B\nlanguage: de\n---\nYou are B."))
	f.Add([]byte(`{"spec":"agent-manifest/0.1","name":"A","brain":{"instructions":"../a.md"}}`), []byte("---\n- a: &a [*a]\n---\n\xff"))
	f.Fuzz(func(t *testing.T, data, instructions []byte) {
		m, err := manifest.Parse(data, func(name string) ([]byte, error) {
			if name != "a.md" {
				return nil, fs.ErrNotExist
			}
			return instructions, nil
		})
		if err != nil {
			return
		}
		exported := must.Value(m.Export())(t)
		again, err := manifest.Parse(exported, manifest.Alone)
		if err != nil || again.Instructions != m.Instructions || again.Language != m.Language {
			t.Errorf("%q with %q is %q: %+v, %v", data, instructions, exported, again, err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	for _, name := range []string{"testdata/aria.json", "testdata/leo.json"} {
		data := must.Value(os.ReadFile(name))(f)
		f.Add(data)
	}
	f.Add([]byte(`{"spec":"agent-manifest/0.2","name":"X","brain":{"instructions":"---\nmodel: m\n---  "}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse(data, manifest.Alone)
		if err != nil {
			if !errors.Is(err, manifest.Err) {
				t.Error(err)
			}
			return
		}
		exported := must.Value(m.Export())(t)
		if again, err := manifest.Parse(exported, manifest.Alone); err != nil || again.Instructions != m.Instructions || again.Name != m.Name {
			t.Errorf("%s: %+v, %v", exported, again, err)
		}
	})
}
