package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
)

func wantCommits(t *testing.T, db *DB, want uint64, when string) {
	t.Helper()
	if got := db.Commits(); got != want {
		t.Errorf("%s: %d commits, want %d", when, got, want)
	}
}

func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, dbPath(t), Options{})
		numbers := NewTable[int](db, "numbers")
		time.Sleep(24 * time.Hour)
		wantCommits(t, db, 0, "idle")

		for i := range 5000 {
			numbers.PutSoon(fmt.Sprint(i%50), i)
		}
		time.Sleep(5*time.Second - 1)
		wantCommits(t, db, 0, "before its time")
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		wantCommits(t, db, 1, "five seconds after the first")

		numbers.PutSoon("soon", 1)
		time.Sleep(4 * time.Second)
		must.Succeed(t, numbers.Put("now", 1))
		wantCommits(t, db, 2, "a Put takes along what waits")
		numbers.PutSoon("soon", 2)
		time.Sleep(4 * time.Second)
		wantCommits(t, db, 2, "the time counts from the first that waits")
		time.Sleep(2 * time.Second)
		wantCommits(t, db, 3, "six seconds later")

		numbers.PutSoon("soon", 3)
		numbers.PutSoon("soon", 2)
		must.Succeed(t, numbers.Put("now", 1))
		must.Succeed(t, numbers.Delete("none"))
		must.Succeed(t, NewTable[int](db, "empty").Delete("none"))
		time.Sleep(time.Hour)
		wantCommits(t, db, 3, "what is stored already")
		must.Succeed(t, numbers.Delete("now"))
		must.Succeed(t, db.Flush())
		wantCommits(t, db, 4, "delete")
	})
}

// TestSteadyWriterIsFlushed checks that a value that is written every second is committed every five seconds, although
// there is never a pause of five seconds.
func TestSteadyWriterIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, dbPath(t), Options{})
		numbers := NewTable[int](db, "numbers")
		for i := range 61 {
			numbers.PutSoon("k", i)
			time.Sleep(time.Second)
		}
		if n := db.Commits(); n < 10 || n > 12 {
			t.Errorf("%d commits in a minute of steady writing, want one each 5 to 6 s", n)
		}
	})
}

// refuse makes every commit fail that needs more pages than are free in the file, as on a full disk. If yes is false, refuse
// ends this.
func refuse(db *DB, yes bool) {
	db.writing.Lock()
	defer db.writing.Unlock()
	db.bolt.MaxSize = 0
	if yes {
		db.bolt.MaxSize = 1
	}
}

func TestFailedFlushKeepsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := dbPath(t)
		db := open(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		texts := NewTable[string](db, "texts")
		must.Succeed(t, texts.Put("old", "stored"))
		refuse(db, true)
		large := strings.Repeat("x", 1<<18)
		texts.PutSoon("large", large)
		texts.DeleteSoon("old")
		time.Sleep(time.Hour)
		synctest.Wait()
		wantCommits(t, db, 1, "the disk refuses")
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors in the log, want one:\n%s", n, &log)
		}
		if err := db.Err(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Err = %v", err)
		}
		if got, _, _ := texts.Get("large"); got != large {
			t.Error("a value that waits is not seen")
		}
		if err := texts.Put("now", "refused"); err == nil {
			t.Error("Put says it is durable")
		}
		must.Succeed(t, db.Readable())

		refuse(db, false)
		time.Sleep(maxRetry)
		synctest.Wait()
		wantCommits(t, db, 2, "the disk takes it again")
		must.Succeed(t, db.Err())
		if got, found, _ := texts.Get("large"); !found || got != large {
			t.Error("the value was lost")
		}
		for _, key := range []string{"old", "now"} {
			if _, found, _ := texts.Get(key); found {
				t.Errorf("%s is there", key)
			}
		}
		if !strings.Contains(log.String(), "written again") {
			t.Errorf("the end of the fault is not logged:\n%s", &log)
		}
	})
}

