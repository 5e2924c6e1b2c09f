package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/reflex"
	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/skills"
	"perch/must"
	"perch/voice/sphinx"
)

// TestOwnersFilesAreRefusedWithCauseAndCure covers a fault of each kind of file that an owner
// may put into the data directory.
func TestOwnersFilesAreRefusedWithCauseAndCure(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	manifest := func(more string) string { return `{"name":"tide","description":"Knows it."` + more + `}` }
	for name, text := range map[string]string{
		"characters/leo.json": `{"spec":"agent-manifest/0.2","name":"Leo","brain":{"instructions":"---\nlanguage: \"d\\ne\"\n---"}}`,
		"gestures/a.json":     `{"gestures": [{"name": "Bow", "duration_ms": 1000, "frames": []}]}`,
		"words/de.txt":        "concern: Fehler\nsorrow: weg\n",
		"personas/anna.md":    "---\nname: Anna\nage: 3\n---\n",

		"skills/a/manifest.json": manifest(`,"dependencies":{"wind":"new"}`),
		"skills/b/manifest.json": manifest(`,"inputSchema":{"type":"object","properties":{"at":{"type":"hour"}}}`),
		"skills/c/manifest.json": manifest(""),
	} {
		must.Succeed(t, os.MkdirAll(filepath.Dir(filepath.Join(data, name)), 0o700))
		must.Succeed(t, os.WriteFile(filepath.Join(data, name), []byte(text), 0o600))
	}
	c := config.Default()
	faults, some := checkOwnersFiles(&c, data)
	folder := skills.Folder(&c, data)
	again := func(name string) string {
		return "; perch skill check " + folder + "/" + name + " checks it again; restart the appliance after that"
	}
	want := []string{
		data + `/gestures/a.json: not a file of gestures: gestures[0].name: "Bow" is not a name; write 1 to 40 lower-case letters, digits, - and _` +
			"\ngestures[0].frames: there are 0; a gesture has 1 to 64; correct or remove it, and restart the appliance",
		data + `/words/de.txt: line 2: it does not begin with a feeling; write for example "concern: error, went wrong"; ` +
			"correct or remove it, and restart the appliance",
		data + "/characters/leo.json: not an agent manifest: the front matter's language is one line of at most 200 bytes; " +
			"correct it (perch character check), or remove it",
		data + `/personas/anna.md: not a persona: line 3: the front matter has no key "age"; correct or remove it`,
		folder + `/a: manifest.json: dependencies: wind: "new" is not a version range; write 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3 or *` + again("a"),
		folder + `/b: manifest.json: a schema of arguments is a JSON Schema of type object and at most 8192 bytes: ` +
			`"hour" is not a type of JSON Schema` + again("b"),
		"the skill is not trusted: it is not signed; run perch skill sign " + folder + "/c to sign it as this appliance's owner" + again("c"),
		`not words for faces: rfc: the word "so sad": a word has 1 to 64 bytes, of letters, digits, - and _`,
	}
	var got []string
	for _, err := range faults {
		got = append(got, err.Error())
	}
	_, err := agent.NewWords(map[agent.Vocabulary]map[string]string{"rfc": {"sad": "so sad"}})
	got = append(got, err.Error())
	if !some || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the owner reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSentencesAreRefusedWithTheirPlace covers faults of an owner's sentences.
func TestSentencesAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own.yaml")
	c := config.Default()
	c.Speech.Recognizers = []config.Engine{{Kind: "sphinx", Options: &sphinx.Keys{}}}
	c.Brains = []config.Engine{{Kind: "reflex", Options: &reflex.Keys{Sentences: own}}}
	const unheard = " is not in the recognizer's dictionary; spell it another way or leave the sentence out"
	const unread = "read the reflex brain's sentences: own.yaml:"
	for text, want := range map[string]string{
		"a:\n    sentences: [find the frobnicator]\n    answer: Here.\n  b:\n    sentences: [the frobnicatrix]\n    answer: There.\n": `own.yaml:3: the word "frobnicator"` +
			unheard + "\n" + `own.yaml:6: the word "frobnicatrix"` + unheard,
		"a:\n    sentences: [find (it]\n": unread + `3: sentence "find (it": a ")" is missing`,
		"a:\n    sentence: x\n":           unread + ` line 3: an intent has no "sentence"`,
		"a:\n    sentences: [find it]\n    answer: Here {it}.\n    end: x\n": unread + `2: intent "a": end is hang_up or sleep, not "x"` +
			"\n" + `own.yaml:2: intent "a": {it} is not in every one of its sentences`,
	} {
		must.Succeed(t, os.WriteFile(own, []byte("intents:\n  "+text), 0o600))
		err := engines.CheckRecognizers(&c)
		if err == nil {
			t.Fatalf("%s has no fault", text)
		}
		if got := err.Error(); got != want {
			t.Errorf("the owner reads\n%s\nwant\n%s", got, want)
		}
	}
}
