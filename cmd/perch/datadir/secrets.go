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

// Secret reads a secret from its file in the data directory, and makes one of 32 random bytes
// where the file is missing. Only its path is logged.
func Secret(data, name string, log *slog.Logger) (string, error) {
	path := filepath.Join(data, name)
	text, err := os.ReadFile(path)
	if err == nil {
		s := strings.TrimSpace(string(text))
		if err = restrict(path, log); err == nil && len(s) < 16 {
			err = fmt.Errorf("%s holds no secret of 16 or more characters; remove it and a new one is made", path)
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

// randomHex returns n random bytes, as hex digits.
func randomHex(n int) string {
	random := make([]byte, n)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	return hex.EncodeToString(random)
}

// restrict removes the permissions of everybody but the owner of a file, as where it was
// restored by other means.
func restrict(path string, log *slog.Logger) error {
	f, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read a secret: %w", err)
	}
	if f.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		log.Warn("a secret can be read by others on this machine; its owner should run chmod 600 "+path, "err", err)
		return nil
	}
	log.Warn("a secret could be read by others on this machine, and no longer can; remove it if somebody may have read it, and a new one is made",
		"file", path)
	return nil
}

// writeSecret writes a secret to its file, durably: a key that a power cut loses makes every
// robot's token void.
func writeSecret(path, text string) error { return store.WriteFile(path, []byte(text+"\n")) }
