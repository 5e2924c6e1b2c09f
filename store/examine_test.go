package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"perch/must"
	"perch/store/storetest"
)

// harm returns the content of usedDatabase with one page of records of the table "robots" overwritten with zeros, and the
// records before the damage.
func harm(t testing.TB) (file []byte, want map[string]map[string]string) {
	t.Helper()
	file, want = usedDatabase(t)
	key := slices.Sorted(maps.Keys(want["robots"]))[3]
	page := findPage(t, file, func(kind string, page []byte) bool { return kind == "leaf" && bytes.Contains(page, []byte(key)) })
	clear(file[page*pageSize : (page+1)*pageSize])
	return file, want
}

// findPage returns the number of the first page for which wanted returns true.
func findPage(t testing.TB, file []byte, wanted func(kind string, page []byte) bool) (number int) {
	t.Helper()
	path := dbPath(t)
	must.Succeed(t, os.WriteFile(path, file, 0o600))
	bolt := must.Value(bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true}))(t)
	must.Succeed(t, bolt.View(func(tx *bbolt.Tx) error {
		for number = 2; ; number++ {
			info, err := tx.Page(number)
			if err != nil || info == nil {
				t.Fatalf("no such page: %v", err)
			}
			if wanted(info.Type, file[number*pageSize:][:pageSize]) {
				return nil
			}
		}
	}))
	must.Succeed(t, bolt.Close())
	return number
}

func TestSalvageIsRepeatedAfterPowerCut(t *testing.T) {
	damaged, want := harm(t)
	for _, step := range []string{"made", "salvaged", "kept"} {
		t.Run(step, func(t *testing.T) {
			dir, cut := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, "perch.db")
			must.Succeed(t, os.WriteFile(path, damaged, 0o600))
			db := open(t, path, Options{Salvage: true, reached: func(s string) {
				if s == step { // copies the directory as a power failure at this step would leave it
					must.Succeed(t, os.CopyFS(cut, os.DirFS(dir)))
				}
			}})
			must.Succeed(t, db.Close())
			if left, _ := os.ReadDir(cut); len(left) < 2 {
				t.Fatalf("at %s there is %v", step, left)
			}
			after := filepath.Join(cut, "perch.db")
			db = open(t, after, Options{Salvage: true})
			if lost := lostOf(t, db, want); db.Salvaged() == nil || len(lost) == 0 || len(lost) > 10 {
				t.Errorf("%v, lost %v", db.Salvaged(), lost)
			}
			if !bytes.Equal(read(t, db.Salvaged().Kept), damaged) || Exists(after+temporary) {
				t.Error("the damaged file is not kept, or the new one left over")
			}
		})
	}
}

func TestUnsalvageableFileIsLeft(t *testing.T) {
	damaged, _ := harm(t)
	heads := bytes.Clone(damaged)
	clear(heads[:2*pageSize])
	theirs := several(t)
	theirs = bytes.ReplaceAll(theirs, []byte(schemaTable), []byte("others"))
	clear(theirs[len(theirs)/2:])
	newer := several(t)
	freelist := findPage(t, newer, func(kind string, _ []byte) bool { return kind == "freelist" })
	clear(newer[freelist*pageSize:][:pageSize])
	for name, c := range map[string]struct {
		file []byte
		kind error
		says string
		o    Options
		also func(path string)
	}{
		"nobody wants it":    {damaged, ErrDamaged, "perch restore", Options{}, nil},
		"the first pages":    {heads, ErrDamaged, "perch serve --new-database", Options{Salvage: true}, nil},
		"another program's":  {theirs, ErrDamaged, "perch restore", Options{Salvage: true}, nil},
		"of a newer version": {newer, ErrNewer, "newer Perch (schema 1", Options{Salvage: true}, nil},
		"text":               {bytes.Repeat([]byte("hello\n"), 9999), ErrDamaged, "perch restore", Options{Salvage: true}, nil},
		"the eleventh of the disk": {damaged, ErrDamaged, "replace the card", Options{Salvage: true}, func(path string) {
			for n := range maxDamaged {
				must.Succeed(t, os.WriteFile(fmt.Sprint(path, damagedMark, n), nil, 0o600))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := dbPath(t)
			must.Succeed(t, os.WriteFile(path, c.file, 0o600))
			if c.also != nil {
				c.also(path)
			}
			before, _ := os.ReadDir(filepath.Dir(path))
			for range 2 { // the first attempt must unlock the file
				c.o.Timeout = time.Millisecond
				if _, err := Open(path, c.o); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), path) ||
					!strings.Contains(err.Error(), c.says) {
					t.Errorf("Open = %v", err)
				}
			}
			after, _ := os.ReadDir(filepath.Dir(path))
			if !bytes.Equal(read(t, path), c.file) || len(after) != len(before) {
				t.Errorf("something has changed: %v", after)
			}
		})
	}
}

