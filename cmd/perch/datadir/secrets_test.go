package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"perch/must"
)

// TestSecretCutOff: Secret removes the unfinished files that a power failure has left, and writes a new secret.
func TestSecretCutOff(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"admin-token.123.tmp", "admin-token.456.tmp"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
	}
	must.Value(Secret(dir, "admin-token", slog.New(slog.DiscardHandler)))(t)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "admin-token" {
		t.Errorf("there are %v, %v", files, err)
	}
}
