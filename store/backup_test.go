package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"perch/must"
)

// TestBackupWhileWriting checks that a backup is consistent. The writer changes both tables in one commit, so both have the
// same number in a consistent copy.
func TestBackupWhileWriting(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	left, right := NewTable[int](db, "left"), NewTable[int](db, "right")
	must.Succeed(t, left.Put("n", 0))
	must.Succeed(t, right.Put("n", 0))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				left.PutSoon("n", i)
				if err := right.Put("n", i); err != nil {
					t.Error(err)
				}
				if err := left.Put(fmt.Sprint("more", i), i); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 5 {
		path := dbPath(t)
		var copied bytes.Buffer
		must.Succeed(t, db.Backup(&copied))
		must.Succeed(t, os.WriteFile(path, copied.Bytes(), 0o600))
		restored := open(t, path, Options{})
		l, _, err1 := NewTable[int](restored, "left").Get("n")
		r, _, err2 := NewTable[int](restored, "right").Get("n")
		if err := errors.Join(err1, err2); err != nil || (l != r && l != r+1) { // Backup may commit the next PutSoon
			t.Errorf("the copy has %d and %d, %v", l, r, err)
		}
	}
	close(stop)
	writer.Wait()
}

func TestBackupHoldsWhatWaits(t *testing.T) {
	db, path := open(t, dbPath(t), Options{}), dbPath(t)
	NewTable[int](db, "numbers").PutSoon("a", 1)
	var copied bytes.Buffer
	must.Succeed(t, db.Backup(&copied))
	must.Succeed(t, os.WriteFile(path, copied.Bytes(), 0o600))
	if got, _, _ := NewTable[int](open(t, path, Options{}), "numbers").Get("a"); got != 1 {
		t.Error("what waited is not in the copy")
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("no more room") }

func TestBackupThatFails(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	if err := db.Backup(fullWriter{}); err == nil {
		t.Error("a copy that could not be written is no backup")
	}
	must.Succeed(t, db.Close())
	if err := db.Backup(&bytes.Buffer{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Backup of a closed database = %v", err)
	}
}
