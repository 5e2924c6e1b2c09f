package main

import (
	"testing"

	"perch/command/commandtest"
)

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
