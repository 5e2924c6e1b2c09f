package store

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perch/must"
)

// TestAgainstMap does the same random steps with a table and with a map, and checks after each step that both have the same
// content.
func TestAgainstMap(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(dir, "perch.db")
		db, err := Open(path, Options{})
		must.Succeed(rt, err)
		defer func() { _, _ = db.Close(), os.Remove(path) }()
		table, model := NewTable[string](db, "t"), map[string]string{}
		key := rapid.Custom(func(rt *rapid.T) string {
			return fmt.Sprintf("%c%d", rapid.SampledFrom([]rune("ab\x00é")).Draw(rt, "c"), rapid.IntRange(0, 60).Draw(rt, "n"))
		})
		ok := func(err error) {
			must.Succeed(rt, err)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"Put": func(rt *rapid.T) {
				k, v := key.Draw(rt, "key"), rapid.String().Draw(rt, "value")
				model[k] = v
				ok(table.Put(k, v))
			},
			"PutSoon": func(rt *rapid.T) {
				for k, v := range rapid.MapOfN(key, rapid.String(), 0, 90).Draw(rt, "values") {
					model[k] = v
					table.PutSoon(k, v)
				}
			},
			"Delete":     func(rt *rapid.T) { k := key.Draw(rt, "key"); delete(model, k); ok(table.Delete(k)) },
			"DeleteSoon": func(rt *rapid.T) { k := key.Draw(rt, "key"); delete(model, k); table.DeleteSoon(k) },
			"Flush":      func(rt *rapid.T) { ok(db.Flush()) },
			"Reopen": func(rt *rapid.T) {
				ok(db.Close())
				db, err = Open(path, Options{})
				ok(err)
				table = NewTable[string](db, "t")
			},
			"": func(rt *rapid.T) { compare(rt, table, model, key.Draw(rt, "probe")) },
		})
	})
}

func compare(rt *rapid.T, table *Table[string], model map[string]string, probe string) {
	want, there := model[probe]
	if got, found, err := table.Get(probe); err != nil || found != there || got != want {
		rt.Fatalf("Get(%q) = %q, %v, %v; want %q, %v", probe, got, found, err, want, there)
	}
	keys := slices.Sorted(maps.Keys(model))
	var got []string
	for k, v := range table.All() {
		if v != model[k] {
			rt.Fatalf("All has %q at %q, want %q", v, k, model[k])
		}
		got = append(got, k)
	}
	if !slices.Equal(got, keys) {
		rt.Fatalf("All has keys %q, want %q", got, keys)
	}
	got = nil
	n := rapid.IntRange(-1, 260).Draw(rt, "n")
	for k := range table.Newest(n) {
		got = append(got, k)
	}
	slices.Reverse(keys)
	if !slices.Equal(got, keys[:min(max(n, 0), len(keys))]) {
		rt.Fatalf("Newest has keys %q, want %q", got, keys)
	}
}
