package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/command/commandtest"
	"perch/must"
)

func TestBashCompletion(t *testing.T) {
	bin := t.TempDir()
	commandtest.WriteProgram(t, bin, "perch-tools", "")
	devices := "#!/bin/sh\n[ \"$2 $3\" = 'list --json' ] || exit 1\necho '{\"robots\":[{\"id\":\"a0b1c2d3e4f5\",\"name\":\"kitchen\"}]}'\n"
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "perch"), []byte(devices), 0o700))
	for line, want := range map[string]string{
		"perch-tools ":                          "completion firmware help hooks robot",
		"perch-tools robot ":                    "flash nvs provision record",
		"perch-tools robot pro":                 "provision",
		"perch-tools hooks ":                    "install remove send",
		"perch-tools hooks install ":            "claude codex",
		"perch-tools hooks install claude --w":  "--write",
		"perch-tools hooks send s":              "state",
		"perch-tools robot --mode m":            "manual",
		"perch-tools robot --mode=m":            "manual",
		"perch-tools robot --firmware 2.":       "2.1 2.2.4 2.4 2.5",
		"perch-tools robot --framing ":          "1 2 3",
		"perch-tools firmware image --c":        "--chip",
		"perch-tools completion f":              "fish",
		"perch-tools robot record ":             "a0b1c2d3e4f5 kitchen",
		"perch-tools firmware assets --robot k": "kitchen",
		"perch-tools firmware assets --robot ":  "a0b1c2d3e4f5 kitchen",
		"perch-tools nowhere ":                  "",
	} {
		if got := strings.Join(commandtest.Complete(t, commands(), bin, line), " "); got != want {
			t.Errorf("%s<tab> offers %q, want %q", line, got, want)
		}
	}
}

func TestManualPage(t *testing.T) {
	commandtest.CheckManual(t, commands(), "../packaging/man/perch-tools.1")
}

func TestPagesShowValidCommands(t *testing.T) {
	commandtest.CheckPages(t, commands(), "..", 15)
}

func TestInstalledCompletions(t *testing.T) {
	commandtest.CheckCompletions(t, commands(), "../packaging/completion")
}
