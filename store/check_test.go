package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// Parts of the format of a bolt file; see package salvage.
const (
	pageHead   = 16
	metaSize   = 64
	boltMagic  = 0xED0CDAED
	branchPage = 0x01
)

// check calls Check with a file that has the given content.
func check(t testing.TB, content []byte, o Options, each func(table, key string, value []byte) error) (Content, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.db")
	must.Succeed(t, os.WriteFile(path, content, 0o600))
	f := must.Value(os.Open(path))(t)
	defer f.Close()
	return Check(f, o, each)
}

// several returns the content of a database that has free pages and four tables: an empty table, a table so small that it
// has no page, a table of many records on several pages, and a table with a record that needs overflow pages.
func several(t testing.TB) []byte {
	t.Helper()
	path := dbPath(t)
	db := open(t, path, Options{Migrations: []Migration{{"one", nothing}}})
	small, many, large := NewTable[string](db, "small"), NewTable[string](db, "many"), NewTable[string](db, "large")
	must.Succeed(t, small.Put("k", "v"))
	for i := range 400 {
		many.PutSoon(fmt.Sprintf("%04d", i), strings.Repeat("x", 50))
	}
	must.Succeed(t, large.Put("k", strings.Repeat("x", 50_000)))
	must.Succeed(t, large.Put("j", strings.Repeat("y", 50_000)))
	must.Succeed(t, large.Delete("j"))
	must.Succeed(t, NewTable[string](db, "empty").Put("k", "v"))
	must.Succeed(t, NewTable[string](db, "empty").Delete("k"))
	must.Succeed(t, db.Close())
	return read(t, path)
}

func TestCheck(t *testing.T) {
	whole := several(t)
	o := Options{Migrations: []Migration{{"one", nothing}}}
	seen := map[string]string{}
	got, err := check(t, whole, o, func(table, key string, value []byte) error {
		seen[table+"/"+key] = string(value)
		return nil
	})
	must.Succeed(t, err)
	if got.Schema != 1 || fmt.Sprint(got.Records) != "map[empty:0 large:1 many:400 small:1]" || len(seen) != 402 || seen["small/k"] != `"v"` {
		t.Errorf("found %+v, %d records", got, len(seen))
	}
	if _, err := check(t, whole, o, func(string, string, []byte) error { return errors.New("no thanks") }); !errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), "no thanks") {
		t.Errorf("a record that is refused: %v", err)
	}
	if _, err := check(t, whole, Options{}, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("of a newer schema: %v", err)
	}
	swapped := bytes.Clone(whole)
	for _, at := range []int{pageHead, pageSize + pageHead} {
		binary.BigEndian.PutUint32(swapped[at:], boltMagic)
	}
	if _, err := check(t, swapped, o, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another byte order") {
		t.Errorf("of another byte order: %v", err)
	}
	foreign := pristine(t)
	if _, err := check(t, foreign, o, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("of nobody: %v", err)
	}
}

func TestCheckLeavesTheFileUnchanged(t *testing.T) {
	path := dbPath(t)
	must.Succeed(t, os.WriteFile(path, several(t), 0o600))
	before := read(t, path)
	f, err := os.Open(path)
	must.Succeed(t, err)
	defer f.Close()
	_, err = Check(f, Options{Migrations: make([]Migration, 7)}, nil)
	must.Succeed(t, err)
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
	open(t, path, Options{Migrations: []Migration{{"one", nothing}}, Timeout: time.Millisecond})
}

