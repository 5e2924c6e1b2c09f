package nvs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Decode reads a partition. Errors wrap ErrFormat. Entries that a robot would drop
// are dropped and listed by Damaged; items of unknown types are copied unchanged.
func Decode(image []byte) (*Partition, error) {
	if len(image) == 0 || len(image)%PageSize != 0 || len(image) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and a partition has a multiple of %d, up to %d", ErrFormat, len(image), PageSize, MaxSize)
	}
	d := decoder{}
	if err := d.pages(image); err != nil {
		return nil, err
	}
	for _, p := range d.sorted {
		d.page(p)
	}
	if d.bad && len(d.entries) == 0 {
		return nil, fmt.Errorf("%w: no entry has its checksum; it is encrypted, or not NVS", ErrFormat)
	}
	return &Partition{records: d.assemble(), damaged: d.damaged}, nil
}

// decoder reads pages into entries, and entries into records.
type decoder struct {
	sorted  []page
	entries []entry
	bad     bool // an entry has a wrong checksum
	damaged []string
}

// page is a page that has entries.
type page struct {
	number   int // its index in the partition
	sequence uint32
	bytes    []byte
}

// entry is an item in its encoded form on a page.
type entry struct {
	entryName
	data    []byte // of the entry itself, 8 bytes
	content []byte // of strings and blobs
	raw     []byte // all of its bytes
}

type entryName struct {
	namespace byte
	key       string
	kind      Type
	chunk     byte // of a blob's data
}

func (d *decoder) reportDamage(format string, values ...any) {
	d.damaged = append(d.damaged, fmt.Sprintf(format, values...))
}

// pages sorts the pages by their age.
func (d *decoder) pages(image []byte) error {
	broken := 0
	for n := range len(image) / PageSize {
		b := image[n*PageSize:][:PageSize]
		state := binary.LittleEndian.Uint32(b)
		switch {
		case state == pageEmpty && len(bytes.Trim(b, "\xff")) == 0:
		case state != pageActive && state != pageFull && state != pageFreeing, binary.LittleEndian.Uint32(b[28:]) != crc(b[4:28]):
			broken++
			d.reportDamage("page %d: its header is wrong", n)
		case b[8] < formatVersion2:
			return fmt.Errorf("%w: page %d is of a newer version of the format", ErrFormat, n)
		default:
			d.sorted = append(d.sorted, page{n, binary.LittleEndian.Uint32(b[4:]), b})
		}
	}
	if broken > 0 && len(d.sorted) == 0 {
		return fmt.Errorf("%w: no page has the header of one", ErrFormat)
	}
	slices.SortStableFunc(d.sorted, func(a, b page) int { return cmp.Compare(a.sequence, b.sequence) })
	return nil
}

// written reports whether an entry is written, by the bitmap.
func (p page) written(n int) bool { return p.bytes[32+n/4]>>(n%4*2)&3 == 2 }

// page reads the entries of a page.
func (d *decoder) page(p page) {
	for n := 0; n < pageEntries; {
		if !p.written(n) {
			n++
			continue
		}
		e, span, why := p.entry(n)
		if why == "" {
			d.entries = append(d.entries, e)
		} else {
			d.reportDamage("page %d, entry %d: %s", p.number, n, why)
		}
		d.bad = d.bad || why == badChecksum
		n += span
	}
}

const badChecksum = "its checksum is wrong"

// entry reads an entry; why is its fault, or empty.
func (p page) entry(n int) (e entry, span int, why string) {
	b := p.bytes[firstEntry+n*entrySize:][:entrySize]
	if binary.LittleEndian.Uint32(b[4:]) != crc(b[:4], b[8:]) {
		return e, 1, badChecksum
	}
	e = entry{entryName: entryName{namespace: b[0], kind: Type(b[1])}, data: b[24:]}
	if e.kind == blobData {
		e.chunk = b[3]
	}
	name, _, ended := bytes.Cut(b[8:24], []byte{0})
	if !ended {
		return e, 1, "its key has no end"
	}
	e.key = string(name)
	if span = int(b[2]); e.kind.isNumber() || e.kind == blobIndex {
		span = 1
	}
	if span == 0 || n+span > pageEntries {
		return e, 1, fmt.Sprintf("%q claims %d entries", e.key, span)
	}
	for i := range span {
		if !p.written(n + i) {
			return e, 1, fmt.Sprintf("%q was not written to its end", e.key)
		}
	}
	e.raw = p.bytes[firstEntry+n*entrySize:][:span*entrySize]
	if e.kind == String || e.kind == OldBlob || e.kind == blobData {
		length := int(binary.LittleEndian.Uint16(e.data))
		if spanOf(length) != span-1 {
			return e, span, fmt.Sprintf("%q has %d bytes in %d entries", e.key, length, span)
		}
		if e.content = e.raw[entrySize:][:length]; binary.LittleEndian.Uint32(e.data[4:]) != crc(e.content) {
			return e, span, fmt.Sprintf("the value of %q has a wrong checksum", e.key)
		}
	}
	return e, span, ""
}

// assemble makes records of the entries. If a name is written twice, the power
// failed before the older entry was erased, and the newer one counts.
func (d *decoder) assemble() []record {
	newest := map[entryName]int{}
	for n, e := range d.entries {
		newest[e.entryName] = n
	}
	var records []record
	for n, e := range d.entries {
		if e.kind == blobData || newest[e.entryName] != n {
			continue
		}
		r := record{namespace: e.namespace, key: e.key, value: Value{e.kind, nil}}
		if e.kind == blobIndex {
			whole, err := d.gather(e, newest)
			if err != nil {
				d.reportDamage("%v", err)
				continue
			}
			r.value.Data = whole
		} else {
			e.fill(&r)
		}
		records = append(records, r)
	}
	return records
}

// fill copies the value of an entry that is not divided into chunks.
func (e entry) fill(r *record) {
	text, isText := bytes.CutSuffix(e.content, []byte{0})
	switch {
	case e.kind.isNumber():
		r.value.Data = bytes.Clone(e.data[:e.kind.size()])
	case e.kind == OldBlob && len(e.content) <= mostOldBlob:
		r.value.Data = append([]byte{}, e.content...)
	case e.kind == String && isText && bytes.IndexByte(text, 0) < 0:
		r.value.Data = append([]byte{}, text...)
	default: // of an unknown type: copied unchanged
		r.value.Data = bytes.Clone(e.raw[24:])
		r.raw = bytes.Clone(e.raw)
	}
}

// gather joins the chunks of a blob.
func (d *decoder) gather(e entry, newest map[entryName]int) ([]byte, error) {
	size, count, start := binary.LittleEndian.Uint32(e.data), int(e.data[4]), int(e.data[5])
	whole := []byte{}
	for n := range count {
		chunk, there := newest[entryName{e.namespace, e.key, blobData, byte(start + n)}]
		if !there {
			return nil, fmt.Errorf("the blob %q lacks a part", e.key)
		}
		whole = append(whole, d.entries[chunk].content...)
	}
	if uint32(len(whole)) != size || len(whole) > MaxBlob {
		return nil, fmt.Errorf("the blob %q has %d bytes, and its index says %d", e.key, len(whole), size)
	}
	return whole, nil
}
