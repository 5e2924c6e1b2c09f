package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"perch/must"
)

func nothing(*Tx) error { return nil }

func TestMigrations(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{Migrations: []Migration{{"first", nothing}}})
	for i := range 100 {
		NewTable[string](db, "names").PutSoon(fmt.Sprintf("%03d", i), "chan")
	}
	NewTable[int](db, "gone").PutSoon("k", 1)
	must.Succeed(t, db.Close())

	rename := Migration{"names become robots", func(tx *Tx) error {
		robots, err := tx.CreateBucket([]byte("robots"))
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("names")).ForEach(func(key, value []byte) error {
			return robots.Put(append([]byte("r"), key...), fmt.Appendf(nil, `{"name":%s}`, value))
		})
	}}
	drop := Migration{"drop", func(tx *Tx) error {
		return errors.Join(tx.DeleteBucket([]byte("gone")), tx.DeleteBucket([]byte("names")))
	}}
	all := []Migration{{"first", func(*Tx) error { return errors.New("applied twice") }}, rename, drop}
	db = open(t, path, Options{Migrations: all})
	wantCommits(t, db, 1, "two migrations")
	robots := NewTable[robot](db, "robots")
	if n := countAll(robots); n != 100 {
		t.Errorf("%d robots", n)
	}
	for i := range 100 {
		if r, _, err := robots.Get(fmt.Sprintf("r%03d", i)); r.Name != "chan" || err != nil {
			t.Errorf("r%03d = %v, %v", i, r, err)
		}
	}
	must.Succeed(t, db.Close())
	db = open(t, path, Options{Migrations: all})
	wantCommits(t, db, 0, "nothing to migrate")
	must.Succeed(t, db.Close())

	before := read(t, path)
	for range 2 { // the first attempt must unlock the file
		_, err := Open(path, Options{Migrations: all[:1]})
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "schema 3, this one knows 1") {
			t.Errorf("an older program: %v", err)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("an older program has changed the file")
	}
}

func TestFailingMigrationLeavesTheFile(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{})
	must.Succeed(t, NewTable[int](db, "numbers").Put("a", 1))
	must.Succeed(t, db.Close())
	before := read(t, path)
	good := Migration{"good", func(tx *Tx) error {
		numbers := tx.Bucket([]byte("numbers"))
		return errors.Join(numbers.Put([]byte("b"), []byte("2")), numbers.Delete([]byte("a")),
			numbers.Put([]byte("big"), fmt.Appendf(nil, "%q", strings.Repeat("x", 200_000))))
	}}
	for name, apply := range map[string]func(*Tx) error{
		"error": func(*Tx) error { return errors.New("no such shape") },
		"panic": func(*Tx) error { panic("no such shape") },
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
	if _, err := Open(path, Options{Migrations: []Migration{{"bad", func(*Tx) error { return errors.New("bad") }}}}); err == nil {
		t.Error("opened")
	}
	if Exists(path) || Exists(path+temporary) {
		t.Error("half a file is left")
	}
	open(t, path, Options{})
}
