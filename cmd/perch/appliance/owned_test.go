package appliance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
	"perch/language"
)

// german is an error as the page of a German owner shows it. What is no sentence stays.
func german(t *testing.T, err error) string {
	t.Helper()
	words := map[string]string{}
	text, bad := os.ReadFile("../../../language/de/findings.json")
	if bad == nil {
		bad = json.Unmarshal(text, &words)
	}
	var sentence any = err.Error()
	if said := language.SaidBy(err); bad == nil && said != nil {
		if text, bad = json.Marshal(said); bad == nil {
			bad = json.Unmarshal(text, &sentence)
		}
	}
	if bad != nil {
		t.Fatal(bad)
	}
	verb, place := regexp.MustCompile(`%[-+# 0-9.]*[a-z]`), regexp.MustCompile(`\{\d+\}`)
	var filled func(any) string
	filled = func(of any) string {
		parts, is := of.([]any)
		if !is {
			return of.(string)
		}
		format := parts[0].(string)
		own, has := words[format]
		if !has { // one without a word of its own
			n := 0
			own = verb.ReplaceAllStringFunc(format, func(string) string { n++; return "{" + strconv.Itoa(n) + "}" })
		}
		return place.ReplaceAllStringFunc(own, func(at string) string {
			n, _ := strconv.Atoi(strings.Trim(at, "{}"))
			return filled(parts[n])
		})
	}
	return filled(sentence)
}

// TestOwnersFilesInGerman: what is wrong with an owner's file is told in the language of the
// page, with its cause.
func TestOwnersFilesInGerman(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	manifest := func(more string) map[string]string {
		return map[string]string{"manifest.json": `{"name":"tide","description":"Knows it."` + more + `}`}
	}
	for name, text := range map[string]string{
		"characters/leo.json": `{"spec":"agent-manifest/0.2","name":"Leo","brain":{"instructions":"---\nlanguage: \"d\\ne\"\n---"}}`,
		"gestures/a.json":     `{"gestures": [{"name": "Bow", "duration_ms": 1000, "frames": []}]}`,
		"words/de.txt":        "concern: Fehler\nsorrow: weg\n",
		"personas/anna.md":    "---\nname: Anna\nage: 3\n---\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(data, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeSkill(t, data, "a", manifest(`,"dependencies":{"wind":"new"}`))
	writeSkill(t, data, "b", manifest(`,"inputSchema":{"type":"object","properties":{"at":{"type":"hour"}}}`))
	writeSkill(t, data, "c", manifest(""))
	c := config.Default()
	faults, some := appliance.OwnersFiles(&c, data)
	skills := appliance.SkillFolder(&c, data)
	again := func(name string) string {
		return ". perch skill check " + skills + "/" + name + " liest es noch einmal; starte Perch dann neu."
	}
	want := []string{
		data + `/gestures/a.json: Keine Datei mit Gesten: gestures[0].name: "Bow" ist kein Name: Er hat 1 bis 40 Kleinbuchstaben, Ziffern, - und _` +
			"\ngestures[0].frames: Es sind 0; eine Geste hat 1 bis 64. Berichtige oder entferne es, und starte Perch neu.",
		data + `/words/de.txt: Zeile 2: Sie beginnt mit keinem der Gefühle; schreibe zum Beispiel "concern: Fehler, ging schief". ` +
			"Berichtige oder entferne es, und starte Perch neu.",
		data + "/characters/leo.json: Kein Manifest eines Charakters: language im Kopf ist eine Zeile mit höchstens 200 Bytes. " +
			"Berichtige es (perch character check), oder entferne es.",
		data + `/personas/anna.md: Keine Persona: Zeile 3: Der Kopf hat keinen Schlüssel "age". Berichtige oder entferne es.`,
		skills + `/a: manifest.json: dependencies: wind: "new" ist keine Version; schreibe 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3 oder *` + again("a"),
		skills + `/b: manifest.json: Ein Schema von Argumenten ist ein JSON Schema vom Typ object mit höchstens 8192 Bytes: ` +
			`"hour" ist kein Typ von JSON Schema` + again("b"),
		"Der Skill ist nicht vertrauenswürdig: Niemand hat ihn signiert; perch skill sign " + skills +
			"/c signiert ihn als Besitzer dieses Perch" + again("c"),
		`Keine Wörter für Gesichter: rfc: Das Wort "so sad": Ein Wort hat 1 bis 64 Bytes aus Buchstaben, Ziffern, - und _`,
	}
	var got []string
	for _, err := range faults {
		got = append(got, german(t, err))
	}
	_, err := agent.NewWords(map[agent.Vocabulary]map[string]string{"rfc": {"sad": "so sad"}})
	got = append(got, german(t, err))
	if !some || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("a German owner reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSentencesInGerman: so is what is wrong with an owner's sentences.
func TestSentencesInGerman(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own.yaml")
	c := config.Default()
	c.Speech.Recognizers = []config.Recognizer{{Kind: "sphinx"}}
	c.Brains = []config.Brain{{Kind: "reflex", Sentences: own}}
	const unheard = " steht nicht im Wörterbuch des Erkenners; schreibe es anders oder lass den Satz weg"
	const unread = "Die Sätze von reflex ließen sich nicht lesen: own.yaml:"
	for text, want := range map[string]string{
		"a:\n    sentences: [find the frobnicator]\n    answer: Here.\n  b:\n    sentences: [the frobnicatrix]\n    answer: There.\n": `own.yaml:3: Das Wort "frobnicator"` + unheard + "\n" + `own.yaml:6: Das Wort "frobnicatrix"` + unheard,
		"a:\n    sentences: [find (it]\n": unread + `3: Satz "find (it": ")" fehlt`,
		"a:\n    sentence: x\n":           unread + ` Zeile 3: Ein Intent hat kein "sentence"`,
		"a:\n    sentences: [find it]\n    answer: Here {it}.\n    end: x\n": unread + `2: Intent "a": end ist hang_up oder sleep, nicht "x"` +
			"\n" + `own.yaml:2: Intent "a": {it} steht nicht in jedem seiner Sätze`,
	} {
		if err := os.WriteFile(own, []byte("intents:\n  "+text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := appliance.CheckRecognizers(&c)
		if err == nil {
			t.Fatalf("%s has no fault", text)
		}
		if got := german(t, err); got != want {
			t.Errorf("a German owner reads\n%s\nwant\n%s", got, want)
		}
	}
}
