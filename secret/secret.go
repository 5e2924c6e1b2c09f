// Package secret reads keys, tokens and passwords from the files that a configuration names.
package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Directory has the secrets of an installed package. Only root may read it; the service
// manager passes its files to the service as credentials
// (LoadCredential=secrets:/etc/perch/secrets in the unit; systemd.exec(5)).
const Directory = "/etc/perch/secrets"

// Read returns the secret of a key: its value, or the content of its file with surrounding
// white space removed. Its errors name the key.
func Read(key, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %s_file are two places for one %s", key, key, key)
	}
	text, err := os.ReadFile(Path(file))
	if err != nil {
		return "", fmt.Errorf("read %s_file: %w", key, err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", fmt.Errorf("%s_file is empty: %s", key, file)
	}
	return strings.TrimSpace(string(text)), nil
}

// Path returns the path at which this process can read a file: for a file in Directory the
// service manager's credential of it, if there is one.
func Path(file string) string { return credential(file, os.Getenv("CREDENTIALS_DIRECTORY")) }

func credential(file, credentials string) string {
	name, ok := strings.CutPrefix(filepath.Clean(file), Directory+"/")
	if credentials == "" || !ok {
		return file
	}
	return filepath.Join(credentials, "secrets_"+strings.ReplaceAll(name, "/", "_"))
}
