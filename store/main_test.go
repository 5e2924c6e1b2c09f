package store

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"perch/must"
)

// TestMain also implements the child processes of these tests: if PERCH_STORE_CHILD is set, the test program does what its
// value says with the file PERCH_STORE_FILE, until it is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("PERCH_STORE_CHILD") {
	case "put":
		childPuts(os.Getenv("PERCH_STORE_FILE"))
	case "hold":
		childHolds(os.Getenv("PERCH_STORE_FILE"))
	case "compact":
		childCompacts(os.Getenv("PERCH_STORE_FILE"))
	case "open":
		childOpens(os.Getenv("PERCH_STORE_FILE"))
	default:
		goleak.VerifyTestMain(m)
	}
}

// child starts this program as a child process with a role, which is a value of PERCH_STORE_CHILD, and returns its standard
// output. The process is killed when the test ends.
func child(t *testing.T, role, file string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PERCH_STORE_CHILD="+role, "PERCH_STORE_FILE="+file)
	cmd.Stderr = os.Stderr
	out := must.Value(cmd.StdoutPipe())(t)
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func childFails(err error) {
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}

// robot is an example of a value in a table.
type robot struct {
	Name  string         `json:"name"`
	Count int            `json:"count,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	Extra map[string]any `json:"extra,omitempty"`
}

func dbPath(t testing.TB) string { return filepath.Join(t.TempDir(), "perch.db") }

func open(t testing.TB, path string, o Options) *DB {
	t.Helper()
	db := must.Value(Open(path, o))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	return must.Value(os.ReadFile(path))(t)
}