func TestCheckFindsDamageInEveryPage(t *testing.T) {
	whole := several(t)
	for name, damage := range map[string]func(page []byte){
		"zeros":   func(page []byte) { clear(page) },
		"ones":    func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, len(page))) },
		"counts":  func(page []byte) { binary.NativeEndian.PutUint16(page[10:], 0xffff) },
		"further": func(page []byte) { binary.NativeEndian.PutUint32(page[12:], 0x7fffffff) },
	} {
		inUse := 0
		for at := 2 * pageSize; at < len(whole); at += pageSize {
			file := bytes.Clone(whole)
			damage(file[at : at+pageSize])
			if bytes.Equal(file, whole) {
				continue
			}
			if _, err := check(t, file, Options{Migrations: make([]Migration, 1)}, nil); err != nil {
				inUse++
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("%s in page %d: %v", name, at/pageSize, err)
				}
			}
		}
		if inUse < 12 {
			t.Errorf("%s are seen in %d pages only", name, inUse)
		}
	}
	for n := 0; n < len(whole)/2; n += 511 {
		if _, err := check(t, whole[:n], Options{Migrations: make([]Migration, 1)}, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

// FuzzCheck changes a database at one position, corrects the checksums of the meta records, and calls Check, which must not
// panic.
func FuzzCheck(f *testing.F) {
	whole := several(f)
	f.Add(uint32(2*pageSize), []byte{1, 2, 3})
	f.Add(uint32(pageHead+16), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add(uint32(pageSize+pageHead+32), []byte{3})
	f.Add(uint32(5*pageSize+pageHead), []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	path := filepath.Join(f.TempDir(), "some.db")
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		file := bytes.Clone(whole)
		copy(file[int(at)%len(file):], change)
		for page := range 2 {
			mend(file[page*pageSize+pageHead:])
		}
		must.Succeed(t, os.WriteFile(path, file, 0o600))
		opened := must.Value(os.Open(path))(t)
		defer opened.Close()
		if _, err := Check(opened, Options{Migrations: make([]Migration, 1)}, nil); err != nil && !errors.Is(err, ErrDamaged) &&
			!errors.Is(err, ErrNewer) {
			t.Error(err)
		}
	})
}

func TestAcquireLock(t *testing.T) {
	path := dbPath(t)
	held := must.Value(AcquireLock(path, time.Second))(t) // the file does not exist
	if _, err := Open(path, Options{Timeout: time.Millisecond}); !errors.Is(err, ErrLocked) {
		t.Errorf("made meanwhile: %v", err)
	}
	held.Release()
	db := open(t, path, Options{})
	if _, err := AcquireLock(path, time.Millisecond); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("of an open one: %v", err)
	}
	must.Succeed(t, db.Close())
	held = must.Value(AcquireLock(path, time.Millisecond))(t)
	if _, err := Open(path, Options{Timeout: time.Millisecond}); !errors.Is(err, ErrLocked) {
		t.Errorf("opened meanwhile: %v", err)
	}
	held.Release()
	open(t, path, Options{})
}

func TestOpenFollowsReplacedFile(t *testing.T) {
	path, other := dbPath(t), dbPath(t)
	db := open(t, other, Options{})
	must.Succeed(t, NewTable[int](db, "numbers").Put("new", 1))
	must.Succeed(t, db.Close())
	must.Succeed(t, open(t, path, Options{}).Close())
	held, err := AcquireLock(path, time.Second)
	must.Succeed(t, err)
	waits := make(chan error, 1)
	var waited *DB
	go func() {
		var err error
		waited, err = Open(path, Options{Timeout: 10 * time.Second})
		waits <- err
	}()
	time.Sleep(100 * time.Millisecond) // so that Open waits for the lock; if it does not yet, the test passes, too
	must.Succeed(t, os.Rename(other, path))
	held.Release()
	must.Succeed(t, <-waits)
	defer waited.Close()
	if got, _, _ := NewTable[int](waited, "numbers").Get("new"); got != 1 {
		t.Error("the file without a name was opened")
	}
}

func TestBackupFile(t *testing.T) {
	path := dbPath(t)
	var copied bytes.Buffer
	if err := BackupFile(path, time.Millisecond, &copied); !errors.Is(err, ErrUnusable) || Exists(path) {
		t.Errorf("of none: %v", err)
	}
	must.Succeed(t, os.WriteFile(path, several(t), 0o400))
	before := read(t, path)
	must.Succeed(t, BackupFile(path, time.Second, &copied))
	got, err := check(t, copied.Bytes(), Options{Migrations: make([]Migration, 1)}, nil)
	if err != nil || got.Records["many"] != 400 || !bytes.Equal(read(t, path), before) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := BackupFile(path, time.Second, fullWriter{}); err == nil {
		t.Error("a copy that could not be written is no backup")
	}
	must.Succeed(t, os.Chmod(path, 0o600))
	open(t, path, Options{Migrations: []Migration{{"one", nothing}}})
	if err := BackupFile(path, time.Millisecond, &copied); !errors.Is(err, ErrLocked) {
		t.Errorf("of one in use: %v", err)
	}
}

// mend corrects the checksum of a meta record.
func mend(record []byte) {
	sum := fnv.New64a()
	sum.Write(record[:metaSize-8])
	binary.NativeEndian.PutUint64(record[metaSize-8:], sum.Sum64())
}
