package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// build builds the program once for all tests, and returns its path. TestMain sets it.
var build func() (path string, err error)

// buildProgram builds the program into dir, with the flags that this test's binary was built
// with, so that its packages are compiled already.
func buildProgram(dir string) (path string, err error) {
	path = filepath.Join(dir, "perch")
	args := []string{"build", "-o", path, "-buildvcs=false"}
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-tags" || s.Key == "-trimpath" {
			args = append(args, s.Key+"="+s.Value)
		}
	}
	if out, err := exec.Command("go", append(args, "perch/cmd/perch")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// perchBinary returns the path of the program.
func perchBinary(t testing.TB) string {
	t.Helper()
	path := must.Value(build())(t)
	return path
}

// execute runs a command line of the program, and returns its exit code.
func execute(ctx context.Context, t testing.TB, out, errs io.Writer, args ...string) int {
	t.Helper()
	c := exec.CommandContext(ctx, perchBinary(t), args...)
	c.Stdout, c.Stderr = out, errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// commandLine runs a command line of the program, and returns its exit code and output.
func commandLine(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), t, &o, &e, args...)
	return code, o.String(), e.String()
}

// bare runs a command line without additional flags, and checks its exit code and that its output contains says. It
// returns the output.
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

// command runs a command line against the appliance's socket.
func (h *running) command(line string, code int, says ...string) string {
	h.T.Helper()
	return bare(h.T, line+" --data "+h.Data, code, says...)
}

// byNetwork runs a command against the appliance's network address, with the owner's token.
func (h *running) byNetwork(line string, code int, says ...string) string {
	h.T.Helper()
	return bare(h.T, line+" --url "+h.URL("")+" --token-file "+filepath.Join(h.Data, "admin-token"), code, says...)
}

// elsewherePorts writes a configuration with ports that the kernel chooses, and returns its path.
func elsewherePorts(t *testing.T) string {
	t.Helper()
	return appliancetest.WriteConfig(t, "listen: [\"127.0.0.1:0\"]\nlocal: [\"127.0.0.1:0\"]\nmqtt: {broker: none}\n")
}
