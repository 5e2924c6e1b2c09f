package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"perch/must"
)

// sector is the size of a sector in bytes. A disk writes a sector completely or not at all. Data that was not synced
// reaches the disk in any order, or never.
const sector = 512

type written struct {
	at   int64
	data []byte
}

// recorded is what bolt wrote for one transaction: first the pages, which it syncs, and then the meta page, which it syncs.
type recorded struct {
	before []byte // content of the file before the transaction
	size   int64  // size of the file in bytes; it may grow before the pages are written
	pages  []written
	meta   written
	after  []byte // content of the file after the transaction
}

// recorder records what bolt writes to its file. For this, record replaces bolt's unexported function ops.writeAt, which
// bolt's own tests also replace. It panics if a version of bolt has no such function.
type recorder struct {
	path   string
	before []byte
	pages  []written
	last   recorded
}

func record(t *testing.T, db *DB, path string) *recorder {
	t.Helper()
	if db.bolt.NoSync || db.bolt.NoGrowSync {
		t.Fatal("commits are not synced")
	}
	r := &recorder{path: path, before: read(t, path)}
	field := reflect.ValueOf(db.bolt).Elem().FieldByName("ops").FieldByName("writeAt")
	hook := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	*hook = func(b []byte, at int64) (int, error) {
		w := written{at, bytes.Clone(b)}
		if at >= 2*pageSize {
			r.pages = append(r.pages, w)
		} else {
			info, err := db.file.Stat()
			if err != nil || len(b) != pageSize {
				return 0, errors.Join(err, fmt.Errorf("a meta page of %d bytes", len(b)))
			}
			r.last = recorded{before: r.before, size: info.Size(), pages: r.pages, meta: w}
			r.pages = nil
		}
		return db.file.WriteAt(b, at)
	}
	return r
}

// commit returns what the last transaction wrote.
func (r *recorder) commit(t *testing.T) recorded {
	t.Helper()
	if len(r.pages) > 0 || len(r.last.pages) == 0 {
		t.Fatal("the meta page is not the last that is written")
	}
	c := r.last
	c.after, r.last = read(t, r.path), recorded{}
	r.before = c.after
	return c
}

// sectors copies those sectors of w to the file for which which returns true, and returns the file.
func sectors(file []byte, w written, which func() bool) []byte {
	for n := 0; n < len(w.data); n += sector {
		at := int(w.at) + n
		if which() && at+sector <= len(file) { // a sector beyond the end of the file is not written
			copy(file[at:], w.data[n:n+sector])
		}
	}
	return file
}

func always() bool { return true }

// cutInPages returns what may be on the disk if the power fails before the meta page is written: all sectors of some pages
// and some sectors of others, in a file that may not have grown yet.
func (c recorded) cutInPages(random *rand.Rand) []byte {
	file := bytes.Clone(c.before)
	if grown := int(c.size) - len(file); grown > 0 && random.IntN(4) > 0 {
		file = append(file, make([]byte, grown)...)
	}
	odds := random.Float64()
	for _, w := range c.pages {
		switch random.IntN(3) {
		case 0:
			file = sectors(file, w, always)
		case 1:
			file = sectors(file, w, func() bool { return random.Float64() < odds })
		}
	}
	return file
}

// whole returns the file with all pages, before the meta page is written.
func (c recorded) whole() []byte {
	file := append(bytes.Clone(c.before), make([]byte, max(0, int(c.size)-len(c.before)))...)
	for _, w := range c.pages {
		file = sectors(file, w, always)
	}
	return file
}

// cutInMeta returns what may be on the disk if the power fails while the meta page is written: some of its sectors or, with
// a bad SD card, a part of a sector.
func (c recorded) cutInMeta(random *rand.Rand) []byte {
	file := c.whole()
	if random.IntN(2) == 0 {
		return sectors(file, c.meta, func() bool { return random.IntN(2) == 0 })
	}
	from, to := random.IntN(100), random.IntN(100)
	copy(file[int(c.meta.at)+min(from, to):], c.meta.data[min(from, to):max(from, to)])
	return file
}

type model map[string]string

func (m model) equal(o model) bool { return maps.Equal(m, o) }

