package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands' part of a manual page is between these lines, and written by
// this test: PERCH_GOLDEN=rewrite go test -run '^(TestManualPage|TestInstalledCompletions)$'.
const (
	manBegin = ".\\\" What follows is written by a test, from what the commands answer to --help.\n"
	manEnd   = ".\\\" End of what is written by a test.\n"
)

// manText is a text as roff reads it.
func manText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// manCommands lists commands and options.
func manCommands(program string, commands []shellCommand) string {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, ".SS %s\n.B %s\n", manText(c.name), manText(program+" "+c.name))
		for _, a := range c.arguments {
			fmt.Fprintf(&b, ".I %s\n", manText(a))
		}
		if len(c.options) > 0 {
			b.WriteString("[options]\n")
		}
		fmt.Fprintf(&b, ".PP\nIt %s.\n", manText(strings.TrimPrefix(c.does, "It ")))
		for _, o := range c.options {
			if o.value == "" {
				fmt.Fprintf(&b, ".TP\n.B %s\n", manText(o.name))
			} else {
				fmt.Fprintf(&b, ".TP\n.BI \"%s \" \"%s\"\n", manText(o.name), manText(o.value))
			}
			does := o.does
			for _, sign := range []string{": ", "; "} { // else it goes on from the value's name
				does = strings.TrimPrefix(does, o.value+sign)
			}
			fmt.Fprintf(&b, "%s\n", manText(does))
		}
	}
	return b.String()
}

// checkManual compares a page with the commands, and rewrites it where that is
// wanted. The page is clean, where something is installed that can tell.
func checkManual(t *testing.T, program string, commands []shellCommand) {
	t.Helper()
	path := filepath.Join("../packaging/man", program+".1")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), manBegin)
	_, after, ended := strings.Cut(rest, manEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for the commands", path)
	}
	want := before + manBegin + manCommands(program, commands) + manEnd + after
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Errorf("%s does not tell of the commands and options there are; PERCH_GOLDEN=rewrite has it written anew", path)
	}
	for _, linter := range [][]string{{"mandoc", "-T", "lint", "-W", "warning", path}, {"man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", path}} {
		program, err := exec.LookPath(linter[0])
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), program, linter[1:]...)
		cmd.Env = append(os.Environ(), "MANWIDTH=80", "MANROFFSEQ=", "LC_ALL=C.UTF-8")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if linter[0] == "mandoc" {
			errs.Write(out)
		}
		if err != nil || errs.Len() > 0 {
			t.Errorf("%s says %s (%v)", linter[0], &errs, err)
		}
	}
}

func TestManualPage(t *testing.T) {
	all, err := shellCommands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkManual(t, "perch-tools", all)
}

// TestInstalledCompletions: the package installs what the program writes.
func TestInstalledCompletions(t *testing.T) {
	for shell := range strings.SplitSeq(shellNames, "|") {
		var script bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, &script, &script); code != 0 {
			t.Fatalf("exit code %d: %s", code, &script)
		}
		path := filepath.Join("../packaging/completion", "perch-tools."+shell)
		if os.Getenv("PERCH_GOLDEN") == "rewrite" {
			if err := os.WriteFile(path, script.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if installed, err := os.ReadFile(path); err != nil || !bytes.Equal(installed, script.Bytes()) {
			t.Errorf("%s is not what the program writes (%v); PERCH_GOLDEN=rewrite has it written anew", path, err)
		}
	}
}
