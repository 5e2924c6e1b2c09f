package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"perch/store"
)

// Secret reads a secret from its file in the data directory. It takes the file's permissions away from
// other users, and refuses a secret of fewer than 16 bytes. If the file is missing, it writes a new
// secret of 32 random bytes in hexadecimal. It logs the path of the file, never the secret.
func Secret(data, name string, log *slog.Logger) (string, error) {
	path := filepath.Join(data, name)
	text, err := os.ReadFile(path)
	if err == nil {
		s := strings.TrimSpace(string(text))
		if err = restrict(path, log); err == nil && len(s) < 16 {
			err = fmt.Errorf("the secret in %s has fewer than 16 bytes; remove the file to have a new one made", path)
		}
		return s, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	if err := store.RemoveUnfinished(path); err != nil {
		return "", fmt.Errorf("write a new secret: %w", err)
	}
	s := randomHex(32)
	if err := writeSecret(path, s); err != nil {
		return "", fmt.Errorf("write a new secret: %w", err)
	}
	log.Info("a secret was made", "file", path)
	return s, nil
}

func randomHex(n int) string {
	random := make([]byte, n)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	return hex.EncodeToString(random)
}

// restrict removes the permissions of everybody except the file's owner. A file that other tools
// have restored may have such permissions.
func restrict(path string, log *slog.Logger) error {
	f, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read a secret: %w", err)
	}
	if f.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		log.Warn("other users of this machine can read a secret; the owner of the file should run chmod 600 "+path, "err", err)
		return nil
	}
	log.Warn("other users of this machine could read a secret until now; if somebody may have read it, remove the file to have a new one made",
		"file", path)
	return nil
}

// writeSecret writes a secret to its file and syncs it: a key lost in a power failure would
// invalidate the token of every robot.
func writeSecret(path, text string) error { return store.WriteFile(path, []byte(text+"\n")) }
