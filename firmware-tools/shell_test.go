package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBashCompletesTools, commands of two words and choices among them.
func TestBashCompletesTools(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its completion is tried by bash itself, in CI")
	}
	var script bytes.Buffer
	if code := run(t.Context(), []string{"completion", "bash"}, &script, &script); code != 0 {
		t.Fatalf("exit code %d: %s", code, &script)
	}
	for line, want := range map[string]string{
		"perch-tools pro":                      "provision",
		"perch-tools hooks ":                   "install remove send",
		"perch-tools hooks install ":           "claude codex",
		"perch-tools hooks install claude --w": "--write",
		"perch-tools hooks send s":             "state",
		"perch-tools robot --mode m":           "manual",
		"perch-tools robot --firmware 2.":      "2.1 2.2.4 2.4 2.5",
		"perch-tools robot --framing ":         "1 2 3",
		"perch-tools image --c":                "--chip",
		"perch-tools completion f":             "fish",
		"perch-tools nowhere ":                 "",
	} {
		words := strings.Split(line, " ")
		for i := range words {
			words[i] = shellQuoted(words[i])
		}
		text := script.String() + "\nCOMP_WORDS=(" + strings.Join(words, " ") + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_perch_tools\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
		out, err := exec.CommandContext(t.Context(), bash, "--norc", "-c", text).CombinedOutput()
		got := strings.Fields(string(out))
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s<tab> offers %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestACompletionThatIsNone(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "--what"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != 2 {
			t.Errorf("%q: exit code %d, %s", args, code, &out)
		}
	}
}