func TestNoRoomToSalvage(t *testing.T) {
	damaged, _ := harm(t)
	path := filepath.Join(storetest.SmallDisk(t, "768k"), "perch.db")
	must.Succeed(t, os.WriteFile(path, damaged, 0o600))
	if _, err := Open(path, Options{Salvage: true}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the disk has") {
		t.Errorf("Open = %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 || !bytes.Equal(read(t, path), damaged) {
		t.Errorf("left is %v", left)
	}
}

func TestSalvageOfATruncatedFile(t *testing.T) {
	file, want := usedDatabase(t)
	kept := 0
	for n := len(file) - pageSize; n > 0; n -= 16 * pageSize {
		path := dbPath(t)
		must.Succeed(t, os.WriteFile(path, file[:n], 0o600))
		db, err := Open(path, Options{Salvage: true})
		if err != nil {
			if !errors.Is(err, ErrDamaged) || !bytes.Equal(read(t, path), file[:n]) {
				t.Errorf("of %d bytes: %v", n, err)
			}
			continue
		}
		if lost := lostOf(t, db, want); len(lost) > 0 && db.Salvaged() == nil {
			t.Errorf("of %d bytes: %d are lost without a word", n, len(lost))
		}
		kept++
		must.Succeed(t, db.Close())
	}
	if kept == 0 {
		t.Error("nothing was kept at all")
	}
}

func TestMissingDatabaseIsNotCreatedIfExpected(t *testing.T) {
	for name, content := range map[string][]byte{"missing": nil, "empty": {}, "zeros": make([]byte, 4*pageSize)} {
		path := dbPath(t)
		if name != "missing" {
			must.Succeed(t, os.WriteFile(path, content, 0o600))
		}
		_, err := Open(path, Options{Expect: true})
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--new-database") {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); (len(left) == 1) != (name != "missing") || name != "missing" &&
			!bytes.Equal(read(t, path), content) {
			t.Errorf("%s: left is %v", name, left)
		}
		must.Succeed(t, open(t, path, Options{}).Close())
		must.Succeed(t, open(t, path, Options{Expect: true}).Close()) // the database exists now
	}
}

func TestRefusedPutSoonIsReported(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	texts := NewTable[string](db, "texts")
	must.Succeed(t, texts.Put("k", "before"))
	texts.PutSoon("k", strings.Repeat("x", MaxValue))
	if err := db.Refused(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `texts "k"`) {
		t.Errorf("Refused = %v", err)
	}
	if got, _, err := texts.Get("k"); got != "before" || err != nil {
		t.Errorf("Get = %q, %v", got, err)
	}
	texts.PutSoon("k", "after")
	must.Succeed(t, db.Refused())
}

// FuzzSalvage changes a database at one position and corrects the checksums of the meta records. Then Open must fail, or
// all tables must be readable and writable.
func FuzzSalvage(f *testing.F) {
	whole := several(f)
	f.Add(uint32(2*pageSize), []byte{1, 2, 3})
	f.Add(uint32(pageHead+16), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add(uint32(5*pageSize+8), make([]byte, 600))
	f.Add(uint32(7*pageSize+pageHead), bytes.Repeat([]byte{0xff}, 64))
	o := Options{Migrations: make([]Migration, 1), Salvage: true, CompactFrom: -1}
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		file := bytes.Clone(whole)
		copy(file[int(at)%len(file):], change)
		for page := range 2 {
			mend(file[page*pageSize+pageHead:])
		}
		path := dbPath(t)
		must.Succeed(t, os.WriteFile(path, file, 0o600))
		db, err := Open(path, o)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Error(err)
			}
			return
		}
		for _, name := range []string{"small", "many", "large", "empty"} {
			texts := NewTable[string](db, name)
			for range texts.All() {
			}
			if err := errors.Join(texts.Err(), texts.Put("new", "value")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		must.Succeed(t, db.Close())
	})
}
