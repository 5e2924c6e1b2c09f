package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/store/salvage"
)

// usedDatabase returns the content of a database as after some weeks of use, and its records by table and key. The file has
// 512 KB, tables of very different sizes, and free pages.
func usedDatabase(t testing.TB) (file []byte, m map[string]map[string]string) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 12))
	path := filepath.Join(t.TempDir(), "used.db")
	db := open(t, path, Options{})
	m = map[string]map[string]string{}
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + random.IntN(26))
		}
		return string(b)
	}
	fill := func(table string, n, least, most int) {
		m[table] = map[string]string{}
		for i := range n {
			key, value := fmt.Sprintf("%04x%08x", i, random.Uint32()), text(least+random.IntN(most-least))
			m[table][key] = value
			NewTable[string](db, table).PutSoon(key, value)
		}
		must.Succeed(t, db.Flush())
	}
	fill("robots", 30, 500, 2000)
	fill("turns", 140, 200, 600)
	fill("sessions", 150, 100, 200)
	fill("memory", 160, 40, 400)
	fill("conversations", 4, 6000, 12000)
	fill("firmware", 8, 300, 600)
	fill("notifications", 3, 50, 100)
	for i, key := range slices.Sorted(maps.Keys(m["turns"])) {
		if i < 60 {
			NewTable[string](db, "turns").DeleteSoon(key)
			delete(m["turns"], key)
		}
	}
	must.Succeed(t, db.Flush())
	m["memory"]["latest"] = "the latest fact"
	must.Succeed(t, NewTable[string](db, "memory").Put("latest", "the latest fact"))
	must.Succeed(t, db.Close())
	if file = read(t, path); len(file) != 512<<10 {
		t.Fatalf("it has %d KB", len(file)>>10)
	}
	return file, m
}

// lostOf returns the records in want that the database does not have.
func lostOf(t *testing.T, db *DB, want map[string]map[string]string) (lost []row) {
	t.Helper()
	for table, records := range want {
		texts := NewTable[string](db, table)
		got := maps.Collect(texts.All())
		for key, value := range records {
			switch there, found := got[key]; {
			case !found:
				lost = append(lost, row{table, key})
			case there != value:
				t.Errorf("%s %s is another value", table, key)
			}
		}
		for key := range got {
			if _, known := records[key]; !known {
				t.Errorf("%s has %q, which was deleted or never there", table, key)
			}
		}
	}
	return lost
}

// reports reports whether the report s says that the record r may be lost.
func reports(s *salvage.Report, r row) bool {
	return slices.ContainsFunc(s.Lost, func(line string) bool {
		return strings.Contains(line, fmt.Sprintf("%q", r.table)) || strings.Contains(line, "the last change") || line == "and more"
	})
}

// TestEveryPageZeroed overwrites each page of a file of 512 KB with zeros, one page at a time, and opens the file with
// Salvage. It checks that the records in other pages are saved, that losses are reported, that the damaged file is kept
// unchanged, and that later writes are durable.
func TestEveryPageZeroed(t *testing.T) {
	t.Parallel()
	file, want := usedDatabase(t)
	dir := t.TempDir()
	salvaged, refused, missing, spread := 0, 0, 0, 0
	for page := range len(file) / pageSize {
		damaged := bytes.Clone(file)
		clear(damaged[page*pageSize : (page+1)*pageSize])
		if bytes.Equal(damaged, file) {
			continue
		}
		path := filepath.Join(dir, fmt.Sprint(page), "perch.db")
		must.Succeed(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, damaged, 0o600)))
		var log bytes.Buffer
		db, err := Open(path, Options{Salvage: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Errorf("page %d: %v", page, err)
			refused++
			continue
		}
		s, lost := db.Salvaged(), lostOf(t, db, want)
		missing, spread = missing+len(lost), max(spread, len(lost))
		switch kind := file[page*pageSize+8]; {
		case page > 1 && kind == branchPage && len(lost) > 0:
			t.Errorf("page %d: %d records are lost with a branch, and their own pages are there", page, len(lost))
		case s == nil && len(lost) > 0:
			t.Errorf("page %d: %d records are lost without a word", page, len(lost))
		case s == nil && log.Len() > 0:
			t.Errorf("page %d: nothing has happened, and it logs %s", page, &log)
		case s != nil:
			salvaged++
			if !strings.Contains(log.String(), "the database was damaged") {
				t.Errorf("page %d: the log says %q", page, &log)
			}
			if page > 1 && !bytes.Equal(read(t, s.Kept), damaged) {
				t.Errorf("page %d: the damaged file is not kept", page)
			}
			for _, r := range lost {
				if !reports(s, r) {
					t.Errorf("page %d: %v is lost, and told is %v", page, r, s)
				}
			}
		}
		must.Succeed(t, NewTable[string](db, "memory").Put("new", "a fact"))
		must.Succeed(t, db.Close())
		db = open(t, path, Options{Salvage: true})
		if got, found, err := NewTable[string](db, "memory").Get("new"); got != "a fact" || !found || err != nil {
			t.Errorf("page %d: an acknowledged fact is %q, %v", page, got, err)
		}
		if again := db.Salvaged(); s != nil && page > 1 && (again == nil || again.Kept != s.Kept) {
			t.Errorf("page %d: later nobody knows of it any more: %v", page, again)
		}
		must.Succeed(t, db.Close())
		if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) > 1 {
			t.Errorf("page %d: %v", page, aside)
		}
	}
	t.Logf("%d pages, %d salvaged, %d refused; %d records were lost in all, of a page %d at most", len(file)/pageSize, salvaged, refused, missing,
		spread)
	if salvaged < 60 || spread > 40 {
		t.Error("too little of the file is in use, or too much of it is lost")
	}
}

