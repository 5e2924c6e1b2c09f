// Package discovery_test builds the component for the machine it runs on, over
// stubs of ESP-IDF, and runs its tests under the sanitizers.
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

// compiles are the compiler's options: warnings are errors, as in ESP-IDF, and a
// byte out of bounds or a leak ends the test.
var compiles = []string{"-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-g", "-O1",
	"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Iinclude", "-Itest/stub"}

// TestComponent runs test/host_test.c.
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

// readAll reads every file that the compiler reads. The go command caches a test by
// the files that the test itself reads.
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
