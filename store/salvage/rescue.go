package salvage

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// maxLost is the maximum number of losses that a report lists.
const maxLost = 12

// rescue copies the readable records of a damaged file to another file.
type rescue struct {
	t        *tree
	freelist uint64 // page of the free list
	list     []pair // one for each table, without a key; value is bolt's description of the table
	gaps     []gap
	older    bool // whether the tables are from before the last commit, because the latest could not be read
	stray    int  // number of unreachable pages in use that could not be assigned to a gap

	to      *bbolt.DB
	pending []pair         // records for the next transaction
	size    int            // bytes in pending
	records map[string]int // number of copied records; key: table
}

// pair is a record of a table.
type pair struct {
	table      string
	key, value []byte
}

// gap is a damaged part of the tree.
type gap struct {
	part
	pages int // number of pages below the part that copyOrphans has found
}

// newRescue returns a rescue that has read the list of tables. Each commit writes the list to another page, so if the
// latest list is damaged, newRescue uses the previous one.
func newRescue(to *bbolt.DB, file io.ReaderAt, size int64, valid Validator) (*rescue, error) {
	metas, err := readMetas(file)
	if err != nil {
		return nil, err
	}
	for i, m := range metas {
		r := &rescue{to: to, freelist: m.freelist, older: i > 0, records: map[string]int{}}
		r.t = newTree(file, min(m.pages, uint64(size)/PageSize), valid)
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

// copyTables copies all records that can be reached from the tables, and collects the gaps.
func (r *rescue) copyTables() error {
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
		if err := r.t.walkTable(part{table: e.table, depth: 1}, []byte(e.table), e.value); err != nil {
			return err
		}
	}
	return nil
}

// copyOrphans copies the records of pages that are in use but not reachable, because a page above them is damaged. A page
// whose keys fit into exactly one gap belongs to that gap.
func (r *rescue) copyOrphans() error {
	if len(r.gaps) == 0 {
		return nil
	}
	if _, err := r.t.freePages(r.freelist); err != nil {
		return nil //nolint:nilerr // without the list, free pages with old records cannot be distinguished from pages in use
	}
	strict := *r.t
	strict.lost = func(_ part, cause error) error { return cause }
	for id := uint64(2); id < r.t.pages; id++ { // pages 0 and 1 are the meta pages
		if r.t.isSeen(id) {
			continue
		}
		page, kind, count, err := strict.page(id)
		switch {
		case err != nil:
			if !slices.ContainsFunc(r.gaps, func(g gap) bool { return g.page == id }) {
				r.stray++
			}
		case kind == leafPage && count > 0:
			if err := r.copyOrphan(strict, page, count); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyOrphan copies the records of an unreachable page if it belongs to exactly one gap.
func (r *rescue) copyOrphan(t tree, page []byte, count int) error {
	t.record = func(string, []byte, []byte) error { return nil }
	match := -1
	for i, g := range r.gaps {
		if t.leaf(page, count, g.part) != nil {
			continue
		}
		if match >= 0 {
			r.stray++ // the page fits into two gaps
			return nil
		}
		match = i
	}
	if match < 0 {
		r.stray++
		return nil
	}
	r.gaps[match].pages++
	t.record = r.add
	return t.leaf(page, count, r.gaps[match].part)
}

// report returns descriptions of the lost records, and the tables that lost some. After maxLost descriptions it adds "and
// more". A gap counts as recovered if copyOrphans has found pages for it and there are no stray pages: then none of the
// gap's pages is missing.
func (r *rescue) report() (lost, tables []string) {
	if r.older {
		lost = append(lost, "the last change before the damage")
	}
	for _, g := range r.gaps {
		if g.pages > 0 && r.stray == 0 {
			continue
		}
		if !slices.Contains(tables, g.table) {
			tables = append(tables, g.table)
		}
		if len(lost) == maxLost {
			lost = append(lost, "and more")
		}
		if len(lost) > maxLost {
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

// add queues a record, and flushes the queue when it has at least 1 MiB.
func (r *rescue) add(table string, key, value []byte) error {
	r.pending = append(r.pending, pair{table, bytes.Clone(key), bytes.Clone(value)})
	r.size += len(table) + len(key) + len(value)
	r.records[table]++
	if r.size < 1<<20 {
		return nil
	}
	return r.flush()
}

// flush writes the queued records in one transaction.
func (r *rescue) flush() error {
	err := r.to.Update(func(tx *bbolt.Tx) error {
		for _, e := range r.pending {
			if err := tx.Bucket([]byte(e.table)).Put(e.key, e.value); err != nil {
				return err
			}
		}
		return nil
	})
	r.pending, r.size = nil, 0
	return err
}
