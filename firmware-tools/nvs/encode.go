package nvs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// States of a page, and other numbers of the format. Each later state has one more bit cleared, because
// flash memory can clear bits without being erased.
const (
	pageEmpty   = 0xFFFFFFFF
	pageActive  = 0xFFFFFFFE
	pageFull    = 0xFFFFFFFC
	pageFreeing = 0xFFFFFFF8

	formatVersion2 = 0xFE // versions count down: version 1 is 0xFF
	maxChunks      = 127  // chunks of a blob; the firmware uses the numbers from 128 on for a new version of the blob
	anyChunk       = 0xFF // chunk number of entries that are not chunks
)

// crc returns the checksum of the format: a CRC-32 that starts with 0xFFFFFFFF.
func crc(parts ...[]byte) uint32 {
	c := uint32(0xFFFFFFFF)
	for _, p := range parts {
		c = crc32.Update(c, crc32.IEEETable, p)
	}
	return c
}

// Encode returns the partition as size bytes, without erased entries. size must be a multiple of
// PageSize, from MinSize to MaxSize. One page stays empty, because the firmware needs it to move
// entries. The error wraps ErrFormat if size is invalid, and ErrFull if the items do not fit.
func (p *Partition) Encode(size int) ([]byte, error) {
	if size < MinSize || size > MaxSize || size%PageSize != 0 {
		return nil, fmt.Errorf("%w: a partition has a multiple of %d bytes, from %d to %d, not %d", ErrFormat, PageSize, MinSize, MaxSize, size)
	}
	e := &encoder{image: bytes.Repeat([]byte{0xFF}, size)}
	e.startPage()
	for _, r := range p.records {
		if err := e.writeRecord(r); err != nil {
			return nil, err
		}
	}
	return e.image, nil
}

// encoder writes entries to one page after the other.
type encoder struct {
	image []byte
	page  int // index of the current page
	used  int // number of written entries on the current page
}

// at returns the bytes at an offset in the current page, up to the end of the image.
func (e *encoder) at(offset int) []byte { return e.image[e.page*PageSize+offset:] }

// startPage writes the header of the current page.
func (e *encoder) startPage() {
	header := e.at(0)[:32]
	binary.LittleEndian.PutUint32(header, pageActive)
	binary.LittleEndian.PutUint32(header[4:], uint32(e.page))
	header[8] = formatVersion2
	binary.LittleEndian.PutUint32(header[28:], crc(header[4:28]))
	e.used = 0
}

// ensureRoom starts the next page if the current page has no room for a number of entries. The error
// wraps ErrFull if only one empty page is left.
func (e *encoder) ensureRoom(entries int) error {
	if e.used+entries <= pageEntries {
		return nil
	}
	if (e.page+2)*PageSize >= len(e.image) {
		return fmt.Errorf("%w: the items need more than %d of the %d pages; one page must stay empty", ErrFull, e.page+1, len(e.image)/PageSize)
	}
	binary.LittleEndian.PutUint32(e.at(0), pageFull)
	e.page++
	e.startPage()
	return nil
}

// writeRecord writes a record in as many entries as needed.
func (e *encoder) writeRecord(r record) error {
	switch {
	case r.raw != nil:
		if err := e.ensureRoom(spanOf(len(r.raw))); err != nil {
			return err
		}
		e.write(r.raw, nil)
		return nil
	case r.value.Type == Blob:
		return e.writeBlob(r)
	case r.value.Type == String:
		return e.writeUnsplit(r, append(r.value.clone().Data, 0))
	case r.value.Type == OldBlob:
		return e.writeUnsplit(r, r.value.Data)
	}
	if err := e.ensureRoom(1); err != nil {
		return err
	}
	e.write(e.entry(r, r.value.Type, 1, anyChunk, r.value.Data), nil)
	return nil
}

// entry returns an entry of entrySize bytes with up to eight bytes of data. span is the number of
// entries that the item or chunk takes.
func (e *encoder) entry(r record, t Type, span int, chunk byte, data []byte) []byte {
	b := bytes.Repeat([]byte{0xFF}, entrySize)
	b[0], b[1], b[2], b[3] = r.namespace, byte(t), byte(span), chunk
	clear(b[copy(b[8:24], r.key)+8 : 24])
	copy(b[24:], data)
	binary.LittleEndian.PutUint32(b[4:], crc(b[:4], b[8:]))
	return b
}

// lengthAndChecksum returns the data of the first entry of a string, blob or chunk whose content
// is data.
func lengthAndChecksum(data []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(data)))
	b = append(b, 0xFF, 0xFF)
	return binary.LittleEndian.AppendUint32(b, crc(data))
}

// write writes complete entries, and then data as the content of further entries. The current
// page must have room for all of them.
func (e *encoder) write(entries, data []byte) {
	dst := e.at(firstEntry + e.used*entrySize)
	copy(dst, entries)
	copy(dst[len(entries):], data)
	for range spanOf(len(entries) + len(data)) {
		e.at(32)[e.used/4] &^= 1 << (e.used % 4 * 2) // two bits per entry: 11 is empty, 10 is written
		e.used++
	}
}

// spanOf returns the number of entries that n bytes take.
func spanOf(n int) int { return (n + entrySize - 1) / entrySize }

// writeUnsplit writes a value that must be on one page. Like Espressif's generator it does not
// use the last entry of a page, unless the value needs the whole page.
func (e *encoder) writeUnsplit(r record, data []byte) error {
	span := 1 + spanOf(len(data))
	if err := e.ensureRoom(min(span+1, pageEntries)); err != nil {
		return err
	}
	e.write(e.entry(r, r.value.Type, span, anyChunk, lengthAndChecksum(data)), data)
	return nil
}

// writeBlob writes a blob in chunks, each as large as fits on its page, and then the index.
func (e *encoder) writeBlob(r record) error {
	remaining, chunks := r.value.Data, 0
	if err := e.ensureRoom(1); err != nil {
		return err
	}
	for chunks == 0 || len(remaining) > 0 {
		room := (pageEntries - e.used - 1) * entrySize
		chunk := remaining[:min(room, len(remaining))]
		remaining = remaining[len(chunk):]
		e.write(e.entry(r, blobData, 1+spanOf(len(chunk)), byte(chunks), lengthAndChecksum(chunk)), chunk)
		chunks++
		if chunks == maxChunks && len(remaining) > 0 {
			return fmt.Errorf("%w: the blob %q needs more than %d chunks", ErrFull, r.key, maxChunks)
		}
		if err := e.ensureRoom(1); err != nil {
			return err
		}
	}
	index := binary.LittleEndian.AppendUint32(nil, uint32(len(r.value.Data)))
	e.write(e.entry(r, blobIndex, 1, anyChunk, append(index, byte(chunks), 0)), nil)
	return nil
}
