package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
)

// The format of a bolt file, from bbolt's internal/common. A page begins with its number (8 bytes), its kind (2), its count
// of entries (2) and its number of overflow pages (4). All numbers have the byte order of the machine that wrote the file.
// Pages 0 and 1 each hold a meta record; the newest intact one is valid.
const (
	pageHead    = 16 // bytes of a page's header
	elementSize = 16 // bytes of an entry
	metaSize    = 64 // bytes of a meta record
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	branchPage   = 0x01 // kind of a page
	leafPage     = 0x02 // kind of a page
	freelistPage = 0x10 // kind of a page
	bucketValue  = 0x01 // flag of an entry that is a table

	maxName  = 1 << 10  // bytes of a table's name
	maxDepth = 32       // levels of the tree; valid trees have three or four
	maxRun   = 16 << 20 // bytes of a page with its overflow pages; a record has at most 1 MiB
)

// errOrder is returned for a file of a machine with the other byte order.
var errOrder = errors.New("written by a machine with another byte order, which no Raspberry Pi and no PC has")

// meta is a meta record: the pages of the list of tables and of the free list, the number of pages in the file, and the
// number of the transaction that wrote it.
type meta struct{ root, freelist, pages, tx uint64 }

// readMetas returns the intact meta records, newest first. Bolt uses the newest.
func readMetas(file io.ReaderAt) ([]meta, error) {
	var intact []meta
	for page := range int64(2) {
		record := make([]byte, metaSize)
		if _, err := file.ReadAt(record, page*PageSize+pageHead); err != nil {
			return nil, fmt.Errorf("no database: %w", err)
		}
		number := func(offset int) uint64 { return binary.NativeEndian.Uint64(record[offset:]) }
		magic := binary.NativeEndian.Uint32(record)
		if magic == bits.ReverseBytes32(boltMagic) {
			return nil, errOrder
		}
		sum := fnv.New64a()
		sum.Write(record[:metaSize-8])
		if magic != boltMagic || binary.NativeEndian.Uint32(record[4:]) != boltVersion || sum.Sum64() != number(metaSize-8) {
			continue
		}
		if got := binary.NativeEndian.Uint32(record[8:]); got != PageSize {
			return nil, fmt.Errorf("its pages have %d bytes, not %d", got, PageSize)
		}
		intact = append(intact, meta{number(16), number(32), number(40), number(48)})
	}
	if len(intact) == 0 {
		return nil, errors.New("no database: neither of its first two pages is whole")
	}
	if len(intact) == 2 && intact[1].tx > intact[0].tx {
		intact[0], intact[1] = intact[1], intact[0]
	}
	return intact, nil
}

// tree walks the pages of an untrusted database file. Bolt can safely read a file that a tree accepts.
type tree struct {
	file  io.ReaderAt
	pages uint64   // number of pages in the file, including the two of the meta records
	seen  []uint64 // one bit for each page, set once the page was read

	valid  Validator
	table  func(p part, name, value []byte) error      // called for each table
	record func(table string, key, value []byte) error // called for each record
	lost   func(p part, cause error) error             // called for each damaged part; an error ends the walk
}

// part is a subtree: a page and the pages below it. It holds the list of tables or the records of one table. Its keys are
// in the range from low (inclusive) to high (exclusive). Nil means no bound.
type part struct {
	table     string // empty for the list of tables
	low, high []byte
	depth     int    // number of levels above the part
	page      uint64 // number of the first page; set by walk
}

// isTop reports whether the part holds the list of tables.
func (p part) isTop() bool { return p.table == "" }

// contains reports whether key is in the part's range.
func (p part) contains(key []byte) bool {
	return (p.low == nil || bytes.Compare(p.low, key) <= 0) && (p.high == nil || bytes.Compare(key, p.high) < 0)
}

// newTree returns a tree that walks all tables and stops at the first damage. Callers may replace its functions.
func newTree(file io.ReaderAt, pages uint64, valid Validator) *tree {
	t := &tree{file: file, pages: pages, seen: make([]uint64, pages/64+1), valid: valid}
	t.table = t.walkTable
	t.record = func(string, []byte, []byte) error { return nil }
	t.lost = func(_ part, cause error) error { return cause }
	return t
}

