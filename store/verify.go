package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
)

// The form of a bolt file, from bbolt's internal/common: pages that begin with id (8 bytes), kind (2), count (2) and the
// number of further pages that belong to it (4), all numbers in the byte order of the machine that wrote them. Pages 0
// and 1 hold a meta record each, of which the newer whole one counts.
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

	mostDepth = 32       // of the tree; ours have three levels or four
	mostRun   = 16 << 20 // bytes of a page with those that belong to it; a record has 1 MiB at most
)

// errOrder is found in a file that a machine of the other byte order wrote.
var errOrder = errors.New("written by a machine with another byte order, which no Raspberry Pi and no PC has")

// tree walks the pages of a database file that may be anything: bolt trusts every number in it, and would read beyond
// the end, or in circles. What tree has passed, bolt reads safely.
type tree struct {
	file  io.ReaderAt
	pages uint64   // there are, the two of the meta records included
	seen  []uint64 // a bit for each page
}

// verify checks that every page in use can be read and lies where it should, each in one place only.
func verify(file io.ReaderAt, size int64) error {
	meta, err := newestMeta(file)
	if err != nil {
		return err
	}
	root, freelist, pages := meta(16), meta(32), meta(40)
	if pages < 4 || pages > uint64(size)/pageSize {
		return fmt.Errorf("cut short: it should have %d pages", pages)
	}
	t := &tree{file, pages, make([]uint64, pages/64+1)}
	if err := t.walk(root, true, 0); err != nil {
		return err
	}
	return t.free(freelist)
}

// newestMeta returns the 8 bytes at an offset of the meta record that bolt would choose.
func newestMeta(file io.ReaderAt) (func(offset int) uint64, error) {
	var newest []byte
	number := func(record []byte, offset int) uint64 { return binary.NativeEndian.Uint64(record[offset:]) }
	for page := range int64(2) {
		record := make([]byte, metaSize)
		if _, err := file.ReadAt(record, page*pageSize+pageHead); err != nil {
			return nil, fmt.Errorf("no database: %w", err)
		}
		magic := binary.NativeEndian.Uint32(record)
		if magic == bits.ReverseBytes32(boltMagic) {
			return nil, errOrder
		}
		sum := fnv.New64a()
		sum.Write(record[:metaSize-8])
		whole := magic == boltMagic && binary.NativeEndian.Uint32(record[4:]) == boltVersion && sum.Sum64() == number(record, metaSize-8)
		if !whole {
			continue
		}
		if got := binary.NativeEndian.Uint32(record[8:]); got != pageSize {
			return nil, fmt.Errorf("its pages have %d bytes, not %d", got, pageSize)
		}
		if newest == nil || number(record, 48) > number(newest, 48) {
			newest = record
		}
	}
	if newest == nil {
		return nil, errors.New("no database: neither of its first two pages is whole")
	}
	return func(offset int) uint64 { return number(newest, offset) }, nil
}

