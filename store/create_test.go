package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"perch/must"
)

func TestNewFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	path := filepath.Join(dir, "perch.db")
	db := open(t, path, Options{})
	wantCommits(t, db, 0, "after the first start")
	if db.Path() != path {
		t.Errorf("Path = %s", db.Path())
	}
	info := must.Value(os.Stat(path))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	entries := must.Value(os.ReadDir(dir))(t)
	if len(entries) != 1 {
		t.Errorf("something is left over: %v", entries)
	}
	must.Succeed(t, db.Close())
	must.Succeed(t, os.Chmod(path, 0o644))
	wantCommits(t, open(t, path, Options{}), 0, "after the second start")
	if info, _ = os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v after reopening", info.Mode())
	}
}

// pristine returns the content of a file that the bolt library has just created. Bolt writes it in several steps, between
// which the power may fail.
func pristine(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bolt")
	bolt := must.Value(bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize}))(t)
	must.Succeed(t, bolt.Close())
	return read(t, path)
}

// TestPowerCutAtFirstStart checks that Open succeeds after a power failure during the first start: with an incomplete
// temporary file, and with an incomplete database file.
func TestPowerCutAtFirstStart(t *testing.T) {
	empty := pristine(t)
	holed := bytes.Clone(empty)
	clear(holed[:pageSize])
	files := map[string][]byte{"nothing": {}, "zeros": make([]byte, len(empty)), "whole": empty, "first page missing": holed}
	for _, n := range []int{1, 79, 80, 512, pageSize - 1, pageSize, pageSize + 100, 2 * pageSize, 3*pageSize + 1, len(empty) - 1} {
		files["cut at "+time.Duration(n).String()] = empty[:n]
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			path := dbPath(t)
			must.Succeed(t, os.WriteFile(path, content, 0o600))
			must.Succeed(t, os.WriteFile(path+temporary, content, 0o600))
			db := open(t, path, Options{})
			must.Succeed(t, NewTable[int](db, "numbers").Put("a", 1))
			if Exists(path + temporary) {
				t.Error("the temporary file is left over")
			}
		})
	}
}

func TestLeftoverBesideData(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{})
	must.Succeed(t, NewTable[int](db, "numbers").Put("a", 1))
	must.Succeed(t, db.Close())
	must.Succeed(t, os.WriteFile(path+temporary, pristine(t), 0o600))
	if got, _, _ := NewTable[int](open(t, path, Options{}), "numbers").Get("a"); got != 1 {
		t.Error("the leftover took the place of the data")
	}
	if Exists(path + temporary) {
		t.Error("the leftover is still there")
	}
}

// used returns the content of a database with some records.
func used(t *testing.T) []byte {
	t.Helper()
	path := dbPath(t)
	db := open(t, path, Options{})
	texts := NewTable[string](db, "texts")
	for _, key := range []string{"a", "b", "c"} {
		must.Succeed(t, texts.Put(key, strings.Repeat(key, 3000)))
	}
	must.Succeed(t, db.Close())
	return read(t, path)
}

// TestDamagedFileIsKept checks that Open does not change a damaged file, and that the error names the file and the remedy.
func TestDamagedFileIsKept(t *testing.T) {
	whole := used(t)
	t.Logf("a database with three records has %d bytes", len(whole))
	scribbled := bytes.Clone(whole)
	for i := range 2 * pageSize {
		scribbled[i] = byte(i)
	}
	pages := bytes.Clone(whole)
	for i := 2 * pageSize; i < len(pages); i++ {
		pages[i] = 0xff
	}
	const foreign = "made by another program"
	theirs := dbPath(t)
	bolt := must.Value(bbolt.Open(theirs, 0o600, nil))(t)
	must.Succeed(t, bolt.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }))
	must.Succeed(t, bolt.Close())
	files := map[string][]byte{
		foreign: read(t, theirs), "text": []byte("hello\n"), "long text": bytes.Repeat([]byte("hello\n"), 9999), "scribbled": scribbled,
		"pages": pages, "zeros": make([]byte, len(whole)), "no head": append(make([]byte, 2*pageSize), whole[2*pageSize:]...),
	}
	for n := 80; n < len(whole)*9/10; n += 997 {
		files["cut at "+time.Duration(n).String()] = whole[:n]
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			path := dbPath(t)
			must.Succeed(t, os.WriteFile(path, content, 0o600))
			for range 2 { // the first attempt must unlock the file
				db, err := Open(path, Options{Timeout: time.Millisecond})
				if err == nil {
					n := countAll(NewTable[string](db, "texts"))
					must.Succeed(t, db.Close())
					if n != 3 {
						t.Fatalf("opened with %d of 3 records", n)
					}
					return
				}
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "perch restore") ||
					name == foreign && !strings.Contains(err.Error(), foreign) {
					t.Errorf("Open = %v", err)
				}
			}
			if !bytes.Equal(read(t, path), content) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestUnusablePlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "folder.db"), 0o700))
	must.Succeed(t, os.Symlink(filepath.Join(dir, "unmounted", "perch.db"), filepath.Join(dir, "dangling.db")))
	must.Succeed(t, os.Symlink("loop.db", filepath.Join(dir, "loop.db")))
	for name, c := range map[string]struct{ path, words string }{
		"data directory is a file":    {filepath.Join(file, "perch.db"), file + " as user root (not a directory); a file is in its way"},
		"a file further up":           {filepath.Join(file, "data", "perch.db"), "a file is in its way"},
		"a folder where the file is":  {filepath.Join(dir, "folder.db"), "is not a file"},
		"a link to an unmounted disk": {filepath.Join(dir, "dangling.db"), "mount the disk"},
		"a link to itself":            {filepath.Join(dir, "loop.db"), "link"},
		"a file system of the kernel": {"/proc/perch/perch.db", "cannot use /proc/perch as user"},
		"no files can be made there":  {"/proc/perch.db", "cannot use /proc as user"},
		"a device":                    {"/dev/null", "is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.ReplaceAll(c.words, "user root", "user "+userName())
			if _, err := Open(c.path, Options{}); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), words) {
				t.Errorf("Open = %v\nwant words %q", err, words)
			}
		})
	}
}

func TestLinkIsKept(t *testing.T) {
	dir := t.TempDir()
	disk, link := filepath.Join(dir, "disk.db"), filepath.Join(dir, "perch.db")
	must.Succeed(t, os.WriteFile(disk, nil, 0o600))
	must.Succeed(t, os.Symlink(disk, link))
	must.Succeed(t, NewTable[int](open(t, link, Options{}), "numbers").Put("a", 1))
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, _ := os.Stat(disk); info.Size() == 0 {
		t.Error("the data is elsewhere")
	}
}
