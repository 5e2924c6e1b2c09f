package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Warning describes what should be corrected although the configuration works, and how.
type Warning struct {
	Part string `json:"part"`
	What string `json:"what"`
}

// Warnings returns warnings about what is missing for the spoken languages, about the certificate's dates, and
// about secrets and a data directory that other users of this machine can open. file and data are the
// paths of the configuration file and the data directory; either may be "".
func (c *Config) Warnings(file, data string, now time.Time) (warnings []Warning) {
	warnings = c.languageWarnings()
	if len(c.TLS.Listen) > 0 {
		if pair, err := ReadCertificate(c.TLS); err == nil { // check reports the error
			if err := CheckExpiry(pair.Leaf, now); err != nil {
				warnings = append(warnings, Warning{"tls", err.Error()})
			}
		}
	}
	places := c.findSecrets()
	for _, path := range places.secretFiles() {
		warnings = append(warnings, warnIfReadable(path, "it holds a secret")...)
	}
	if file != "" && places.inConfig {
		warnings = append(warnings, warnIfReadable(file, "it holds secrets")...)
	}
	if data != "" {
		if f, err := os.Stat(data); err == nil && f.Mode().Perm()&0o007 != 0 {
			warnings = append(warnings, Warning{"data",
				fmt.Sprintf("other users of this machine can open %s; prevent it: sudo chmod o-rwx %s", data, data)})
		}
	}
	return warnings
}

// languageWarnings returns warnings about what is missing for the spoken languages.
func (c *Config) languageWarnings() (warnings []Warning) {
	for _, l := range c.spoken() {
		for _, missing := range c.missingFor(l) {
			warnings = append(warnings, Warning{"language", missing})
		}
	}
	return warnings
}

// warnIfReadable returns a warning if other users of this machine can read a file. content describes the
// file's content, as in "it holds a secret".
func warnIfReadable(path, content string) []Warning {
	f, err := os.Stat(path)
	if err != nil || f.Mode().Perm()&0o004 == 0 || !othersCanReach(path) {
		return nil
	}
	return []Warning{{"secrets", fmt.Sprintf("other users of this machine can read %s, and %s; prevent it: sudo chmod o-rwx %s", path, content, path)}}
}

// othersCanReach reports whether every user can enter all directories above a file.
func othersCanReach(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	return !slices.ContainsFunc(parents(path), func(dir string) bool {
		f, err := os.Stat(dir)
		return err == nil && f.Mode().Perm()&0o001 == 0
	})
}

// secretPlaces lists the files that a configuration names.
type secretPlaces struct {
	files    []namedFile
	inConfig bool // whether the configuration itself contains secrets
}

// namedFile is a file that a key of the configuration names.
type namedFile struct {
	key, path string
	secret    bool // whether the file contains a secret
}

// findSecrets returns the files that the keys of the switch below name, and whether the configuration itself
// contains secrets. A value is a secret if isSecret or isSecretAddress reports so, or if it is below a key env.
func (c *Config) findSecrets() (p secretPlaces) {
	eachText(nil, reflect.ValueOf(c).Elem(), func(path []string, value string) {
		key, name := strings.Join(path, "."), path[len(path)-1]
		switch {
		case value == "":
		case key == "tls.certificate", name == "file", name == "sentences", name == "ca", name == "persona", name == "live2d_model",
			name == "manifest" && !strings.Contains(value, "://"):
			p.files = append(p.files, namedFile{key, value, false})
		case key == "tls.key", name == "key_file", name == "token_file", name == "password_file":
			p.files = append(p.files, namedFile{key, value, true})
		default: // the environment of a program may contain its secrets
			p.inConfig = p.inConfig || isSecret(path) || isSecretAddress(path, value) || slices.Contains(path, "env")
		}
	})
	return p
}

// secretFiles returns the paths of the files that contain secrets, without duplicates.
func (p secretPlaces) secretFiles() (paths []string) {
	for _, f := range p.files {
		if f.secret {
			paths = append(paths, f.path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
