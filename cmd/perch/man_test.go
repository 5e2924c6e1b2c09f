package main

import (
	"testing"

	"perch/command/commandtest"
)

func TestManualPage(t *testing.T) {
	commandtest.CheckManual(t, commands(), "../../packaging/man/perch.1")
}

// TestInstalledCompletions compares the completion scripts in the package with those of the program.
func TestInstalledCompletions(t *testing.T) {
	commandtest.CheckCompletions(t, commands(), "../../packaging/completion")
}
