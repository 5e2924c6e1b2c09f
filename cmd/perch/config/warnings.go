package config

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"perch/driver"
)

// Warning is something that works and should be corrected nevertheless, with its cure.
type Warning struct {
	Part, What string
}

// Warnings returns warnings of languages that no engine knows, of a certificate that expires soon, and
// of secrets that others on this machine can read. file is the configuration file and data the data
// directory; either may be "".
func (c *Config) Warnings(file, data string, now time.Time) (all []Warning) {
	all = c.unknownLanguages()
	if len(c.TLS.Listen) > 0 {
		if pair, err := ReadCertificate(c.TLS); err == nil { // else check has reported it
			if err := Expiry(pair.Leaf, now); err != nil {
				all = append(all, Warning{"tls", err.Error()})
			}
		}
	}
	s := c.secrets()
	for _, path := range s.files() {
		all = append(all, readable(path, "it holds a secret")...)
	}
	if file != "" && s.written {
		all = append(all, readable(file, "it holds secrets")...)
	}
	if data != "" {
		if f, err := os.Stat(data); err == nil && f.Mode().Perm()&0o007 != 0 {
			all = append(all, Warning{"data",
				fmt.Sprintf("others on this machine can look into %s; take that from them: chmod o-rwx %s", data, data)})
		}
	}
	return all
}

// unknownLanguages warns of languages that no engine knows.
func (c *Config) unknownLanguages() (all []Warning) {
	for _, l := range c.spoken() {
		for _, missing := range c.lacks(l) {
			all = append(all, Warning{"language", missing})
		}
	}
	return all
}

// readable warns of a file that others can read.
func readable(path, why string) []Warning {
	f, err := os.Stat(path)
	if err != nil || f.Mode().Perm()&0o004 == 0 || !reached(path) {
		return nil
	}
	return []Warning{{"secrets", fmt.Sprintf("others on this machine can read %s, and %s; take that from them: chmod o-rwx %s", path, why, path)}}
}

// reached reports whether others can enter every directory above a file.
func reached(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	return !slices.ContainsFunc(parents(path), func(dir string) bool {
		f, err := os.Stat(dir)
		return err == nil && f.Mode().Perm()&0o001 == 0
	})
}

// secrets says where a configuration has its secrets.
type secrets struct {
	named   []namedFile // all files that it names
	written bool        // whether there are secrets in the configuration itself
}

// namedFile is a file that a key of the configuration names.
type namedFile struct {
	key, path string
	secret    bool // whether it holds a secret
}

func (c *Config) secrets() (s secrets) {
	s.walk("", reflect.ValueOf(c).Elem())
	return s
}

// files returns the files that hold secrets, each once.
func (s secrets) files() (paths []string) {
	for _, f := range s.named {
		if f.secret {
			paths = append(paths, f.path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// walk visits the configuration. The name of a key decides whether it holds a secret, so that new keys
// are included.
func (s *secrets) walk(at string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			s.walk(fmt.Sprintf("%s.%d", at, i), v.Index(i))
		}
	case reflect.Struct:
		if c, is := v.Interface().(TLS); is { // its key names a file
			s.file(at+".certificate", c.Certificate, false)
			s.file(at+".key", c.Key, true)
			return
		}
		for _, f := range driver.Fields(v) {
			s.field(strings.TrimPrefix(at+"."+f.Key, "."), f.Key, f.Value)
		}
	}
}

func (s *secrets) file(at, path string, secret bool) {
	if path != "" {
		s.named = append(s.named, namedFile{at, path, secret})
	}
}

func (s *secrets) field(at, key string, v reflect.Value) {
	switch {
	case v.Kind() != reflect.String:
		s.walk(at, v)
		s.written = s.written || key == "env" && v.Len() > 0 // it may hold secrets of another program
	case v.String() == "":
	case key == "key_file" || key == "token_file" || key == "password_file":
		s.file(at, v.String(), true)
	case key == "file" || key == "sentences" || key == "ca":
		s.file(at, v.String(), false)
	case secretName(key):
		s.written = true
	case key == "url":
		u, err := url.Parse(v.String())
		s.written = s.written || err == nil && (u.User != nil || u.RawQuery != "")
	}
}
