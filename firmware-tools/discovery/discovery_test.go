// Package discovery_test tests perch_discovery, a component for robot firmware that is written in C.
// It compiles the component and the component's own tests for this machine, with stubs in place of
// ESP-IDF, and runs them with the compiler's sanitizers.
package discovery_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compiles are the compiler's options. Warnings are errors, as in ESP-IDF. The sanitizers end the
// test after an access out of bounds, a memory leak or undefined behaviour.
var compiles = []string{"-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-g", "-O1",
	"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Iinclude", "-Itest/stub"}

// TestComponent compiles and runs test/host_test.c, which prints "done" at the end.
func TestComponent(t *testing.T) {
	readAll(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "host_test")
	args := append(append([]string{}, compiles...), "-o", program, "test/host_test.c", "src/perch_discovery.c", "src/perch_discovery_idf.c")
	if out, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("the component does not compile: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(string(out), "\ndone\n") {
		t.Errorf("it did not come to its end:\n%s", out)
	}
}

// readAll reads every file of the component, so that the go command does not use a cached result
// after one of the files has changed. The go command does not notice the files that the compiler reads.
func readAll(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		_, err = os.ReadFile(name)
		return err
	})
	must.Succeed(t, err)
}
