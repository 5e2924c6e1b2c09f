package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
	"perch/store/storetest"
)

// TestFileVanishesWhileInUse checks that reads and writes return ErrDamaged if the memory map cannot be read, for example
// because an SD card has failed. The kernel then raises a fault, which must not end the process.
func TestFileVanishesWhileInUse(t *testing.T) {
	for left, reopened := range map[int64]error{0: nil, 2 * pageSize: ErrDamaged} {
		t.Run(fmt.Sprint(left, " bytes left"), func(t *testing.T) {
			path := dbPath(t)
			db := must.Value(Open(path, Options{}))(t)
			texts := NewTable[string](db, "texts")
			must.Succeed(t, texts.Put("a", strings.Repeat("a", 20_000)))
			must.Succeed(t, os.Truncate(path, left))

			for range 2 { // the second round would block if the first left a lock locked
				if _, _, err := texts.Get("a"); !errors.Is(err, ErrDamaged) {
					t.Errorf("Get = %v", err)
				}
				if err := db.Readable(); !errors.Is(err, ErrDamaged) {
					t.Errorf("Readable = %v", err)
				}
				if n := countAll(texts); n != 0 {
					t.Errorf("%d records out of nothing", n)
				}
				if err := texts.Put("b", "b"); !errors.Is(err, ErrDamaged) {
					t.Errorf("Put = %v", err)
				}
			}
			texts.PutSoon("c", "c")
			if got, _, err := texts.Get("c"); got != "c" || err != nil {
				t.Errorf("memory is lost, too: %q, %v", got, err)
			}
			if err := db.Close(); !errors.Is(err, ErrDamaged) {
				t.Errorf("Close = %v", err)
			}
			// The file must be unlocked. An empty file is treated as a new one.
			db, err := Open(path, Options{Timeout: time.Millisecond})
			if !errors.Is(err, reopened) {
				t.Errorf("Open = %v, want %v", err, reopened)
			}
			if err == nil {
				must.Succeed(t, db.Close())
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	dir := storetest.SmallDisk(t, "256k")
	path := filepath.Join(dir, "perch.db")
	db := open(t, path, Options{})
	texts := NewTable[string](db, "texts")
	must.Succeed(t, texts.Put("kept", "kept"))
	large := strings.Repeat("x", 400_000)
	if err := texts.Put("large", large); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("Put = %.200v", err)
	}
	if err := db.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Err = %v", err)
	}
	must.Succeed(t, db.Readable())
	var backup bytes.Buffer
	if err := db.Backup(&backup); err != nil {
		t.Errorf("a full disk cannot be backed up: %v", err)
	}
	if got, _, err := texts.Get("kept"); got != "kept" || err != nil {
		t.Errorf("Get = %q, %v", got, err)
	}
	must.Succeed(t, syscall.Mount("perch", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"))
	must.Succeed(t, texts.Put("large", large))
	must.Succeed(t, db.Err())
	must.Succeed(t, db.Close())
	if got, _, _ := NewTable[string](open(t, path, Options{}), "texts").Get("large"); got != large {
		t.Error("the value is not on the disk")
	}
}

func TestNoRoomForAFirstStart(t *testing.T) {
	dir := storetest.SmallDisk(t, "8k")
	if _, err := Open(filepath.Join(dir, "perch.db"), Options{}); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("Open = %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left over: %v", entries)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := storetest.SmallDisk(t, "1m")
	must.Succeed(t, open(t, filepath.Join(dir, "perch.db"), Options{}).Close())
	must.Succeed(t, syscall.Mount("perch", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, name := range []string{"perch.db", "other.db", "deep/perch.db"} {
		_, err := Open(filepath.Join(dir, name), Options{})
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open(%s) = %v", name, err)
		}
	}
}
