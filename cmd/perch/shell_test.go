package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// completed is what bash offers at the end of a command line.
func completed(t *testing.T, script, path string, words ...string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its completion is tried by bash itself, in CI")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	quotedWords := make([]string, len(words))
	for i, w := range words {
		quotedWords[i] = shellQuoted(w)
	}
	text := script + fmt.Sprintf("\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_perch\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n", strings.Join(quotedWords, " "),
		len(words)-1)
	cmd := exec.CommandContext(ctx, bash, "--norc", "-c", text)
	cmd.Env = append(os.Environ(), "PATH="+path)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if errs.Len() > 0 {
		t.Errorf("%q: bash says %s (%v)", words, &errs, err)
	}
	list := strings.Fields(string(out))
	slices.Sort(list)
	return list
}

func TestBashCompletes(t *testing.T) {
	var script bytes.Buffer
	if code := run(t.Context(), []string{"completion", "bash"}, &script, &script); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &script)
	}
	// A perch of its own, which knows two robots.
	bin := t.TempDir()
	devices := "#!/bin/sh\n[ \"$1\" = devices ] || exit 1\necho 'a0b1c2d3e4f5  m5stack  2.2.4'\necho '              touch'\necho 'a0b1c2d3e4f6  m5stack  2.2.4'\necho '              called kitchen'\n"
	if err := os.WriteFile(filepath.Join(bin, "perch"), []byte(devices), 0o700); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(data, "folder"), 0o700), os.WriteFile(filepath.Join(data, "file.yaml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	path := bin + ":" + os.Getenv("PATH")
	var verbs []string
	for _, c := range commands() {
		first, _, _ := strings.Cut(c.name, " ")
		verbs = append(verbs, first)
	}
	slices.Sort(verbs)
	verbs = slices.Compact(verbs)
	ids := []string{"a0b1c2d3e4f5", "a0b1c2d3e4f6"}
	robots := append(ids[:2:2], "kitchen")
	for line, want := range map[string][]string{
		"perch ":                                verbs,
		"perch fo":                              {"forget"},
		"perch nothing ":                        {},
		"perch doctor --":                       {"--config", "--data", "--show-secrets"},
		"perch serve --log-level ":              {"debug", "error", "info", "warn"},
		"perch serve --log-level w":             {"warn"},
		"perch notify --urgency = h":            {"high"},
		"perch notify --urgency =":              {"high", "low", "normal"},
		"perch notify --robot a":                ids,
		"perch notify --url ":                   {},
		"perch say ":                            robots,
		"perch say --url http://p a0b1c2d3e4f5": {"a0b1c2d3e4f5"},
		"perch say a0b1c2d3e4f5 ":               {},
		"perch forget a0b1c2d3e4f6":             {"a0b1c2d3e4f6"},
		"perch adopt ":                          robots,
		"perch robot ":                          {"rename", "set", "show"},
		"perch robot rename k":                  {"kitchen"},
		"perch completion ":                     {"bash", "fish", "zsh"},
		"perch check-config " + data + "/":      {data + "/file.yaml", data + "/folder"},
		"perch serve --data " + data + "/":      {data + "/folder"},
	} {
		if got := completed(t, script.String(), path, strings.Split(line, " ")...); !slices.Equal(got, want) {
			t.Errorf("%s<tab> offers %q, want %q", line, got, want)
		}
	}
}

// TestOtherShellsTakeTheirScripts, where they are installed.
func TestOtherShellsTakeTheirScripts(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			var script bytes.Buffer
			if code := run(t.Context(), []string{"completion", shell}, &script, &script); code != exitDone {
				t.Fatalf("exit code %d: %s", code, &script)
			}
			all, err := shellCommands(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				for _, o := range c.options {
					if name := strings.TrimPrefix(o.name, "--"); !strings.Contains(script.String(), "-l "+name+" ") &&
						!strings.Contains(script.String(), "*--"+name) {
						t.Errorf("%s %s is not in it", c.name, o.name)
					}
				}
			}
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("is not installed; its syntax is not checked")
			}
			file := filepath.Join(t.TempDir(), "_perch")
			if err := os.WriteFile(file, script.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestACompletionThatIsNone(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != exitUsage || strings.Contains(out.String(), "complete ") {
			t.Errorf("%q: exit code %d, %s", args, code, &out)
		}
	}
}
