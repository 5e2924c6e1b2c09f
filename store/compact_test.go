package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
	"perch/store/storetest"
)

// hollow creates a database that has some records but is mostly free space. It returns the size of the file in bytes.
func hollow(t testing.TB, path string) int64 {
	t.Helper()
	db := must.Value(Open(path, Options{FlushAfter: time.Hour}))(t)
	texts := NewTable[string](db, "texts")
	for i := range 100 {
		texts.PutSoon(fmt.Sprint("gone", i), strings.Repeat("x", 20_000))
		texts.PutSoon(fmt.Sprint("kept", i), fmt.Sprint(i))
	}
	must.Succeed(t, db.Flush())
	for i := range 100 {
		texts.DeleteSoon(fmt.Sprint("gone", i))
	}
	must.Succeed(t, db.Close())
	info := must.Value(os.Stat(path))(t)
	return info.Size()
}

// filled returns an error unless the database has all records of hollow.
func filled(db *DB) error {
	n := 0
	for k, v := range NewTable[string](db, "texts").All() {
		n++
		if k != "kept"+v {
			return fmt.Errorf("%s is %s", k, v)
		}
	}
	if n != 100 {
		return fmt.Errorf("%d records, not 100", n)
	}
	return nil
}

func TestCompaction(t *testing.T) {
	path := dbPath(t)
	before := hollow(t, path)
	var log bytes.Buffer
	o := Options{CompactFrom: 1 << 20, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, kept := range []Options{{}, {CompactFrom: 4 << 20}, {CompactFrom: -1}} {
		must.Succeed(t, open(t, path, kept).Close())
		if info, _ := os.Stat(path); info.Size() != before {
			t.Errorf("rewritten from %d free bytes on", kept.CompactFrom)
		}
	}
	db := open(t, path, o)
	info := must.Value(os.Stat(path))(t)
	if info.Size()*10 > before || info.Mode().Perm() != 0o600 || !strings.Contains(log.String(), " from=") {
		t.Errorf("of %d bytes there are %d, mode %v; log:\n%s", before, info.Size(), info.Mode(), &log)
	}
	must.Succeed(t, filled(db))
	must.Succeed(t, NewTable[string](db, "texts").Put("later", "later"))
	if _, err := Open(path, Options{Timeout: time.Millisecond}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	must.Succeed(t, db.Close())
	log.Reset()
	db = open(t, path, o)
	if got, _, _ := NewTable[string](db, "texts").Get("later"); got != "later" {
		t.Error("what was written after the rewriting is not there")
	}
	if log.Len() > 0 || Exists(path+temporary) {
		t.Errorf("rewritten again, or something is left over:\n%s", &log)
	}
}

func TestHalfFullFileIsNotRewritten(t *testing.T) {
	path := dbPath(t)
	db := must.Value(Open(path, Options{FlushAfter: time.Hour}))(t)
	texts := NewTable[string](db, "texts")
	for i := range 100 {
		texts.PutSoon(fmt.Sprint(i), strings.Repeat("x", 20_000))
	}
	must.Succeed(t, db.Flush())
	for i := range 40 {
		texts.DeleteSoon(fmt.Sprint(i))
	}
	must.Succeed(t, db.Close())
	before := must.Value(os.Stat(path))(t)
	must.Succeed(t, open(t, path, Options{CompactFrom: 100_000}).Close())
	if info, _ := os.Stat(path); !os.SameFile(before, info) {
		t.Error("rewritten")
	}
}

func TestNoRoomToCompact(t *testing.T) {
	for words, late := range map[string]bool{"are needed": false, "not rewritten": true} {
		dir := storetest.SmallDisk(t, "8m")
		path := filepath.Join(dir, "perch.db")
		before := hollow(t, path)
		full := func(string) {
			free := must.Value(FreeSpace(dir))(t)
			_ = os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, free), 0o600) // an error is ignored: the disk is then full
		}
		var log bytes.Buffer
		o := Options{CompactFrom: 1 << 20, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if late {
			o.reached = full
		} else {
			full("")
		}
		db := open(t, path, o)
		must.Succeed(t, filled(db))
		if info, _ := os.Stat(path); info.Size() != before || !strings.Contains(log.String(), words) || Exists(path+temporary) {
			t.Errorf("%d bytes of %d; log:\n%s", info.Size(), before, &log)
		}
		if late {
			must.Succeed(t, NewTable[string](db, "texts").Put("later", "later"))
		}
	}
}

// childCompacts opens the database FILE, where which is "STEP:FILE", and kills this process when the rewriting has reached
// STEP.
func childCompacts(which string) {
	until, path, _ := strings.Cut(which, ":")
	_, err := Open(path, Options{CompactFrom: 1 << 20, reached: func(step string) {
		if step == until {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	childFails(fmt.Errorf("it was not killed: %w", err))
}

func TestKilledWhileCompacting(t *testing.T) {
	for step, smaller := range map[string]bool{"made": false, "copied": false, "renamed": true} {
		t.Run(step, func(t *testing.T) {
			path := dbPath(t)
			before := hollow(t, path)
			cmd, _ := child(t, "compact", step+":"+path)
			_ = cmd.Wait() // the error says that the process was killed
			info := must.Value(os.Stat(path))(t)
			if (info.Size() < before) != smaller || Exists(path+temporary) == smaller {
				t.Errorf("%d bytes of %d, leftover: %v", info.Size(), before, Exists(path+temporary))
			}
			must.Succeed(t, filled(open(t, path, Options{CompactFrom: -1})))
			if Exists(path + temporary) {
				t.Error("the leftover stays")
			}
		})
	}
}

func TestSameRecordsFindsDifferences(t *testing.T) {
	one, other := dbPath(t), dbPath(t)
	hollow(t, one)
	hollow(t, other)
	a := open(t, one, Options{})
	if err := sameRecords(a.bolt, open(t, other, Options{}).bolt); err != nil {
		t.Errorf("two of the same: %v", err)
	}
	for name, change := range map[string]func(db *DB) error{
		"a record less":    func(db *DB) error { return NewTable[string](db, "texts").Delete("kept7") },
		"the last is gone": func(db *DB) error { return NewTable[string](db, "texts").Delete("kept99") },
		"a record more":    func(db *DB) error { return NewTable[string](db, "texts").Put("x", "x") },
		"another value":    func(db *DB) error { return NewTable[string](db, "texts").Put("kept7", "x") },
		"a table more":     func(db *DB) error { return NewTable[string](db, "x").Put("x", "x") },
	} {
		path := dbPath(t)
		hollow(t, path)
		b := open(t, path, Options{})
		must.Succeed(t, change(b))
		if sameRecords(a.bolt, b.bolt) == nil {
			t.Errorf("%s: passes for the same", name)
		}
	}
}
