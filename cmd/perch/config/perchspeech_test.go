package config_test

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
)

// TestPerchSpeechComesBeforeDefaults checks which configurations use the voice of a perch-speech that speaks English.
func TestPerchSpeechComesBeforeDefaults(t *testing.T) {
	address := appliancetest.FreeAddress(t)
	check := func(text, want, why string) {
		t.Helper()
		speech := &config.PerchSpeech{Address: "tcp://" + address}
		c, err := config.Source{File: appliancetest.WriteConfig(t, text), Speech: speech}.Load()
		got, said := "", ""
		for _, part := range speech.Conditions(&c) {
			said = part.Note
		}
		if !strings.Contains(said, why) || why == "" && said != "" {
			t.Errorf("%q: it says %q", text, said)
		}
		for _, e := range c.Speech.Recognizers {
			got += e.Kind + " "
		}
		for _, e := range c.Speech.Synthesizers {
			got += " " + e.Kind
		}
		if err != nil || got != want {
			t.Errorf("%q has %s (%v), want %s", text, got, err, want)
		}
	}
	check("", "sphinx  espeak", "")
	appliancetest.StartPerchSpeech(t, address, "en-US")
	withVoice := appliancetest.WriteConfig(t, "---\nvoice: en-gb\n---\nYou are small.")
	const used, configured, otherVoice = "robots use its anna", "anna, because speech.synthesizers is configured", "anna, because the configuration names another"
	for text, want := range map[string][2]string{
		"":                   {"sphinx  wyoming espeak", used},
		"language: de":       {"sphinx  espeak", "none of their languages"},
		"language: [ja, en]": {"sphinx  wyoming openjtalk espeak", used},
		"{language: de, robots: {each: [{robot: a0b1c2d3e4f5, language: en}]}}": {"sphinx  wyoming espeak", used},
		"speech: {synthesizers: [{kind: espeak}]}":                              {"sphinx  espeak", configured},
		"speech: {recognizers: [{kind: sphinx}]}":                               {"sphinx  wyoming espeak", used},
		"robots: {each: [{robot: a0b1c2d3e4f5, voice: en-gb}]}":                 {"sphinx  espeak", otherVoice}, // a voice of espeak
		"persona: {file: " + withVoice + "}":                                    {"sphinx  espeak", otherVoice},
	} {
		check(text, want[0], want[1])
	}
}

// TestPerchSpeechMayRestart checks that one look at which perch-speech is away changes nothing.
func TestPerchSpeechMayRestart(t *testing.T) {
	address := appliancetest.FreeAddress(t)
	speech := &config.PerchSpeech{Address: "tcp://" + address}
	stop := appliancetest.StartPerchSpeech(t, address, "en-US")
	if !speech.Look(t.Context()) {
		t.Error("the first look finds nothing")
	}
	stop()
	for look, want := range []bool{false, true, false} {
		if got := speech.Look(t.Context()); got != want {
			t.Errorf("look %d after its end: changed %v", look+1, got)
		}
	}
}
