package salvage

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// mostLost bounds the lines of a report.
const mostLost = 12

// rescue copies the readable records of a damaged file to another.
type rescue struct {
	t        *tree
	freelist uint64
	list     []pair // the tables, without keys; the value is the root page of each
	gaps     []gap
	older    bool // only the state before the last change could be read
	stray    int  // unreadable pages in use that belong to nothing known

	to      *bbolt.DB
	waiting []pair // to be written in one transaction
	size    int    // bytes in waiting
	records map[string]int
}

// pair is a record of a table.
type pair struct {
	table      string
	key, value []byte
}

// gap is a part of the tree that could not be read.
type gap struct {
	part
	pages int // found below it without it
}

// newRescue finds the tables. They are in one page, which each change writes to a new place: if it is damaged, the
// previous one still exists.
func newRescue(to *bbolt.DB, file io.ReaderAt, size int64, sound Sound) (*rescue, error) {
	metas, err := readMetas(file)
	if err != nil {
		return nil, err
	}
	for i, m := range metas {
		r := &rescue{to: to, freelist: m.freelist, older: i > 0, records: map[string]int{}}
		r.t = newTree(file, min(m.pages, uint64(size)/PageSize), sound)
		r.t.table = func(_ part, name, value []byte) error {
			r.list = append(r.list, pair{table: string(name), value: bytes.Clone(value)})
			return nil
		}
		r.t.record = r.add
		if err = r.t.walk(m.root, part{}); err == nil {
			return r, nil
		}
	}
	return nil, err
}

// tables copies all records that can be reached.
func (r *rescue) tables() error {
	r.t.lost = func(p part, _ error) error {
		r.gaps = append(r.gaps, gap{part: part{p.table, bytes.Clone(p.low), bytes.Clone(p.high), p.depth, p.page}})
		return nil
	}
	for _, e := range r.list {
		err := r.to.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte(e.table))
			return err
		})
		if err != nil {
			return err
		}
		if err := r.t.open(part{table: e.table, depth: 1}, []byte(e.table), e.value); err != nil {
			return err
		}
	}
	return nil
}

// orphans finds the records below a damaged branch: pages in use that nothing leads to. If their keys fit into exactly
// one gap they belong there.
func (r *rescue) orphans() error {
	if len(r.gaps) == 0 {
		return nil
	}
	if _, err := r.t.freePages(r.freelist); err != nil {
		return nil //nolint:nilerr // it is unknown which are in use, and old ones must not come back
	}
	strict := *r.t
	strict.lost = func(_ part, cause error) error { return cause }
	for id := uint64(2); id < r.t.pages; id++ {
		if r.t.used(id) {
			continue
		}
		page, kind, count, err := strict.page(id)
		switch {
		case err != nil:
			if !slices.ContainsFunc(r.gaps, func(g gap) bool { return g.page == id }) {
				r.stray++
			}
		case kind == leafPage && count > 0:
			if err := r.adopt(strict, page, count); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rescue) adopt(t tree, page []byte, count int) error {
	t.record = func(string, []byte, []byte) error { return nil }
	home := -1
	for i, g := range r.gaps {
		if t.leaf(page, count, g.part) != nil {
			continue
		}
		if home >= 0 {
			r.stray++ // it may belong to either
			return nil
		}
		home = i
	}
	if home < 0 {
		r.stray++
		return nil
	}
	r.gaps[home].pages++
	t.record = r.add
	return t.leaf(page, count, r.gaps[home].part)
}

// report lists what is lost, in words. If any page below a branch was found, all were, unless some were unreadable.
func (r *rescue) report() (lost, tables []string) {
	if r.older {
		lost = append(lost, "the last change before that")
	}
	for _, g := range r.gaps {
		if g.pages > 0 && r.stray == 0 {
			continue
		}
		if !slices.Contains(tables, g.table) {
			tables = append(tables, g.table)
		}
		if len(lost) == mostLost {
			lost = append(lost, "and more")
		}
		if len(lost) > mostLost {
			continue
		}
		from, to := "the first", "the last"
		if g.low != nil {
			from = fmt.Sprintf("%.64q", g.low)
		}
		if g.high != nil {
			to = fmt.Sprintf("before %.64q", g.high)
		}
		lost = append(lost, fmt.Sprintf("some or all of %.64q from %s to %s", g.table, from, to))
	}
	return lost, tables
}

// add queues a record, to be written with others in one transaction.
func (r *rescue) add(table string, key, value []byte) error {
	r.waiting = append(r.waiting, pair{table, bytes.Clone(key), bytes.Clone(value)})
	r.size += len(table) + len(key) + len(value)
	r.records[table]++
	if r.size < 1<<20 {
		return nil
	}
	return r.flush()
}

func (r *rescue) flush() error {
	err := r.to.Update(func(tx *bbolt.Tx) error {
		for _, e := range r.waiting {
			if err := tx.Bucket([]byte(e.table)).Put(e.key, e.value); err != nil {
				return err
			}
		}
		return nil
	})
	r.waiting, r.size = nil, 0
	return err
}
