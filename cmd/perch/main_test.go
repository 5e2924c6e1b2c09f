package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/command"
	"perch/command/commandtest"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func TestMain(m *testing.M) {
	commandtest.Main(main)
	goleak.VerifyTestMain(m)
}

// commandLine runs a command line, and returns its exit code and what it prints.
func commandLine(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

// bare runs a command line and returns what it prints on both streams. The test fails unless the exit code is code
// and the output contains each of says.
func bare(t *testing.T, line string, code int, says ...string) string {
	t.Helper()
	got, out, errs := commandLine(t, strings.Fields(line)...)
	out += errs
	if got != code {
		t.Errorf("perch %s: exit code %d, want %d: %s", line, got, code, out)
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			t.Errorf("perch %s says %s\nand not %q", line, out, want)
		}
	}
	return out
}

// TestHelp checks that the help of every listed command contains its short description.
func TestHelp(t *testing.T) {
	all := command.Visible(commands())
	for _, group := range slices.Clone(all) {
		all = append(all, command.Visible(group)...)
	}
	for _, c := range all {
		bare(t, strings.TrimPrefix(c.CommandPath(), "perch ")+" --help", exitDone, c.Short)
	}
}
