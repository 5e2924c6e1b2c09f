package web_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"perch/must"
)

// TestServerSentencesAreTranslated runs the page's translator in Node. The sentences of the server are in English; the page
// finds the format string of each sentence and translates it, also if sentences are joined or contain others.
func TestServerSentencesAreTranslated(t *testing.T) {
	t.Parallel()
	cases := [][2]string{
		{`/d/gestures/a.json: not a file of gestures: gestures[0].name: "Bow" is not a name; write 1 to 40 lower-case letters, digits, - and _` +
			"\ngestures[0].frames: there are 0; a gesture has 1 to 64; correct or remove it, and restart the appliance",
			`/d/gestures/a.json: Keine Datei mit Gesten: gestures[0].name: "Bow" ist kein Name: Er hat 1 bis 40 Kleinbuchstaben, Ziffern, - und _` +
				"\ngestures[0].frames: Es sind 0; eine Geste hat 1 bis 64. Berichtige oder entferne es, und starte Perch neu."},
		{`the skill is not trusted: it is not signed; run perch skill sign /d/c to sign it as this appliance's owner; ` +
			`perch skill check /d/c checks it again; restart the appliance after that`,
			`Der Skill ist nicht vertrauenswürdig: Niemand hat ihn signiert; perch skill sign /d/c signiert ihn als Besitzer dieses Perch. ` +
				`perch skill check /d/c liest es noch einmal; starte Perch dann neu.`},
		{`own.yaml:3: the word "frob \"x\"" is not in the recognizer's dictionary; spell it another way or leave the sentence out`,
			`own.yaml:3: Das Wort "frob \"x\"" steht nicht im Wörterbuch des Erkenners; schreibe es anders oder lass den Satz weg`},
		{"12 MB free", "12 MB frei"},
		{"nobody has translated this; 12 MB free", "nobody has translated this; 12 MB frei"},
		{"nobody has translated this", ""},
		{strings.Repeat("it needs: ", 40) + "more", ""},
	}
	script, err := os.ReadFile("bundle.sh")
	must.Succeed(t, err)
	esbuild := regexp.MustCompile(`esbuild=(\S+)`).FindSubmatch(script)
	build := exec.Command("go", "run", string(esbuild[1]), "src/lib/translate.ts", "--bundle", "--format=iife", "--global-name=t")
	build.Dir, build.Env = "ui", append(os.Environ(), "GOFLAGS=-trimpath") // the flags of bundle.sh
	code, err := build.Output()
	must.Succeed(t, err)
	formats, err := os.ReadFile("../../../language/de/findings.json")
	must.Succeed(t, err)
	var sentences []string
	for _, c := range cases {
		sentences = append(sentences, c[0])
	}
	asked, err := json.Marshal(sentences)
	must.Succeed(t, err)
	node := exec.Command("node", "-")
	node.Stdin = strings.NewReader(string(code) + "\nconst all = t.translations(" + string(formats) + ");" +
		"console.log(JSON.stringify(" + string(asked) + `.map((s) => t.inWords(s, all) ?? "")))`)
	out, err := node.Output()
	var got []string
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || len(got) != len(cases) {
		t.Fatalf("%s: %v", out, err)
	}
	for i, c := range cases {
		if got[i] != c[1] {
			t.Errorf("%s\nis shown as %q,\nwant         %q", c[0], got[i], c[1])
		}
	}
}
