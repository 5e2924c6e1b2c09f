package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/command/commandtest"
)

// TestBashCompletesTools, commands of two words, choices and robots among them.
func TestBashCompletesTools(t *testing.T) {
	bin := t.TempDir()
	commandtest.Program(t, bin, "perch-tools", "")
	devices := "#!/bin/sh\n[ \"$1\" = devices ] || exit 1\necho 'a0b1c2d3e4f5  m5stack  2.2.4'\necho '              called kitchen'\n"
	noError(t, os.WriteFile(filepath.Join(bin, "perch"), []byte(devices), 0o700))
	for line, want := range map[string]string{
		"perch-tools ":                         "completion firmware help hooks robot",
		"perch-tools robot ":                   "flash nvs provision record simulate",
		"perch-tools robot pro":                "provision",
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

// TestEarlierSpellings: the commands of robot and firmware work without that
// word, and neither help nor completion shows them twice.
func TestEarlierSpellings(t *testing.T) {
	for _, group := range command.Visible(commands()) {
		if group.Name() != "robot" && group.Name() != "firmware" {
			continue
		}
		for _, c := range command.Visible(group) {
			if c.Name() == "simulate" {
				continue // it is robot without a command
			}
			_, now, _ := tools(group.Name(), c.Name(), "--help")
			_, before, _ := tools(c.Name(), "--help")
			if now == "" || strings.Replace(now, group.Name()+" "+c.Name(), c.Name(), 1) != before {
				t.Errorf("%s %s:\n%s\n%s:\n%s", group.Name(), c.Name(), now, c.Name(), before)
			}
			if slices.ContainsFunc(command.Visible(commands()), func(each *cobra.Command) bool { return each.Name() == c.Name() }) {
				t.Errorf("%s is shown twice", c.Name())
			}
		}
	}
	_, now, _ := tools("robot", "simulate", "--help")
	_, before, _ := tools("robot", "--help")
	_, options, found := strings.Cut(now, "Options:\n")
	if options = strings.Replace(options, "help for simulate", "help for robot", 1); !found || !strings.HasSuffix(before, options) {
		t.Errorf("robot simulate:\n%s\nrobot:\n%s", now, before)
	}
}

func TestManualPage(t *testing.T) {
	commandtest.Manual(t, commands(), "../packaging/man/perch-tools.1")
}

// TestCommandsOfPages: the pages show commands and options that perch-tools has.
func TestCommandsOfPages(t *testing.T) {
	commandtest.Pages(t, commands(), "..", 15)
}

// TestInstalledCompletions: the package installs the program's scripts.
func TestInstalledCompletions(t *testing.T) {
	commandtest.Completions(t, commands(), "../packaging/completion")
}
