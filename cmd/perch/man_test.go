package main

import (
	"testing"

	"perch/command/commandtest"
)

func TestManualPage(t *testing.T) {
	commandtest.CheckManual(t, commands(), "../../packaging/man/perch.1")
}

// TestInstalledCompletions: the package installs the program's scripts.
func TestInstalledCompletions(t *testing.T) {
	commandtest.CheckCompletions(t, commands(), "../../packaging/completion")
}
