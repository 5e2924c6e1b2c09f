package config_test

import (
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
)

// TestPerchSpeechComesBeforeDefaults checks which configurations use the voice of a perch-speech that speaks English.
func TestPerchSpeechComesBeforeDefaults(t *testing.T) {
	address := appliancetest.FreeAddress(t)
	check := func(text, want string) {
		t.Helper()
		c, err := config.Source{File: appliancetest.WriteConfig(t, text), Speech: &config.PerchSpeech{Address: "tcp://" + address}}.Load()
		got := ""
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
	check("", "sphinx  espeak")
	appliancetest.StartPerchSpeech(t, address, "en-US")
	withVoice := appliancetest.WriteConfig(t, "---\nvoice: en-gb\n---\nYou are small.")
	for text, want := range map[string]string{
		"":                   "sphinx  wyoming espeak",
		"language: de":       "sphinx  espeak",
		"language: [ja, en]": "sphinx  wyoming openjtalk espeak",
		"{language: de, robots: {each: [{robot: a0b1c2d3e4f5, language: en}]}}": "sphinx  wyoming espeak",
		"speech: {synthesizers: [{kind: espeak}]}":                              "sphinx  espeak",
		"speech: {recognizers: [{kind: sphinx}]}":                               "sphinx  wyoming espeak",
		"robots: {each: [{robot: a0b1c2d3e4f5, voice: en-gb}]}":                 "sphinx  espeak", // a voice of espeak
		"persona: {file: " + withVoice + "}":                                    "sphinx  espeak",
	} {
		check(text, want)
	}
}
