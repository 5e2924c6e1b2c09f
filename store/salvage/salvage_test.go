package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"perch/must"
)

// text is the Validator of these tests: a key has 4 bytes, and a value consists of the letter x.
func text(key, value []byte) bool { return len(key) == 4 && bytes.Trim(value, "x") == nil }

// openBolt opens or creates a bolt file.
func openBolt(t testing.TB, path string) *bbolt.DB {
	t.Helper()
	db := must.Value(bbolt.Open(path, 0o600, &bbolt.Options{PageSize: PageSize, FreelistType: bbolt.FreelistMapType, NoSync: true}))(t)
	return db
}

// sample returns a file and the number of records by table. The file has a table of several pages, a table so small that
// it has no page, a table with a record that needs overflow pages, and free pages.
func sample(t testing.TB) (file []byte, records map[string]int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.db")
	db := openBolt(t, path)
	put := func(table string, n, length int) error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(table))
			for i := range n {
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "%04d", i), bytes.Repeat([]byte("x"), length)))
			}
			return err
		})
	}
	err := errors.Join(put("many", 1000, 50), put("many", 400, 60), put("small", 2, 5), put("large", 1, 50_000), db.Close())
	must.Succeed(t, err)
	file = must.Value(os.ReadFile(path))(t)
	return file, map[string]int{"many": 1000, "small": 2, "large": 1}
}

// recovered calls Copy for a file. It returns the results of Copy, and the number of records by table in the copy.
func recovered(t testing.TB, file []byte) (Copied, map[string]int, error) {
	t.Helper()
	to := openBolt(t, filepath.Join(t.TempDir(), "copy.db"))
	defer to.Close()
	c, err := Copy(to, bytes.NewReader(file), int64(len(file)), text)
	holds := map[string]int{}
	wrong := to.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				holds[string(name)]++
				if !text(key, value) {
					return fmt.Errorf("%s %q is no record", name, key)
				}
				return nil
			})
		})
	})
	if wrong != nil {
		t.Error(wrong)
	}
	return c, holds, err
}

func TestCopyOfAWholeFileHasEveryRecord(t *testing.T) {
	file, want := sample(t)
	if metas, err := Check(bytes.NewReader(file), int64(len(file)), text); metas != 2 || err != nil {
		t.Errorf("Check = %d, %v", metas, err)
	}
	c, holds, err := recovered(t, file)
	if err != nil || !maps.Equal(holds, want) || !maps.Equal(c.Records, want) || len(c.Lost) > 0 {
		t.Errorf("Copy = %+v, %v; the copy holds %v", c, err, holds)
	}
}

func TestEachZeroedPageIsFoundAndTheOthersCopied(t *testing.T) {
	file, want := sample(t)
	found := 0
	for at := 2 * PageSize; at < len(file); at += PageSize {
		damaged := bytes.Clone(file)
		clear(damaged[at : at+PageSize])
		if _, err := Check(bytes.NewReader(damaged), int64(len(damaged)), text); err == nil {
			continue // a free page
		}
		found++
		c, holds, err := recovered(t, damaged)
		if err != nil || !maps.Equal(holds, c.Records) {
			t.Errorf("page %d: %+v, %v; the copy holds %v", at/PageSize, c, err, holds)
		}
		for table, n := range want {
			lost := n - holds[table]
			if lost > 0 && !slices.Contains(c.Tables, table) && !slices.Contains(c.Lost, "the last change before the damage") {
				t.Errorf("page %d: %d records of %s are missing, and the report is %v", at/PageSize, lost, table, c.Lost)
			}
			if table == "many" && lost > 100 && len(c.Lost) > 0 && c.Lost[0] != "the last change before the damage" {
				t.Errorf("page %d: %d records are missing for one page", at/PageSize, lost)
			}
		}
	}
	if found < 20 {
		t.Errorf("damage was found in %d pages only", found)
	}
}

func TestCopyOfWhatIsNoDatabaseFindsNothing(t *testing.T) {
	for _, content := range []string{"", strings.Repeat("hello\n", 5000), strings.Repeat("\x00", 5*PageSize)} {
		if _, _, err := recovered(t, []byte(content)); !errors.Is(err, ErrNothing) {
			t.Errorf("Copy of %.10q = %v", content, err)
		}
	}
}

// FuzzCopy changes a file at one position and corrects the checksums of the meta records. It checks that bolt can read the
// whole file if Check accepts it, and that Copy writes only valid records.
func FuzzCopy(f *testing.F) {
	whole, _ := sample(f)
	f.Add(uint32(2*PageSize), []byte{1, 2, 3})
	f.Add(uint32(pageHead+16), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add(uint32(5*PageSize+8), make([]byte, 600))
	f.Add(uint32(7*PageSize+pageHead), bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		file := bytes.Clone(whole)
		copy(file[int(at)%len(file):], change)
		for page := range 2 {
			record := file[page*PageSize+pageHead:]
			sum := fnv.New64a()
			sum.Write(record[:metaSize-8])
			binary.NativeEndian.PutUint64(record[metaSize-8:], sum.Sum64())
		}
		if _, _, err := recovered(t, file); err != nil && !errors.Is(err, ErrNothing) {
			t.Error(err)
		}
		if _, err := Check(bytes.NewReader(file), int64(len(file)), text); err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "changed.db")
		must.Succeed(t, os.WriteFile(path, file, 0o600))
		db := openBolt(t, path)
		defer db.Close()
		err := db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return b.ForEach(func(_, _ []byte) error { return nil }) })
		})
		if err != nil {
			t.Error(err)
		}
	})
}
