package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/command/commandtest"
)

// TestBashCompletesTools, commands of two words, choices and robots among them.
func TestBashCompletesTools(t *testing.T) {
	bin := t.TempDir()
	commandtest.Program(t, bin, "perch-tools", "")
	devices := "#!/bin/sh\n[ \"$1\" = devices ] || exit 1\necho 'a0b1c2d3e4f5  m5stack  2.2.4'\necho '              called kitchen'\n"
	if err := os.WriteFile(filepath.Join(bin, "perch"), []byte(devices), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"perch-tools pro":                      "provision",
		"perch-tools hooks ":                   "install remove send",
		"perch-tools hooks install ":           "claude codex",
		"perch-tools hooks install claude --w": "--write",
		"perch-tools hooks send s":             "state",
		"perch-tools robot --mode m":           "manual",
		"perch-tools robot --mode=m":           "manual",
		"perch-tools robot --firmware 2.":      "2.1 2.2.4 2.4 2.5",
		"perch-tools robot --framing ":         "1 2 3",
		"perch-tools image --c":                "--chip",
		"perch-tools completion f":             "fish",
		"perch-tools record ":                  "a0b1c2d3e4f5 kitchen",
		"perch-tools assets --robot k":         "kitchen",
		"perch-tools assets --robot ":          "a0b1c2d3e4f5 kitchen",
		"perch-tools nowhere ":                 "",
	} {
		if got := strings.Join(commandtest.Complete(t, commands(), bin, line), " "); got != want {
			t.Errorf("%s<tab> offers %q, want %q", line, got, want)
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
