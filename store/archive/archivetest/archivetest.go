// Package archivetest reads backups and data directories in tests.
package archivetest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/must"
	"perch/store"
)

// Contents returns the files of a backup. It fails the test if they do not match the manifest.
func Contents(t testing.TB, backup []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(backup)); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			files[head.Name], err = io.ReadAll(r)
		}
		must.Succeed(t, err)
	}
	var m struct {
		Files []struct {
			Name, SHA256 string
			Size         int64
		}
	}
	must.Succeed(t, json.Unmarshal(files["manifest.json"], &m))
	for _, f := range m.Files {
		if got := files[f.Name]; int64(len(got)) != f.Size || fmt.Sprintf("%x", sha256.Sum256(got)) != f.SHA256 {
			t.Errorf("%s is not what the manifest says", f.Name)
		}
	}
	if len(files) != len(m.Files)+1 {
		t.Errorf("%d files, of which %d are in the manifest", len(files), len(m.Files))
	}
	return files
}

// Records returns the records of a table in a database file: JSON values by key.
func Records(t testing.TB, database []byte, table string, migrations ...store.Migration) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	Write(t, path, database)
	f := must.Value(os.Open(path))(t)
	defer f.Close()
	records := map[string]string{}
	if _, err := store.Check(f, store.Options{Migrations: migrations}, func(name, key string, value []byte) error {
		if name == table {
			records[key] = string(value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return records
}

// Write writes a file, and creates its directory if necessary.
func Write(t testing.TB, path string, text []byte) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must.Succeed(t, os.WriteFile(path, text, 0o600))
}

// Read reads a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	text := must.Value(os.ReadFile(path))(t)
	return text
}

// Names returns the paths of all files below a directory, relative to the directory. The most deeply
// nested files come first.
func Names(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path) // never fails
			names = append(names, name)
		}
		return err
	})
	must.Succeed(t, err)
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	return names
}