// TestEveryPageZeroedWhileItRuns overwrites each page of an open database with zeros, one page at a time. It checks that
// every read returns the right value or an error, and that every value whose Put succeeded is there at the next start.
func TestEveryPageZeroedWhileItRuns(t *testing.T) {
	t.Parallel()
	file, want := usedDatabase(t)
	dir := t.TempDir()
	refused, acknowledged := 0, 0
	for page := range len(file) / pageSize {
		path := filepath.Join(dir, fmt.Sprint(page), "perch.db")
		must.Succeed(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, file, 0o600)))
		db := must.Value(Open(path, Options{Salvage: true, FlushAfter: time.Hour}))(t)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must.Succeed(t, err)
		_, err = f.WriteAt(make([]byte, pageSize), int64(page)*pageSize)
		must.Succeed(t, errors.Join(err, f.Close()))

		memory := NewTable[string](db, "memory")
		first := page%2 == 0 // whether to write before the first read
		put := func(key string) (kept bool) {
			err := memory.Put(key, "a fact")
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("page %d: Put = %v", page, err)
			}
			return err == nil
		}
		early := first && put("early")
		for table, records := range want {
			texts := NewTable[string](db, table)
			for key, value := range records {
				if got, found, err := texts.Get(key); err == nil && (!found || got != value) {
					t.Errorf("page %d: %s %s is %q, %v", page, table, key, got, found)
				}
			}
		}
		for table, records := range want {
			texts, got := NewTable[string](db, table), 0
			for range texts.All() {
				got++
			}
			if extra := map[bool]int{true: 1}[early && table == "memory"]; got < len(records)+extra && texts.Err() == nil {
				t.Errorf("page %d: %s ends after %d of %d records, and nobody says so", page, table, got, len(records))
			}
		}
		damage := memory.Err()
		late := put("late")
		if late && damage != nil || (db.Readable() == nil) != late { // damage to the list of free pages is found only by a write
			t.Errorf("page %d: after %v a fact is acknowledged: %v; Readable = %v", page, damage, late, db.Readable())
		}
		if damage != nil {
			refused++
		}
		NewTable[string](db, "robots").DeleteSoon(slices.Sorted(maps.Keys(want["robots"]))[0])
		if err := db.Close(); (err == nil) != late {
			t.Errorf("page %d: Close = %v", page, err)
		}
		db = open(t, path, Options{Salvage: true})
		for key, kept := range map[string]bool{"early": early, "late": late} {
			if kept {
				acknowledged++
			}
			if got, _, err := NewTable[string](db, "memory").Get(key); kept != (got == "a fact") || err != nil {
				t.Errorf("page %d: %s was acknowledged: %v; at the next start it is %q, %v", page, key, kept, got, err)
			}
		}
		must.Succeed(t, db.Close())
	}
	t.Logf("of %d pages %d were found damaged; %d facts were acknowledged", len(file)/pageSize, refused, acknowledged)
	if refused < 60 || acknowledged == 0 {
		t.Error("too little was found")
	}
}