// content opens a database file and returns its records. Keys of the model are the table's name and the record's key.
func content(path string) (model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := Check(f, Options{}, nil); err != nil {
		return nil, err
	}
	db, err := Open(path, Options{})
	if err != nil {
		return nil, err
	}
	m := model{}
	for _, name := range []string{"a", "b"} {
		for k, v := range NewTable[string](db, name).All() {
			m[name+k] = v
		}
	}
	return m, db.Close()
}

// after opens a file that a power failure has left, and returns the index in want of the model that the records equal. If
// further is set, it also checks that the database can be written. It returns an error if no model equals the records.
func after(path string, file []byte, further bool, want ...model) (which int, err error) {
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return 0, err
	}
	got, err := content(path)
	if err != nil {
		return 0, err
	}
	which = slices.IndexFunc(want, got.equal)
	if which < 0 {
		return 0, fmt.Errorf("%d records, which are neither those before nor those after", len(got))
	}
	if !further {
		return which, nil
	}
	db, err := Open(path, Options{})
	if err != nil {
		return 0, err
	}
	if err := errors.Join(NewTable[string](db, "a").Put("further", strings.Repeat("f", 5000)), db.Close()); err != nil {
		return 0, err
	}
	got["afurther"] = strings.Repeat("f", 5000)
	again, err := content(path)
	if err == nil && !got.equal(again) {
		err = errors.New("what was written afterwards is not there")
	}
	return which, err
}

// writes changes random records in m and in the database, and commits them.
func writes(t *testing.T, random *rand.Rand, m model, tables map[string]*Table[string]) {
	t.Helper()
	for range random.IntN(40) {
		name, key := string('a'+rune(random.IntN(2))), fmt.Sprint(random.IntN(60))
		switch n := random.IntN(10); {
		case n < 3:
			tables[name].DeleteSoon(key)
			delete(m, name+key)
		default:
			length := random.IntN(300)
			if n == 9 {
				length = random.IntN(12_000)
			}
			m[name+key] = strings.Repeat(string('a'+rune(random.IntN(26))), length)
			tables[name].PutSoon(key, m[name+key])
		}
	}
	m["aacknowledged"] = fmt.Sprint(random.Uint64())
	must.Succeed(t, tables["a"].Put("acknowledged", m["aacknowledged"]))
}

// eachCommit makes n commits with random changes, and calls see with each commit and the records before and after it.
func eachCommit(t *testing.T, seed uint64, n int, see func(random *rand.Rand, c recorded, before, after model)) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	path := dbPath(t)
	db := open(t, path, Options{})
	r := record(t, db, path)
	tables := map[string]*Table[string]{"a": NewTable[string](db, "a"), "b": NewTable[string](db, "b")}
	m := model{}
	for range n {
		before := maps.Clone(m)
		writes(t, random, m, tables)
		see(random, r.commit(t), before, maps.Clone(m))
	}
}

// TestPowerCutInACommit checks that after a power failure during a commit, the file has the result of all earlier commits,
// and all or nothing of the interrupted one.
func TestPowerCutInACommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.db")
	cuts, taken, grown := 0, 0, 0
	for seed := range uint64(3) {
		eachCommit(t, seed, 12, func(random *rand.Rand, c recorded, before, done model) {
			if len(c.after) > len(c.before) {
				grown++
			}
			if !bytes.Equal(c.after, sectors(c.whole(), c.meta, always)) {
				t.Fatalf("seed %d: the disk holds something that was not written", seed)
			}
			for n := range 10 {
				file, want := c.cutInPages(random), []model{before}
				if n%2 == 1 {
					file, want = c.cutInMeta(random), []model{before, done}
				}
				cuts++
				which, err := after(path, file, n == 0, want...)
				if err != nil {
					t.Errorf("seed %d, cut %d: %v", seed, n, err)
				}
				taken += which
			}
			if _, err := after(path, c.after, false, done); err != nil {
				t.Errorf("seed %d: what was acknowledged: %v", seed, err)
			}
		})
	}
	t.Logf("%d power cuts; of those in a meta page, the transaction is there after %d; the file has grown %d times", cuts, taken, grown)
	if taken == 0 || taken == cuts/2 || grown == 0 {
		t.Error("the meta page is never torn, or always, or the file never grows")
	}
}
