package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
)

func TestCheckConfig(t *testing.T) {
	for text, code := range map[string]int{"": 0, "name: kitchen": 0, "nmae: x": 2, "{": 2} {
		var out, errs strings.Builder
		if got := run(t.Context(), []string{"check-config", appliancetest.Written(t, text)}, &out, &errs); got != code {
			t.Errorf("%q: exit code %d: %s%s", text, got, &out, &errs)
		}
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	text := "intents:\n  a:\n    sentences: [\"where is the frobnicator\"]\n    answer: \"Here.\"\n"
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code := run(t.Context(), []string{"check-config", appliancetest.Written(t, "brains: [{kind: reflex, sentences: "+own+"}]")}, &out, &errs)
	if code != 2 || !strings.Contains(errs.String(), "own.yaml:3") || !strings.Contains(errs.String(), "frobnicator") {
		t.Errorf("a word the recognizer does not know: %d %s", code, &errs)
	}
}

// TestTheDoctorOfAFaultyConfiguration tells its faults, and the code is theirs.
func TestTheDoctorOfAFaultyConfiguration(t *testing.T) {
	var out, errs strings.Builder
	code := run(t.Context(), []string{"doctor", "--data", t.TempDir(), "--config", appliancetest.Written(t, "nmae: x\nadoption: maybe")}, &out, &errs)
	if code != exitUsage || !strings.HasPrefix(out.String(), "2 faults") || strings.Count(out.String(), "FAIL  configuration  ") != 2 {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
}

func TestWrongUse(t *testing.T) {
	for line, code := range map[string]int{"": 2, "help": 0, "frobnicate": 2, "version": 0, "version x": 2, "serve --frob": 2, "serve extra": 2,
		"check-config a b": 2, "adopt": 2, "forget a b": 2, "serve --listen nowhere": 2} {
		var out, errs strings.Builder
		if got := run(t.Context(), strings.Fields(line), &out, &errs); got != code {
			t.Errorf("perch %s: exit code %d, want %d: %s", line, got, code, &errs)
		}
		if code != 0 && line != "" && strings.Count(strings.TrimSpace(errs.String()), "\n") > 0 {
			t.Errorf("perch %s complains in more than a line: %s", line, &errs)
		}
	}
}
