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

// tests are the compiled tests of packages, in a folder.
type tests struct{ folder string }

func (t tests) remove() { _ = os.RemoveAll(t.folder) } // it is a temporary one

func (t tests) of(pkg string) string {
	return filepath.Join(t.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// compile compiles the tests of all packages, before any measurement.
func compile(ctx context.Context, runs []run) (t tests, err error) {
	if t.folder, err = os.MkdirTemp("", "perch-bench-"); err != nil {
		return t, err
	}
	for _, r := range runs {
		if _, err := os.Stat(t.of(r.folder)); err == nil {
			continue
		}
		fmt.Println("compiling the benchmarks of", r.folder)
		if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", t.of(r.folder), "./"+r.folder).CombinedOutput(); err != nil {
			t.remove()
			return t, fmt.Errorf("%s: %w\n%s", r.folder, err, out)
		}
	}
	return t, nil
}

// measure runs the benchmarks, each once per round, so that changes of the machine affect all
// alike, and adds their figures to seen. It continues after a failed benchmark, and returns
// its name in failed.
func (t tests) measure(ctx context.Context, runs []run, rounds int, profile bool, seen figures, out io.Writer) (failed []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for n, r := range runs {
			var printed bytes.Buffer
			cmd := exec.CommandContext(ctx, t.of(r.folder), "-test.run=^$", "-test.bench="+r.benchmarks, "-test.benchtime="+r.time,
				"-test.timeout=10m")
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = time.Minute
			cmd.Dir = r.folder
			cmd.Env = append(os.Environ(), "PERCH_BINARY="+filepath.Join(here, program))
			if profile {
				at := filepath.Join(here, profiles, fmt.Sprintf("%02d-%s", n, strings.ReplaceAll(r.folder, "/", "-")))
				if err := os.MkdirAll(at, 0o755); err != nil {
					return nil, err
				}
				cmd.Env = append(cmd.Env, "PERCH_PROFILES="+at)
				cmd.Args = append(cmd.Args, "-test.cpuprofile="+filepath.Join(at, "benchmark.cpu"),
					"-test.memprofile="+filepath.Join(at, "benchmark.heap"))
			}
			cmd.Stdout = io.MultiWriter(os.Stdout, out, &printed)
			cmd.Stderr = cmd.Stdout
			fmt.Printf("\n== %s %s, round %d of %d\n", r.folder, r.benchmarks, round+1, rounds)
			if err := cmd.Run(); ctx.Err() != nil {
				return nil, ctx.Err()
			} else if err != nil {
				failed = append(failed, fmt.Sprintf("%s %s: %v", r.folder, r.benchmarks, err))
			}
			if err := seen.read(&printed); err != nil {
				return nil, err
			}
		}
	}
	return failed, nil
}
