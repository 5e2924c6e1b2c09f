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

// The format of a bolt file, from bbolt's internal/common: pages that begin with id (8 bytes), kind (2), count (2) and
// the number of overflow pages (4), all numbers in the byte order of the machine that wrote them. Pages 0 and 1 have a
// meta record each; the newer intact one is valid.
const (
	pageHead    = 16
	elementSize = 16
	metaSize    = 64
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketValue  = 0x01

	mostName  = 1 << 10  // bytes of a table's name
	mostDepth = 32       // levels of the tree; real trees have three or four
	mostRun   = 16 << 20 // bytes of a page with its overflow; a record has at most 1 MiB
)

// errOrder reports a file written by a machine of the other byte order.
var errOrder = errors.New("written by a machine with another byte order, which no Raspberry Pi and no PC has")

// meta is the content of one of the first two pages.
type meta struct{ root, freelist, pages, tx uint64 }

// readMetas returns the intact meta records, the newest first; bolt uses that one.
func readMetas(file io.ReaderAt) ([]meta, error) {
	var whole []meta
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
		whole = append(whole, meta{number(16), number(32), number(40), number(48)})
	}
	if len(whole) == 0 {
		return nil, errors.New("no database: neither of its first two pages is whole")
	}
	if len(whole) == 2 && whole[1].tx > whole[0].tx {
		whole[0], whole[1] = whole[1], whole[0]
	}
	return whole, nil
}

// tree walks the pages of an untrusted database file. Bolt trusts every number in a file, and would read beyond its end,
// or loop; bolt can safely read what tree accepts.
type tree struct {
	file  io.ReaderAt
	pages uint64   // in the file, including the two of the meta records
	seen  []uint64 // one bit for each page in use

	sound  Sound
	table  func(p part, name, value []byte) error // called for each table
	record func(table string, key, value []byte) error
	lost   func(p part, cause error) error // called for damage; its error ends the walk
}

// part is a piece of the tree: a page with those below it. It has the tables, or the keys of one table from low up to
// high, unbounded if nil.
type part struct {
	table     string // empty at the top
	low, high []byte
	depth     int
	page      uint64 // its first page, once known
}

func (p part) top() bool { return p.table == "" }

func (p part) has(key []byte) bool {
	return (p.low == nil || bytes.Compare(p.low, key) <= 0) && (p.high == nil || bytes.Compare(key, p.high) < 0)
}

// newTree returns a tree that walks into every table, up to the first damage.
func newTree(file io.ReaderAt, pages uint64, sound Sound) *tree {
	t := &tree{file: file, pages: pages, seen: make([]uint64, pages/64+1), sound: sound}
	t.table = t.open
	t.record = func(string, []byte, []byte) error { return nil }
	t.lost = func(_ part, cause error) error { return cause }
	return t
}

// page reads the page with that number and its overflow, and marks it as used.
func (t *tree) page(id uint64) (page []byte, kind uint16, count int, err error) {
	if id < 2 || id >= t.pages {
		return nil, 0, 0, fmt.Errorf("page %d is not there", id)
	}
	page = make([]byte, PageSize)
	if _, err := t.file.ReadAt(page, int64(id)*PageSize); err != nil {
		return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	kind, count = binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	further := uint64(binary.NativeEndian.Uint32(page[12:]))
	length := (further + 1) * PageSize
	if got := binary.NativeEndian.Uint64(page); got != id || id+further >= t.pages || length > mostRun {
		return nil, 0, 0, fmt.Errorf("page %d is damaged", id)
	}
	for i := id; i <= id+further; i++ {
		if err := t.use(i); err != nil {
			return nil, 0, 0, err
		}
	}
	if further > 0 {
		page = append(page, make([]byte, further*PageSize)...)
		if _, err := t.file.ReadAt(page[PageSize:], int64(id+1)*PageSize); err != nil {
			return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
		}
	}
	return page, kind, count, nil
}

func (t *tree) used(id uint64) bool { return t.seen[id/64]&(1<<(id%64)) != 0 }

func (t *tree) use(id uint64) error {
	if t.used(id) {
		return fmt.Errorf("page %d is used twice", id)
	}
	t.seen[id/64] |= 1 << (id % 64)
	return nil
}

// walk checks the pages below id. At the top they have the tables, and in those only records.
func (t *tree) walk(id uint64, p part) error {
	p.page = id
	if p.depth > mostDepth {
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
		if !ok || !p.has(key) || i > 0 && bytes.Compare(parts[i-1].low, key) >= 0 {
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

// element returns entry i of a page: its key and its value. For a branch the value is a page number, for a leaf its
// position in this page.
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

var errLeaf = errors.New("a page of records is damaged")

// leaf reads the records or tables of a page.
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
		case !ok, !last.has(key), i > 0 && bytes.Equal(key, last.low), isTable != p.top(), flags&^bucketValue != 0, !isTable && !t.sound(key, value):
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

// open checks a table: its root page (8 bytes), a number of bolt's (8) and, if it is too small to have pages, an inline
// page.
func (t *tree) open(p part, name, value []byte) error {
	if len(value) < pageHead || len(name) == 0 || len(name) > mostName {
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

// span returns a part of page, if it is within the page.
func span(page []byte, at int, position, size uint32) ([]byte, bool) {
	from := uint64(at) + uint64(position)
	to := from + uint64(size)
	if to > uint64(len(page)) {
		return nil, false
	}
	return page[from:to], true
}

var errFree = errors.New("its list of free pages is damaged")

// freePages reads and checks the list of free pages.
func (t *tree) freePages(id uint64) ([]uint64, error) {
	page, kind, n, err := t.page(id)
	if err != nil {
		return nil, err
	}
	list, count := page[pageHead:], uint64(n)
	if count == 0xffff { // then the real count follows
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
		if err := t.use(free[i]); err != nil {
			return nil, err
		}
	}
	return free, nil
}