// page reads a page and its overflow pages, and marks them as seen. It returns their content, the kind of the page and its
// count of entries.
func (t *tree) page(id uint64) (page []byte, kind uint16, count int, err error) {
	if id < 2 || id >= t.pages {
		return nil, 0, 0, fmt.Errorf("page %d does not exist", id)
	}
	page = make([]byte, PageSize)
	if _, err := t.file.ReadAt(page, int64(id)*PageSize); err != nil {
		return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	kind, count = binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	overflow := uint64(binary.NativeEndian.Uint32(page[12:]))
	length := (overflow + 1) * PageSize
	if got := binary.NativeEndian.Uint64(page); got != id || id+overflow >= t.pages || length > maxRun {
		return nil, 0, 0, fmt.Errorf("page %d is damaged", id)
	}
	for i := id; i <= id+overflow; i++ {
		if err := t.markSeen(i); err != nil {
			return nil, 0, 0, err
		}
	}
	if overflow > 0 {
		page = append(page, make([]byte, overflow*PageSize)...)
		if _, err := t.file.ReadAt(page[PageSize:], int64(id+1)*PageSize); err != nil {
			return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
		}
	}
	return page, kind, count, nil
}

// isSeen reports whether a page was marked as seen.
func (t *tree) isSeen(id uint64) bool { return t.seen[id/64]&(1<<(id%64)) != 0 }

// markSeen marks a page as seen, and returns an error if it was marked before.
func (t *tree) markSeen(id uint64) error {
	if t.isSeen(id) {
		return fmt.Errorf("page %d is used twice", id)
	}
	t.seen[id/64] |= 1 << (id % 64)
	return nil
}

// walk checks page id, which is the root of part p, and the pages below it. It calls t.lost for each damaged part.
func (t *tree) walk(id uint64, p part) error {
	p.page = id
	if p.depth > maxDepth {
		return t.lost(p, errors.New("its tree is too deep"))
	}
	page, kind, count, err := t.page(id)
	switch {
	case err != nil:
		return t.lost(p, err)
	case kind == leafPage:
		return t.leaf(page, count, p)
	case kind != branchPage || count == 0:
		return t.lost(p, fmt.Errorf("page %d is neither branch nor leaf", id))
	}
	below := make([]uint64, count)
	parts := make([]part, count)
	for i := range count {
		key, value, _, ok := element(page, i, branchPage)
		if !ok || !p.contains(key) || i > 0 && bytes.Compare(parts[i-1].low, key) >= 0 {
			return t.lost(p, fmt.Errorf("page %d is damaged", id))
		}
		below[i], parts[i] = value, part{table: p.table, low: key, high: p.high, depth: p.depth + 1}
		if i > 0 {
			parts[i-1].high = key
		}
	}
	parts[0].low = p.low
	for i, id := range below {
		if err := t.walk(id, parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// element returns the key and the value of entry i of a page. In a branch page, the value is the number of the page below;
// in a leaf page, it is the position of the record's value in the page.
func element(page []byte, i int, kind uint16) (key []byte, value uint64, flags uint32, ok bool) {
	at := pageHead + i*elementSize
	if at+elementSize > len(page) {
		return nil, 0, 0, false
	}
	e := page[at:]
	if kind == branchPage {
		key, ok = span(page, at, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]))
		return key, binary.NativeEndian.Uint64(e[8:]), 0, ok
	}
	position := binary.NativeEndian.Uint32(e[4:])
	key, ok = span(page, at, position, binary.NativeEndian.Uint32(e[8:]))
	return key, uint64(at) + uint64(position) + uint64(len(key)), binary.NativeEndian.Uint32(e), ok
}

// errLeaf is the error for a damaged record or a damaged description of a table.
var errLeaf = errors.New("a page of records is damaged")

// leaf checks the entries of a leaf page. It calls t.record for each record, t.table for each table, and t.lost for each
// damaged entry.
func (t *tree) leaf(page []byte, count int, p part) error {
	last := p
	for i := range count {
		key, at, flags, ok := element(page, i, leafPage)
		var value []byte
		if ok {
			size := binary.NativeEndian.Uint32(page[pageHead+i*elementSize+12:])
			value, ok = span(page, int(at), 0, size)
		}
		isTable := flags == bucketValue
		switch {
		case !ok, !last.contains(key), i > 0 && bytes.Equal(key, last.low), isTable != p.isTop(), flags&^bucketValue != 0, !isTable && !t.valid(key, value):
			if err := t.lost(last, errLeaf); err != nil {
				return err
			}
			continue
		}
		last.low = key
		var err error
		if isTable {
			err = t.table(part{table: string(key), depth: p.depth + 1}, key, value)
		} else {
			err = t.record(p.table, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walkTable checks a table. value is bolt's description of the table: the number of the root page (8 bytes), a sequence
// number (8) and, if the table is so small that the root page is 0, an inline page.
func (t *tree) walkTable(p part, name, value []byte) error {
	if len(value) < pageHead || len(name) == 0 || len(name) > maxName {
		return t.lost(p, errLeaf)
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return t.walk(root, p)
	}
	page := value[pageHead:]
	if len(page) < pageHead || binary.NativeEndian.Uint16(page[8:]) != leafPage || binary.NativeEndian.Uint32(page[12:]) != 0 {
		return t.lost(p, errLeaf)
	}
	return t.leaf(page, int(binary.NativeEndian.Uint16(page[10:])), p)
}

// span returns the size bytes of a page from at+position, and whether they are within the page.
func span(page []byte, at int, position, size uint32) ([]byte, bool) {
	from := uint64(at) + uint64(position)
	to := from + uint64(size)
	if to > uint64(len(page)) {
		return nil, false
	}
	return page[from:to], true
}

// errFree is returned for a damaged free list.
var errFree = errors.New("its list of free pages is damaged")

// freePages reads the free list at page id, checks it, and marks its pages as seen.
func (t *tree) freePages(id uint64) ([]uint64, error) {
	page, kind, n, err := t.page(id)
	if err != nil {
		return nil, err
	}
	list, count := page[pageHead:], uint64(n)
	if count == 0xffff { // the real count does not fit into 16 bits, and is stored before the list
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if kind != freelistPage || count > uint64(len(list))/8 {
		return nil, errFree
	}
	free := make([]uint64, count)
	for i := range count {
		free[i] = binary.NativeEndian.Uint64(list[8*i:])
		if free[i] < 2 || free[i] >= t.pages {
			return nil, errFree
		}
		if err := t.markSeen(free[i]); err != nil {
			return nil, err
		}
	}
	return free, nil
}
