package nvs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// States of a page: bits are cleared as it fills.
const (
	pageEmpty   = 0xFFFFFFFF
	pageActive  = 0xFFFFFFFE
	pageFull    = 0xFFFFFFFC
	pageFreeing = 0xFFFFFFF8

	formatVersion2 = 0xFE
	mostChunks     = 127 // of a blob; the other half of the numbers is for its next version
	anyChunk       = 0xFF
)

// crc is the checksum of the format: CRC-32 continued from 0xFFFFFFFF.
func crc(parts ...[]byte) uint32 {
	c := uint32(0xFFFFFFFF)
	for _, p := range parts {
		c = crc32.Update(c, crc32.IEEETable, p)
	}
	return c
}

// Encode writes the partition again, without erased entries, in size bytes, a
// multiple of PageSize. One page stays empty: the firmware needs it to move
// entries. The error wraps ErrFull if the items do not fit.
func (p *Partition) Encode(size int) ([]byte, error) {
	if size < MinSize || size > MaxSize || size%PageSize != 0 {
		return nil, fmt.Errorf("%w: a partition has a multiple of %d bytes, from %d to %d, not %d", ErrFormat, PageSize, MinSize, MaxSize, size)
	}
	e := &encoder{image: bytes.Repeat([]byte{0xFF}, size)}
	e.startPage()
	for _, r := range p.records {
		if err := e.record(r); err != nil {
			return nil, err
		}
	}
	return e.image, nil
}

// encoder fills one page after the other.
type encoder struct {
	image []byte
	page  int
	used  int // entries of this page
}

func (e *encoder) at(offset int) []byte { return e.image[e.page*PageSize+offset:] }

func (e *encoder) startPage() {
	header := e.at(0)[:32]
	binary.LittleEndian.PutUint32(header, pageActive)
	binary.LittleEndian.PutUint32(header[4:], uint32(e.page))
	header[8] = formatVersion2
	binary.LittleEndian.PutUint32(header[28:], crc(header[4:28]))
	e.used = 0
}

// room begins the next page if this one has no room for so many entries.
func (e *encoder) room(entries int) error {
	if e.used+entries <= pageEntries {
		return nil
	}
	if (e.page+2)*PageSize >= len(e.image) {
		return fmt.Errorf("%w: the items take more than the %d pages of %d that may be used", ErrFull, e.page+1, len(e.image)/PageSize)
	}
	binary.LittleEndian.PutUint32(e.at(0), pageFull)
	e.page++
	e.startPage()
	return nil
}

func (e *encoder) record(r record) error {
	switch {
	case r.raw != nil: // of an unknown type: as it was read
		if err := e.room(spanOf(len(r.raw))); err != nil {
			return err
		}
		e.write(r.raw, nil)
		return nil
	case r.value.Type == Blob:
		return e.blob(r)
	case r.value.Type == String:
		return e.onePage(r, append(r.value.clone().Data, 0))
	case r.value.Type == OldBlob:
		return e.onePage(r, r.value.Data)
	}
	if err := e.room(1); err != nil {
		return err
	}
	e.write(e.head(r, r.value.Type, 1, anyChunk, r.value.Data), nil)
	return nil
}

// head returns an entry: its names, its type and eight bytes of data.
func (e *encoder) head(r record, t Type, span int, chunk byte, data []byte) []byte {
	b := bytes.Repeat([]byte{0xFF}, entrySize)
	b[0], b[1], b[2], b[3] = r.namespace, byte(t), byte(span), chunk
	clear(b[copy(b[8:24], r.key)+8 : 24])
	copy(b[24:], data)
	binary.LittleEndian.PutUint32(b[4:], crc(b[:4], b[8:]))
	return b
}

// length returns the data of an entry that precedes bytes: length and checksum.
func length(data []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(data)))
	b = append(b, 0xFF, 0xFF)
	return binary.LittleEndian.AppendUint32(b, crc(data))
}

// write writes an entry and its bytes. The page must have room for them.
func (e *encoder) write(head, data []byte) {
	at := e.at(firstEntry + e.used*entrySize)
	copy(at, head)
	copy(at[len(head):], data)
	for range spanOf(len(head) + len(data)) {
		e.at(32)[e.used/4] &^= 1 << (e.used % 4 * 2) // 11, empty, to 10, written
		e.used++
	}
}

// spanOf returns how many entries so many bytes take.
func spanOf(n int) int { return (n + entrySize - 1) / entrySize }

// onePage writes a value that must not be split. Like Espressif's generator it leaves the
// last entry of a page free after such a value, except after a value that needs the whole
// page.
func (e *encoder) onePage(r record, data []byte) error {
	span := 1 + spanOf(len(data))
	if err := e.room(min(span+1, pageEntries)); err != nil {
		return err
	}
	e.write(e.head(r, r.value.Type, span, anyChunk, length(data)), data)
	return nil
}

// blob writes a blob in chunks, as much as each page takes, and then the index.
func (e *encoder) blob(r record) error {
	left, chunks := r.value.Data, 0
	if err := e.room(1); err != nil {
		return err
	}
	for chunks == 0 || len(left) > 0 {
		room := (pageEntries - e.used - 1) * entrySize
		chunk := left[:min(room, len(left))]
		left = left[len(chunk):]
		e.write(e.head(r, blobData, 1+spanOf(len(chunk)), byte(chunks), length(chunk)), chunk)
		chunks++
		if chunks == mostChunks && len(left) > 0 {
			return fmt.Errorf("%w: the blob %q takes more than %d parts", ErrFull, r.key, mostChunks)
		}
		if err := e.room(1); err != nil {
			return err
		}
	}
	index := binary.LittleEndian.AppendUint32(nil, uint32(len(r.value.Data)))
	e.write(e.head(r, blobIndex, 1, anyChunk, append(index, byte(chunks), 0)), nil)
	return nil
}
