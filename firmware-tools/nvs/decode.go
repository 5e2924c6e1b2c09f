package nvs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Decode reads a partition. Like a robot it drops damaged entries, which Partition.Damaged describes,
// chunks without an index, and entries that newer entries replace. It keeps items of unknown types
// unchanged. Errors wrap ErrFormat.
func Decode(image []byte) (*Partition, error) {
	if len(image) == 0 || len(image)%PageSize != 0 || len(image) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes; the size of a partition is a multiple of %d, up to %d", ErrFormat, len(image), PageSize, MaxSize)
	}
	d := decoder{}
	if err := d.findPages(image); err != nil {
		return nil, err
	}
	for _, p := range d.sorted {
		d.readPage(p)
	}
	if d.bad && len(d.entries) == 0 {
		return nil, fmt.Errorf("%w: no entry can be read; it is encrypted, or not NVS", ErrFormat)
	}
	return &Partition{records: d.assemble(), damaged: d.damaged}, nil
}

// decoder splits pages into entries, and combines the entries into records.
type decoder struct {
	sorted  []page // by sequence
	entries []entry
	bad     bool     // an entry of 32 bytes had a wrong checksum
	damaged []string // descriptions of damaged entries
}

// page is a page that is not empty.
type page struct {
	number   int    // index in the partition
	sequence uint32 // number of the page in the order of writing
	bytes    []byte
}

// entry is an item or a chunk on a page: the first entry of 32 bytes, and the following entries with
// the content.
type entry struct {
	entryName
	data    []byte // data of the first entry, 8 bytes
	content []byte // content of a String, OldBlob or chunk; nil for other types
	raw     []byte // bytes of all these entries
}

// entryName identifies an entry in the partition.
type entryName struct {
	namespace byte
	key       string
	kind      Type
	chunk     byte // number of the chunk, if the entry is a chunk; otherwise 0
}

// reportDamage records a description of a damaged entry.
func (d *decoder) reportDamage(format string, values ...any) {
	d.damaged = append(d.damaged, fmt.Sprintf(format, values...))
}

// findPages finds the pages with a valid header, and sorts them, oldest first. It reports a page with
// an invalid header as damage. It returns an error if a page has a newer version of the format, or if
// all pages that are not empty have an invalid header.
func (d *decoder) findPages(image []byte) error {
	damaged := 0
	for n := range len(image) / PageSize {
		b := image[n*PageSize:][:PageSize]
		state := binary.LittleEndian.Uint32(b)
		switch {
		case state == pageEmpty && len(bytes.Trim(b, "\xff")) == 0:
		case state != pageActive && state != pageFull && state != pageFreeing, binary.LittleEndian.Uint32(b[28:]) != crc(b[4:28]):
			damaged++
			d.reportDamage("page %d: its header is wrong", n)
		case b[8] < formatVersion2: // versions count down
			return fmt.Errorf("%w: page %d has a newer version of the format", ErrFormat, n)
		default:
			d.sorted = append(d.sorted, page{n, binary.LittleEndian.Uint32(b[4:]), b})
		}
	}
	if damaged > 0 && len(d.sorted) == 0 {
		return fmt.Errorf("%w: no page has a valid header", ErrFormat)
	}
	slices.SortStableFunc(d.sorted, func(a, b page) int { return cmp.Compare(a.sequence, b.sequence) })
	return nil
}

// isWritten reports whether the bitmap marks an entry as written.
func (p page) isWritten(n int) bool { return p.bytes[32+n/4]>>(n%4*2)&3 == 2 }

// readPage reads the entries of a page, and reports the damaged ones.
func (d *decoder) readPage(p page) {
	for n := 0; n < pageEntries; {
		if !p.isWritten(n) {
			n++
			continue
		}
		e, span, damage := p.readEntry(n)
		if damage == "" {
			d.entries = append(d.entries, e)
		} else {
			d.reportDamage("page %d, entry %d: %s", p.number, n, damage)
		}
		d.bad = d.bad || damage == badChecksum
		n += span
	}
}

const badChecksum = "its checksum is wrong"

// readEntry reads entry n and its content. damage describes the damage, or is empty. The next entry to
// read is n+span, also after damage.
func (p page) readEntry(n int) (e entry, span int, damage string) {
	b := p.bytes[firstEntry+n*entrySize:][:entrySize]
	if binary.LittleEndian.Uint32(b[4:]) != crc(b[:4], b[8:]) {
		return e, 1, badChecksum
	}
	e = entry{entryName: entryName{namespace: b[0], kind: Type(b[1])}, data: b[24:]}
	if e.kind == blobData {
		e.chunk = b[3]
	}
	key, _, terminated := bytes.Cut(b[8:24], []byte{0})
	if !terminated {
		return e, 1, "its key is not terminated"
	}
	e.key = string(key)
	if span = int(b[2]); e.kind.isNumber() || e.kind == blobIndex {
		span = 1
	}
	if span == 0 || n+span > pageEntries {
		return e, 1, fmt.Sprintf("%q claims to span %d entries", e.key, span)
	}
	for i := range span {
		if !p.isWritten(n + i) {
			return e, 1, fmt.Sprintf("%q was not written completely", e.key)
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

// assemble combines the entries into records. Of several entries with the same name it uses the
// newest: older ones remain if the power fails before the robot erases them.
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
			data, err := d.joinChunks(e, newest)
			if err != nil {
				d.reportDamage("%v", err)
				continue
			}
			r.value.Data = data
		} else {
			e.fill(&r)
		}
		records = append(records, r)
	}
	return records
}

// fill sets the value of r to the value of the entry, which must be neither a chunk nor an index.
func (e entry) fill(r *record) {
	text, isText := bytes.CutSuffix(e.content, []byte{0})
	switch {
	case e.kind.isNumber():
		r.value.Data = bytes.Clone(e.data[:e.kind.size()])
	case e.kind == OldBlob && len(e.content) <= maxOldBlob:
		r.value.Data = append([]byte{}, e.content...)
	case e.kind == String && isText && bytes.IndexByte(text, 0) < 0:
		r.value.Data = append([]byte{}, text...)
	default: // an unknown type, or a value that Value cannot represent, which Encode writes unchanged
		r.value.Data = bytes.Clone(e.raw[24:])
		r.raw = bytes.Clone(e.raw)
	}
}

// joinChunks returns the content of the blob with the index entry e.
func (d *decoder) joinChunks(e entry, newest map[entryName]int) ([]byte, error) {
	size, count, start := binary.LittleEndian.Uint32(e.data), int(e.data[4]), int(e.data[5])
	blob := []byte{}
	for n := range count {
		chunk, ok := newest[entryName{e.namespace, e.key, blobData, byte(start + n)}]
		if !ok {
			return nil, fmt.Errorf("a chunk of the blob %q is missing", e.key)
		}
		blob = append(blob, d.entries[chunk].content...)
	}
	if uint32(len(blob)) != size || len(blob) > MaxBlob {
		return nil, fmt.Errorf("the blob %q has %d bytes, but its index says %d", e.key, len(blob), size)
	}
	return blob, nil
}