func TestCloseReportsWhatIsLost(t *testing.T) {
	db := must.Value(Open(dbPath(t), Options{}))(t)
	refuse(db, true)
	NewTable[string](db, "texts").PutSoon("k", strings.Repeat("x", 1<<18))
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "1 queued records") {
		t.Errorf("Close = %v", err)
	}
	if again := db.Close(); again == nil {
		t.Error("the second Close forgot the fault")
	}
}

func fill(table *Table[int], from, n int) {
	for i := range n {
		table.PutSoon(fmt.Sprintf("%06d", from+i), i)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	db := open(t, dbPath(t), Options{FlushAfter: time.Hour})
	numbers, texts := NewTable[int](db, "numbers"), NewTable[string](db, "texts")
	fill(numbers, 0, MaxWaiting)
	wantCommits(t, db, 0, "as many as may wait")
	fill(numbers, MaxWaiting, 1)
	wantCommits(t, db, 1, "one more")
	if len(db.pending) != 1 {
		t.Errorf("%d still wait", len(db.pending))
	}
	for i := range 10 {
		texts.PutSoon(fmt.Sprint(i), strings.Repeat("x", MaxValue-2))
	}
	wantCommits(t, db, 2, "as many bytes as may wait")
	must.Succeed(t, db.Flush())
	if db.size != 0 || len(db.pending) != 0 {
		t.Errorf("%d bytes in %d records wait after a flush", db.size, len(db.pending))
	}
}

func TestWaitingForADiskThatRefuses(t *testing.T) {
	var log bytes.Buffer
	db := open(t, dbPath(t), Options{FlushAfter: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
	numbers := NewTable[int](db, "numbers")
	refuse(db, true)
	fill(numbers, 0, MaxWaiting+50)
	if len(db.pending) != MaxWaiting || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("%d wait; log:\n%s", len(db.pending), &log)
	}
	numbers.PutSoon("000000", -1)
	if got, _, _ := numbers.Get("000000"); got != -1 {
		t.Error("a waiting record cannot be renewed")
	}
	refuse(db, false)
	must.Succeed(t, db.Flush())
	if n := countAll(numbers); n != MaxWaiting || db.Err() != nil || db.size != 0 {
		t.Errorf("%d records, %d bytes waiting, %v", n, db.size, db.Err())
	}
}

// TestWrittenDuringACommit checks that a commit does not remove a value from the backlog that was written during the
// commit.
func TestWrittenDuringACommit(t *testing.T) {
	db := open(t, dbPath(t), Options{FlushAfter: time.Hour})
	numbers := NewTable[int](db, "numbers")
	numbers.PutSoon("k", 1)
	batch := db.queued()
	numbers.PutSoon("k", 2)
	db.finishCommit(batch, nil)
	if got, found, _ := numbers.Get("k"); !found || got != 2 {
		t.Errorf("Get = %d, %v", got, found)
	}
	db.finishCommit(nil, errors.New("boom"))
	db.finishCommit(nil, errUnchanged)
	if err := db.Err(); err == nil || err.Error() != "boom" {
		t.Error("a commit that wrote nothing cleared the fault")
	}
}

func TestChangeIsOneCommit(t *testing.T) {
	db := open(t, dbPath(t), Options{FlushAfter: time.Hour})
	texts := NewTable[string](db, "texts")
	must.Succeed(t, texts.Put("old", "old"))
	texts.PutSoon("waits", "waits")
	must.Succeed(t, texts.Change(map[string]string{"a": "a", "b": "b"}, []string{"old", "none", ""}))
	wantCommits(t, db, 2, "a change of four records")
	if err := texts.Change(map[string]string{"c": "c", "": "no key"}, []string{"a"}); !errors.Is(err, ErrRefused) {
		t.Errorf("a record without a key: %v", err)
	}
	refuse(db, true)
	if texts.Change(map[string]string{"c": strings.Repeat("x", 1<<18)}, []string{"a"}) == nil {
		t.Error("a disk that refuses takes a change")
	}
	refuse(db, false)
	must.Succeed(t, db.Flush())
	for key, want := range map[string]string{"a": "a", "b": "b", "waits": "waits", "old": "", "c": ""} {
		if got, _, err := texts.Get(key); got != want || err != nil {
			t.Errorf("%s is %.20q, %v; want %q", key, got, err, want)
		}
	}
}
