package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"perch/must"
)

func nothing(*Raw) error { return nil }

func TestMigrations(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{Migrations: []Migration{{"first", nothing}}})
	for i := range 100 {
		NewTable[string](db, "names").PutSoon(fmt.Sprintf("%03d", i), "chan")
	}
	NewTable[int](db, "gone").PutSoon("k", 1)
	must.Succeed(t, db.Close())

	rename := Migration{"names become robots", func(raw *Raw) error {
		if err := raw.Put("names", "100", []byte(`"chan"`)); err != nil { // from here on bolt's cursors see what is changed under them
			return err
		}
		for key, value := range raw.All("names") {
			data, err := json.Marshal(map[string]any{"name": json.RawMessage(value)})
			if err != nil {
				return err
			}
			if err := errors.Join(raw.Put("robots", "r"+key, data), raw.Delete("names", key), raw.Put("names", "x"+key, value)); err != nil {
				return err
			}
		}
		return nil
	}}
	drop := Migration{"drop", func(raw *Raw) error {
		return errors.Join(raw.Drop("gone"), raw.Drop("names"), raw.Drop("never"))
	}}
	all := []Migration{{"first", func(*Raw) error { return errors.New("applied twice") }}, rename, drop}
	db = open(t, path, Options{Migrations: all})
	wantCommits(t, db, 1, "two migrations")
	robots := NewTable[robot](db, "robots")
	if n := countAll(robots); n != 101 {
		t.Errorf("%d robots", n)
	}
	for i := range 101 {
		if r, _, err := robots.Get(fmt.Sprintf("r%03d", i)); r.Name != "chan" || err != nil {
			t.Errorf("r%03d = %v, %v", i, r, err)
		}
	}
	must.Succeed(t, db.Close())
	db = open(t, path, Options{Migrations: all})
	wantCommits(t, db, 0, "nothing to migrate")
	must.Succeed(t, db.Close())

	_, err := Open(path, Options{Migrations: all[:1]})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "schema 3, this one knows 1") {
		t.Errorf("an older program: %v", err)
	}
}

func TestNewerIsLeftUntouched(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{Migrations: []Migration{{"one", nothing}}})
	must.Succeed(t, NewTable[int](db, "numbers").Put("a", 1))
	must.Succeed(t, db.Close())
	before := read(t, path)
	for range 2 {
		if _, err := Open(path, Options{}); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open = %v", err)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
}

func TestFailingMigrationLeavesTheFile(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{})
	must.Succeed(t, NewTable[int](db, "numbers").Put("a", 1))
	must.Succeed(t, db.Close())
	before := read(t, path)
	good := Migration{"good", func(raw *Raw) error {
		return errors.Join(raw.Put("numbers", "b", []byte("2")), raw.Delete("numbers", "a"),
			raw.Put("big", "k", fmt.Appendf(nil, "%q", strings.Repeat("x", 200_000))))
	}}
	for name, apply := range map[string]func(*Raw) error{
		"error":     func(*Raw) error { return errors.New("no such shape") },
		"panic":     func(*Raw) error { panic("no such shape") },
		"not JSON":  func(raw *Raw) error { return raw.Put("numbers", "c", []byte("{")) },
		"no key":    func(raw *Raw) error { return raw.Put("numbers", "", []byte("1")) },
		"no table":  func(raw *Raw) error { return raw.Put("", "k", []byte("1")) },
		"our table": func(raw *Raw) error { return raw.Put(schemaTable, "version", []byte("7")) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(path, Options{Migrations: []Migration{good, {"bad one", apply}}})
			if err == nil || !strings.Contains(err.Error(), "migration 2 (bad one)") || errors.Is(err, ErrDamaged) {
				t.Errorf("Open = %v", err)
			}
			if !bytes.Equal(read(t, path), before) {
				t.Error("the file was changed")
			}
		})
	}
	db = open(t, path, Options{Migrations: []Migration{good}})
	if _, found, _ := NewTable[int](db, "numbers").Get("b"); !found {
		t.Error("the file cannot be migrated any more")
	}
}

func TestFailingMigrationOfANewFile(t *testing.T) {
	path := dbPath(t)
	if _, err := Open(path, Options{Migrations: []Migration{{"bad", func(*Raw) error { return errors.New("bad") }}}}); err == nil {
		t.Error("opened")
	}
	if Exists(path) || Exists(path+temporary) {
		t.Error("half a file is left")
	}
	open(t, path, Options{})
}
