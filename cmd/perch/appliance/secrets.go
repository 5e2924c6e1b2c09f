package appliance

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

// Secret reads a secret from its file in the data directory, and makes one
// of 32 random bytes where there is none. Only its path is logged.
func Secret(dir, name string, log *slog.Logger) (string, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		s := strings.TrimSpace(string(text))
		if err := ownersOnly(path, log); err != nil {
			return "", err
		}
		if len(s) < 16 {
			return "", fmt.Errorf("%s holds no secret of 16 or more characters; remove it and a new one is made", path)
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	if err := store.RemoveUnfinished(path); err != nil {
		return "", fmt.Errorf("keep a new secret: %w", err)
	}
	s := randomHex(32)
	if err := writeSecret(path, s); err != nil {
		return "", fmt.Errorf("keep a new secret: %w", err)
	}
	log.Info("a secret was made", "file", path)
	return s, nil
}

// randomHex is so many random bytes, as hex digits.
func randomHex(bytes int) string {
	random := make([]byte, bytes)
	rand.Read(random) //nolint:errcheck // never fails, by its documentation
	return hex.EncodeToString(random)
}

// ownersOnly takes a file of ours from everybody but its owner, as where it was
// restored by other means.
func ownersOnly(path string, log *slog.Logger) error {
	f, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at a secret: %w", err)
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

// writeSecret writes a secret to its file. It is there after a power cut, too: a key that is
// lost makes every robot's token void.
func writeSecret(path, text string) error { return store.WriteFile(path, []byte(text+"\n")) }
