package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tests is a temporary folder with the compiled tests of packages.
type tests struct{ folder string }

// remove removes the folder.
func (t tests) remove() { _ = os.RemoveAll(t.folder) }

// file returns the path of a package's compiled tests.
func (t tests) file(pkg string) string {
	return filepath.Join(t.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// compile compiles the tests of the packages of all runs. The caller must call t.remove unless compile
// returns an error.
func compile(ctx context.Context, runs []run) (t tests, err error) {
	if t.folder, err = os.MkdirTemp("", "perch-bench-"); err != nil {
		return t, err
	}
	for _, r := range runs {
		if _, err := os.Stat(t.file(r.folder)); err == nil {
			continue
		}
		fmt.Println("compiling the benchmarks of", r.folder)
		if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", t.file(r.folder), "./"+r.folder).CombinedOutput(); err != nil {
			t.remove()
			return t, fmt.Errorf("%s: %w\n%s", r.folder, err, out)
		}
	}
	return t, nil
}

// measure carries out all runs once per round, so that a temporary load on the machine does not
// affect all measurements of the same run. It adds the figures to measured, and copies the output of
// the benchmarks to out. failed describes the runs that failed.
func (t tests) measure(ctx context.Context, runs []run, rounds int, profile bool, measured figures, out io.Writer) (failed []string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for n, r := range runs {
			var printed bytes.Buffer
			cmd := exec.CommandContext(ctx, t.file(r.folder), "-test.run=^$", "-test.bench="+r.benchmarks, "-test.benchtime="+r.time,
				"-test.timeout=10m")
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = time.Minute
			cmd.Dir = r.folder
			cmd.Env = append(os.Environ(), "PERCH_BINARY="+filepath.Join(root, program))
			if profile {
				dir := filepath.Join(root, profiles, fmt.Sprintf("%02d-%s", n, strings.ReplaceAll(r.folder, "/", "-")))
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return nil, err
				}
				cmd.Env = append(cmd.Env, "PERCH_PROFILES="+dir)
				cmd.Args = append(cmd.Args, "-test.cpuprofile="+filepath.Join(dir, "benchmark.cpu"),
					"-test.memprofile="+filepath.Join(dir, "benchmark.heap"))
			}
			cmd.Stdout = io.MultiWriter(os.Stdout, out, &printed)
			cmd.Stderr = cmd.Stdout
			fmt.Printf("\n== %s %s, round %d of %d\n", r.folder, r.benchmarks, round+1, rounds)
			if err := cmd.Run(); ctx.Err() != nil {
				return nil, ctx.Err()
			} else if err != nil {
				failed = append(failed, fmt.Sprintf("%s %s: %v", r.folder, r.benchmarks, err))
			}
			if err := measured.read(&printed); err != nil {
				return nil, err
			}
		}
	}
	return failed, nil
}
