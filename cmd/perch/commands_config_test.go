package main

import (
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/store/archive/archivetest"
)

func TestCheckConfig(t *testing.T) {
	for text, code := range map[string]int{"": 0, "name: kitchen": 0, "nmae: x": 2, "{": 2} {
		bare(t, "check-config "+appliancetest.Written(t, text), code)
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	archivetest.Write(t, own, []byte("intents:\n  a:\n    sentences: [\"where is the frobnicator\"]\n    answer: \"Here.\"\n"))
	out := bare(t, "check-config "+appliancetest.Written(t, "brains: [{kind: reflex, sentences: "+own+"}]"), exitUsage)
	if !strings.Contains(out, "own.yaml:3") || !strings.Contains(out, "frobnicator") {
		t.Errorf("a word the recognizer does not know: %s", out)
	}
}

// TestTheDoctorOfAFaultyConfiguration tells its faults, and the code is theirs.
func TestTheDoctorOfAFaultyConfiguration(t *testing.T) {
	out := bare(t, "doctor --data "+t.TempDir()+" --config "+appliancetest.Written(t, "nmae: x\nadoption: maybe"), exitUsage)
	if !strings.HasPrefix(out, "2 faults") || strings.Count(out, "FAIL  configuration  ") != 2 {
		t.Errorf("it says %s", out)
	}
}

func TestWrongUse(t *testing.T) {
	for line, code := range map[string]int{"": 2, "help": 0, "frobnicate": 2, "version": 0, "version x": 2, "serve --frob": 2, "serve extra": 2,
		"check-config a b": 2, "adopt": 2, "forget a b": 2, "serve --listen nowhere": 2} {
		if out := bare(t, line, code); code != 0 && line != "" && strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("perch %s complains in more than a line: %s", line, out)
		}
	}
}
