// Package commandtest runs the binary of a test as the program under test, or as another user. It
// also checks a program's manual page, completion scripts and documentation against its commands.
package commandtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/must"
)

// asProgram is the environment variable that makes the binary of a test run the program.
const asProgram = "PERCH_TEST_AS_PROGRAM"

// Main runs main and exits if a script of WriteProgram has started the binary of the test. TestMain
// must call it first.
func Main(main func()) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
}

// WriteProgram writes a shell script called name into dir. The script runs the lines in before, and
// then the binary of this test as the program.
func WriteProgram(t *testing.T, dir, name, before string) {
	t.Helper()
	self, err := os.Executable()
	must.Succeed(t, err)
	script := fmt.Sprintf("#!/bin/sh\n%s\n%s=1 exec '%s' \"$@\"\n", before, asProgram, self)
	must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
}

// OpenFolder returns a temporary folder that every user may enter.
func OpenFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must.Succeed(t, os.Chmod(d, 0o755))
	}
	return dir
}

// RunAsNobody runs the test called name in this binary as the user nobody, who has no rights.
func RunAsNobody(t *testing.T, name string) {
	t.Helper()
	scratch := OpenFolder(t)
	must.Succeed(t, os.Chmod(scratch, 0o777))
	// The path is /proc/self/exe because the user nobody may not have access to the binary's folder.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+name+"$", "-test.v")
	cmd.Dir, cmd.Env = scratch, append(os.Environ(), "TMPDIR="+scratch, "HOME="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// Complete returns the completions that bash offers at the end of a command line, sorted. The
// program is in the folder bin. Names of files are not included: bash completes them itself.
func Complete(t *testing.T, root *cobra.Command, bin, line string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	var script bytes.Buffer
	must.Succeed(t, command.WriteCompletion(&script, root, "bash"))
	script.WriteString("compopt() { :; }\n") // the builtin works only in an interactive shell
	fmt.Fprintf(&script, "COMP_LINE='%s' COMP_POINT=%d COMP_TYPE=9\n__start_%s\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n", line, len(line), root.Name())
	c := exec.CommandContext(t.Context(), bash, "--norc", "-c", script.String())
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil || errs.Len() > 0 {
		t.Errorf("%s: bash: %v %s", line, err, &errs)
	}
	completions := strings.Fields(string(out))
	slices.Sort(completions)
	return completions
}

// checkGolden compares a file with its expected content. PERCH_GOLDEN=rewrite rewrites the file.
func checkGolden(t *testing.T, path string, want []byte) {
	t.Helper()
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		must.Succeed(t, os.WriteFile(path, want, 0o644))
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not agree with the program's commands (%v); PERCH_GOLDEN=rewrite rewrites it", path, err)
	}
}

// CheckCompletions compares the completion scripts in a folder with those of the program, and checks
// their syntax with the shells that are installed.
func CheckCompletions(t *testing.T, root *cobra.Command, dir string) {
	t.Helper()
	for _, shell := range command.Shells() {
		var script bytes.Buffer
		must.Succeed(t, command.WriteCompletion(&script, root, shell))
		file := filepath.Join(dir, root.Name()+"."+shell)
		checkGolden(t, file, script.Bytes())
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), program, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s", shell, err, out)
		}
	}
}

// commandLine is the regular expression of a command line in a page. %s is the program. The groups
// are the program and its arguments.
const commandLine = "(?m)^ {4,}(?:sudo )?(?:-u perch )?(?:bin/)?(%s)( .*|)$"

// CheckPages checks the command lines in the Markdown files of the folder project, and of docs and
// docs/how-to in it: the program must have these commands and options. There must be at least minLines
// command lines.
func CheckPages(t *testing.T, root *cobra.Command, project string, minLines int) {
	t.Helper()
	count, lines := 0, regexp.MustCompile(fmt.Sprintf(commandLine, regexp.QuoteMeta(root.Name())))
	for _, folder := range []string{"", "docs", "docs/how-to"} {
		names, err := filepath.Glob(filepath.Join(project, folder, "*.md"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no pages in %q, %v", folder, err)
		}
		for _, name := range names {
			page, err := os.ReadFile(name)
			must.Succeed(t, err)
			for _, line := range lines.FindAllStringSubmatch(string(page), -1) {
				count++
				words, _, _ := strings.Cut(line[2], " #")
				if fault := checkLine(root, strings.Fields(words)); fault != "" {
					t.Errorf("%s: %s%s: %s", name, line[1], line[2], fault)
				}
			}
		}
	}
	if count < minLines {
		t.Errorf("only %d command lines were found", count)
	}
}

// checkLine returns the fault of a command line, or "" if the program accepts it.
func checkLine(root *cobra.Command, words []string) string {
	c, _, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if !c.Runnable() {
		return "no such command"
	}
	for _, word := range words {
		option, _, _ := strings.Cut(word, "=")
		if name, isOption := strings.CutPrefix(option, "--"); isOption && c.Flags().Lookup(name) == nil {
			return c.CommandPath() + " has no " + option
		}
	}
	return ""
}

// The description of the commands in a manual page is between these lines.
// PERCH_GOLDEN=rewrite go test -run TestManualPage rewrites it.
const (
	manBegin = ".\\\" What follows is written by a test, from what the commands answer to --help.\n"
	manEnd   = ".\\\" End of what is written by a test.\n"
)

// CheckManual compares a manual page with the commands, and checks its roff with mandoc and man if
// they are installed.
func CheckManual(t *testing.T, root *cobra.Command, path string) {
	t.Helper()
	page, err := os.ReadFile(path)
	must.Succeed(t, err)
	before, rest, begun := strings.Cut(string(page), manBegin)
	_, after, ended := strings.Cut(rest, manEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for the commands", path)
	}
	checkGolden(t, path, []byte(before+manBegin+command.Manual(root)+manEnd+after))
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
