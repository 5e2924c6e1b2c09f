// Package secret reads keys, tokens and passwords from the files that a configuration names.
package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Directory is the directory of secrets if Perch was installed as a package. Only root can read it;
// systemd passes the files in it to the service as credentials
// (LoadCredential=secrets:/etc/perch/secrets in the unit; see systemd.exec(5)).
const Directory = "/etc/perch/secrets"

// Read returns value or, if file is not empty, the content of the file without surrounding white space.
// It is an error if both are set, or if the file is empty. key is the configuration key that errors
// name.
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

// Path returns the path that this process can read a secret's file from. For a file in Directory it is
// the path of the credential, if systemd has passed credentials.
func Path(file string) string { return credential(file, os.Getenv("CREDENTIALS_DIRECTORY")) }

// credential implements Path for a directory of credentials, which may be empty.
func credential(file, credentials string) string {
	name, ok := strings.CutPrefix(filepath.Clean(file), Directory+"/")
	if credentials == "" || !ok {
		return file
	}
	return filepath.Join(credentials, "secrets_"+strings.ReplaceAll(name, "/", "_"))
}