// page reads the page with that number and what belongs to it, and takes note that it is in use.
func (t *tree) page(id uint64) (page []byte, kind uint16, count int, err error) {
	if id < 2 || id >= t.pages {
		return nil, 0, 0, fmt.Errorf("page %d is not there", id)
	}
	head := make([]byte, pageHead)
	if _, err := t.file.ReadAt(head, int64(id)*pageSize); err != nil {
		return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	kind, count = binary.NativeEndian.Uint16(head[8:]), int(binary.NativeEndian.Uint16(head[10:]))
	further := uint64(binary.NativeEndian.Uint32(head[12:]))
	length := (further + 1) * pageSize
	if got := binary.NativeEndian.Uint64(head); got != id || id+further >= t.pages || length > mostRun {
		return nil, 0, 0, fmt.Errorf("page %d is damaged", id)
	}
	for i := id; i <= id+further; i++ {
		if err := t.use(i); err != nil {
			return nil, 0, 0, err
		}
	}
	page = make([]byte, length)
	if _, err := t.file.ReadAt(page, int64(id)*pageSize); err != nil {
		return nil, 0, 0, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	return page, kind, count, nil
}

func (t *tree) use(id uint64) error {
	if t.seen[id/64]&(1<<(id%64)) != 0 {
		return fmt.Errorf("page %d is used twice", id)
	}
	t.seen[id/64] |= 1 << (id % 64)
	return nil
}

// walk checks the pages below one. At the top are the tables, and in them nothing but records.
func (t *tree) walk(id uint64, top bool, depth int) error {
	if depth > mostDepth {
		return errors.New("its tree is too deep")
	}
	page, kind, count, err := t.page(id)
	switch {
	case err != nil:
		return err
	case kind == leafPage:
		return t.leaf(page, count, top, depth)
	case kind != branchPage || count == 0:
		return fmt.Errorf("page %d is neither branch nor leaf", id)
	}
	var last []byte
	for i := range count {
		at := pageHead + i*elementSize
		if at+elementSize > len(page) {
			return fmt.Errorf("page %d is damaged", id)
		}
		element := page[at:]
		key, ok := span(page, at, binary.NativeEndian.Uint32(element), binary.NativeEndian.Uint32(element[4:]))
		if !ok || i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("page %d is damaged", id)
		}
		last = key
		if err := t.walk(binary.NativeEndian.Uint64(element[8:]), top, depth+1); err != nil {
			return err
		}
	}
	return nil
}

var errLeaf = errors.New("a page of records is damaged")

func (t *tree) leaf(page []byte, count int, top bool, depth int) error {
	var last []byte
	for i := range count {
		at := pageHead + i*elementSize
		if at+elementSize > len(page) {
			return errLeaf
		}
		element := page[at:]
		flags, position := binary.NativeEndian.Uint32(element), binary.NativeEndian.Uint32(element[4:])
		keySize, valueSize := binary.NativeEndian.Uint32(element[8:]), binary.NativeEndian.Uint32(element[12:])
		key, ok := span(page, at, position, keySize)
		if !ok || i > 0 && bytes.Compare(last, key) >= 0 {
			return errLeaf
		}
		last = key
		value, ok := span(page, at+int(position)+len(key), 0, valueSize)
		switch isTable := flags == bucketValue; {
		case !ok || isTable != top || flags&^bucketValue != 0:
			return errLeaf
		case isTable:
			if err := t.table(value, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// table checks a table: where its pages begin (8 bytes), a number of bolt's own (8), and, where it is small enough to have
// no pages, one in this very place.
func (t *tree) table(value []byte, depth int) error {
	if len(value) < pageHead {
		return errLeaf
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return t.walk(root, false, depth+1)
	}
	page := value[pageHead:]
	if len(page) < pageHead || binary.NativeEndian.Uint16(page[8:]) != leafPage || binary.NativeEndian.Uint32(page[12:]) != 0 {
		return errLeaf
	}
	return t.leaf(page, int(binary.NativeEndian.Uint16(page[10:])), false, depth)
}

// span is a part of page, where it has one there.
func span(page []byte, at int, position, size uint32) ([]byte, bool) {
	from := uint64(at) + uint64(position)
	to := from + uint64(size)
	if to > uint64(len(page)) {
		return nil, false
	}
	return page[from:to], true
}

// free checks the list of pages that are not in use.
func (t *tree) free(id uint64) error {
	page, kind, n, err := t.page(id)
	if err != nil {
		return err
	}
	list, count := page[pageHead:], uint64(n)
	if count == 0xffff { // then the number has a place of its own
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if kind != freelistPage || count > uint64(len(list))/8 {
		return errors.New("its list of free pages is damaged")
	}
	for i := range count {
		page := binary.NativeEndian.Uint64(list[8*i:])
		if page < 2 || page >= t.pages {
			return errors.New("its list of free pages is damaged")
		}
		if err := t.use(page); err != nil {
			return err
		}
	}
	return nil
}
