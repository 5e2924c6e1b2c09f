// Package secret reads keys, tokens and passwords from the files that the configuration names.
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

// Read returns value, or, if file is not empty, the content of that file without surrounding white space.
// It returns an error if both arguments are set, or if the file is unreadable or has only white space.
// key is the configuration key of value, for the text of errors; the key of file is key + "_file".
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

// Path returns the path where this process can read a secret's file. For a file in Directory it
// returns the path of the systemd credential, if systemd has passed credentials, and otherwise file.
func Path(file string) string { return credential(file, os.Getenv("CREDENTIALS_DIRECTORY")) }

// credential implements Path. credentials is the directory of systemd's credentials, or "" if there is
// none. For a directory that LoadCredential names "secrets", systemd names the credential of the file
// a/b "secrets_a_b".
func credential(file, credentials string) string {
	name, ok := strings.CutPrefix(filepath.Clean(file), Directory+"/")
	if credentials == "" || !ok {
		return file
	}
	return filepath.Join(credentials, "secrets_"+strings.ReplaceAll(name, "/", "_"))
}
