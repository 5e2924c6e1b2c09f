package main

import (
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/store/archive/archivetest"
)

func TestCheckConfig(t *testing.T) {
	for text, code := range map[string]int{"": 0, "name: kitchen": 0, "nmae: x": 2, "{": 2} {
		bare(t, "check-config "+appliancetest.WriteConfig(t, text), code)
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	archivetest.Write(t, own, []byte("intents:\n  a:\n    sentences: [\"where is the frobnicator\"]\n    answer: \"Here.\"\n"))
	out := bare(t, "check-config "+appliancetest.WriteConfig(t, "brains: [{kind: reflex, sentences: "+own+"}]"), exitUsage)
	if !strings.Contains(out, "own.yaml:3") || !strings.Contains(out, "frobnicator") {
		t.Errorf("a word the recognizer does not know: %s", out)
	}
}

// TestTheDoctorOfAFaultyConfiguration checks that perch doctor prints each fault of the configuration, and that its
// exit code is 2.
func TestTheDoctorOfAFaultyConfiguration(t *testing.T) {
	out := bare(t, "doctor --data "+t.TempDir()+" --config "+appliancetest.WriteConfig(t, "nmae: x\nadoption: maybe"), exitUsage)
	if !strings.HasPrefix(out, "2 faults") || strings.Count(out, "FAIL  configuration  ") != 2 {
		t.Errorf("it says %s", out)
	}
}

func TestWrongUse(t *testing.T) {
	for line, code := range map[string]int{"": 2, "help": 0, "frobnicate": 2, "version": 0, "--version": 0, "version x": 2, "serve --frob": 2, "serve extra": 2,
		"check-config a b": 2, "robot adopt": 2, "robot forget a b": 2, "serve --listen nowhere": 2} {
		if out := bare(t, line, code); code != 0 && line != "" && strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("perch %s complains in more than a line: %s", line, out)
		}
	}
}

// TestLanguagesThatNobodyKnows checks the warnings about languages without a recognizer, a synthesizer or phrases, and
// that openjtalk is a default synthesizer for Japanese.
func TestLanguagesThatNobodyKnows(t *testing.T) {
	t.Parallel()
	const deaf, dumb = "no recognizer supports", "no synthesizer speaks"
	whisper := `recognizers: [{kind: wyoming, url: "tcp://127.0.0.1:1"}]`
	for _, c := range []struct{ text, says, not string }{
		{"language: en", "no faults", "language"},
		{"language: de-AT\nbrains: [{kind: none}]", deaf + ` "de": sphinx supports only English; add one of kind wyoming`, dumb},
		{"language: de\nbrains: [{kind: none}]\nspeech: {" + whisper + "}", "no faults", "language"},
		{"language: ja\nbrains: [{kind: none}]\nspeech: {" + whisper + "}", "no faults", "language"},
		{"language: [en, de]\nspeech: {" + whisper + "}", "no faults", "language"},
		{"language: en, de", deaf + ` "de": sphinx supports only English`, dumb},
		{"language: de\nbrains: [{kind: reflex}]", deaf + ` "de"`, dumb}, // the reflex brain has German sentences, but sphinx hears only English
		{"language: it\nbrains: [{kind: none}]\nspeech: {" + whisper + "}", `what Perch says by itself is English where people speak "it"`, deaf},
		{"language: it\nbrains: [{kind: reflex}]\nspeech: {" + whisper + "}",
			`where people speak "it", and so are the sentences of the reflex brain; ` +
				"add a language model to brains, which answers in it: docs/how-to/ollama.md", deaf},
		{"language: [en, tlh]\nbrains: [{kind: openai, url: \"http://h:1/v1\", model: m}, {kind: reflex}]\nspeech: {" + whisper + "}",
			`where people speak "tlh", and so are the sentences of the reflex brain; its other brains answer in it`, deaf},
		{"language: it", deaf + ` "it": sphinx supports only English`, dumb},
		{"robots: {each: [{robot: \"a0:b1:c2:d3:e4:f5\", language: de}]}", deaf + ` "de": sphinx supports only English; add one of kind wyoming`, dumb},
		{"language: ja\nbrains: [{kind: none}]\nspeech: {" + whisper + ", synthesizers: [{kind: espeak}]}",
			dumb + ` "ja": espeak cannot read kanji; add {kind: openjtalk} to speech.synthesizers, before espeak`, deaf},
		{"language: en\nspeech: {synthesizers: [{kind: openjtalk}]}", dumb + ` "en": openjtalk speaks only Japanese; add {kind: espeak}`, deaf},
		{"brains: [{kind: none}]\nrobots: {each: [{robot: \"a0:b1:c2:d3:e4:f5\", language: ja}]}\nspeech: {" + whisper +
			", synthesizers: [{kind: espeak}]}", dumb + ` "ja"`, deaf},
	} {
		out := bare(t, "check-config "+appliancetest.WriteConfig(t, c.text), exitDone)
		if !strings.Contains(out, c.says) || strings.Contains(strings.ReplaceAll(out, t.TempDir(), ""), c.not) {
			t.Errorf("%s\n%s", c.text, out)
		}
	}
	c, err := appliancetest.Load(appliancetest.WriteConfig(t, "language: ja-JP\nbrains: [{kind: none}]"))
	if s := c.Speech.Synthesizers; err != nil || len(s) != 2 || s[0].Kind != "openjtalk" || s[1].Kind != "espeak" {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestCheckConfigNamesWhatItSkips checks that check-config names the settings of the service that it did not check,
// because the user may not read them.
func TestCheckConfigNamesWhatItSkips(t *testing.T) {
	service := &config.Account{}
	for name, c := range map[string]struct {
		source config.Source
		data   string
		want   string
	}{
		"a member of the group":  {config.Source{Service: service, Overlay: "data/settings.yaml"}, "", "/var/lib/perch/settings.yaml"},
		"root":                   {config.Source{Service: service, Overlay: "/var/lib/perch/settings.yaml"}, "", ""},
		"a named data directory": {config.Source{Service: service, Overlay: "x/settings.yaml"}, "x", ""},
		"a file of one's own":    {config.Source{Overlay: "data/settings.yaml"}, "", ""},
	} {
		var out strings.Builder
		got := skipped(c.source, c.data)
		checkedConfig{Skipped: got}.write(&out)
		if got != c.want || strings.Contains(out.String(), "not checked: /var/lib") != (c.want != "") {
			t.Errorf("%s: %q, %s", name, got, &out)
		}
	}
}

// TestSetSaysWhatNeedsARestart checks that a change counts as waiting for a restart only if it needs one itself, not
// because earlier changes need one.
func TestSetSaysWhatNeedsARestart(t *testing.T) {
	const restart = " takes effect after a restart: sudo systemctl restart perch"
	const earlier = "\nearlier changes that take effect after a restart (sudo systemctl restart perch): "
	for _, c := range []struct {
		key     string
		waiting []string
		want    string
	}{
		{"name", []string{"name"}, "name" + restart},
		{"name", []string{"listen", "name"}, "name" + restart + earlier + "listen"},
		{"speech.silence", []string{"listen", "name"}, "speech.silence is in effect" + earlier + "listen, name"},
		{"relays.0.url", []string{"relays"}, "relays.0.url" + restart},
	} {
		if got := effectText(c.key, c.waiting); got != c.want {
			t.Errorf("%s: %q", c.key, got)
		}
	}
}
