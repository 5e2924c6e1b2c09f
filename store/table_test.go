package store

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"perch/must"
)

func TestPutSoonKeepsWhatItWasGiven(t *testing.T) {
	robots := NewTable[robot](open(t, dbPath(t), Options{}), "robots")
	r := robot{Tags: []string{"before"}}
	robots.PutSoon("a", r)
	r.Tags[0] = "after"
	if got, _, _ := robots.Get("a"); got.Tags[0] != "before" {
		t.Errorf("the caller's later change was stored: %v", got)
	}
}

// TestLoopMayWrite checks that a loop may write to the table that it reads. With an open transaction it would hang.
func TestLoopMayWrite(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	numbers := NewTable[int](db, "numbers")
	for i := range 2*stepRecords + 1 {
		numbers.PutSoon(fmt.Sprintf("%04d", i), i)
	}
	must.Succeed(t, db.Flush())
	for key, v := range numbers.All() {
		switch v % 3 {
		case 0:
			must.Succeed(t, numbers.Delete(key))
		case 1:
			must.Succeed(t, numbers.Put("x"+strings.Repeat(key, 200), v))
		}
		if v > 40 {
			break
		}
	}
	if n := countAll(numbers); n != 2*stepRecords+1 {
		t.Errorf("%d records left", n)
	}
}

// TestLoopMayDeleteWhatItSaw checks that a loop continues after the last record of a step was deleted (see DB.walk).
func TestLoopMayDeleteWhatItSaw(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	numbers := NewTable[int](db, "numbers")
	const n = 3*stepRecords + 1
	for name, loop := range map[string]iter.Seq2[string, int]{"All": numbers.All(), "Newest": numbers.Newest(n)} {
		for i := range n {
			numbers.PutSoon(fmt.Sprintf("%04d", i), i)
		}
		must.Succeed(t, db.Flush())
		seen := 0
		for key := range loop {
			seen++
			numbers.DeleteSoon(key)
			if seen%stepRecords == 0 {
				must.Succeed(t, db.Flush())
			}
		}
		if left := countAll(numbers); seen != n || left != 0 {
			t.Errorf("%s: %d of %d seen, %d left", name, seen, n, left)
		}
	}
}

func countAll[T any](table *Table[T]) (n int) {
	for range table.All() {
		n++
	}
	return n
}

func TestHostileRecords(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	texts := NewTable[string](db, "texts")
	for _, key := range []string{"\x00", "\xff\xfe", "../../etc/passwd", "schema", strings.Repeat("k", MaxKey), " ", "\n"} {
		text := "value of " + fmt.Sprintf("%q", key) + "</script>\u2028\x00"
		must.Succeed(t, texts.Put(key, text))
		if got, found, err := texts.Get(key); !found || err != nil || got != text {
			t.Errorf("Get(%q) = %q, %v, %v", key, got, found, err)
		}
	}
	refused := map[string]error{
		"no key":      texts.Put("", "x"),
		"long key":    texts.Put(strings.Repeat("k", MaxKey+1), "x"),
		"large value": texts.Put("k", strings.Repeat("v", MaxValue)),
		"not JSON":    NewTable[float64](db, "numbers").Put("k", math.NaN()),
		"no type":     NewTable[any](db, "any").Put("k", func() {}),
	}
	for name, err := range refused {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := db.Commits()
	texts.PutSoon("", "x")
	NewTable[any](db, "any").PutSoon("k", make(chan int))
	must.Succeed(t, texts.Delete(""))
	must.Succeed(t, texts.Delete(strings.Repeat("k", 1<<17)))
	must.Succeed(t, db.Flush())
	if db.Commits() != before {
		t.Error("nothing was to be written, and yet there was a commit")
	}
}

func TestBadTableNames(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	for _, name := range []string{"", schemaTable, strings.Repeat("n", MaxKey+1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("table %.10q was accepted", name)
				}
			}()
			NewTable[int](db, name)
		}()
	}
}

// TestRecordOfAnotherShape checks that a record that cannot be decoded is skipped and logged, but not deleted.
func TestRecordOfAnotherShape(t *testing.T) {
	path := dbPath(t)
	var log bytes.Buffer
	db := open(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	robots := NewTable[robot](db, "robots")
	must.Succeed(t, robots.Put("a", robot{Name: "A"}))
	must.Succeed(t, robots.Put("c", robot{Name: "C"}))
	must.Succeed(t, NewTable[[]int](db, "robots").Put("b", []int{1}))
	must.Succeed(t, NewTable[any](db, "robots").Put("b1", map[string]any{"name": "B", "count": "many"}))
	must.Succeed(t, db.bolt.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("robots")).Put([]byte("b2"), []byte(`{"name":"half`))
	}))
	for range 3 {
		var names []string
		for _, r := range robots.All() {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, []string{"A", "C"}) {
			t.Fatalf("All = %v", names)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings for three bad records:\n%s", n, &log)
	}
	for _, key := range []string{"b", "b1", "b2"} {
		if r, found, err := robots.Get(key); err == nil || found || !reflect.DeepEqual(r, robot{}) {
			t.Errorf("Get of the bad record %s = %+v, %v, %v", key, r, found, err)
		}
	}
	if got, found, err := NewTable[[]int](db, "robots").Get("b"); !found || err != nil || got[0] != 1 {
		t.Errorf("the bad record was not kept: %v, %v, %v", got, found, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	path := dbPath(t)
	db := open(t, path, Options{FlushAfter: 1})
	counts := NewTable[int](db, "counts")
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 25 {
				mine, hot := fmt.Sprintf("w%d-%03d", w, i), fmt.Sprintf("hot%d", i%3)
				if err := counts.Put(mine, i); err != nil {
					t.Error(err)
				}
				counts.PutSoon(hot, i)
				counts.DeleteSoon(fmt.Sprintf("w%d-%03d", w, i-5))
				if got, found, err := counts.Get(mine); !found || err != nil || got != i {
					t.Errorf("own write not seen: %d, %v, %v", got, found, err)
				}
				countAll(counts)
				_ = db.Err()
			}
		})
	}
	all.Wait()
	must.Succeed(t, db.Close())
	if n := countAll(NewTable[int](open(t, path, Options{}), "counts")); n != 4*5+3 {
		t.Errorf("%d records, want 23", n)
	}
}

func TestClosed(t *testing.T) {
	db := open(t, dbPath(t), Options{})
	numbers := NewTable[int](db, "numbers")
	numbers.PutSoon("a", 1)
	must.Succeed(t, db.Close())
	_, _, err := numbers.Get("a")
	for name, err := range map[string]error{
		"Get": err, "Put": numbers.Put("a", 2), "Delete": numbers.Delete("a"), "Readable": db.Readable(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	numbers.PutSoon("b", 2)
	if n := countAll(numbers); n != 0 {
		t.Errorf("%d records of a closed database", n)
	}
}
