package espimage

import (
	"bytes"
	"cmp"
	"crypto/md5" // the table's format has it; it detects damage, not forgery
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"perch/plain"
)

// The address and the largest size of the partition table in a robot's flash, in bytes. The
// layout is defined by esp_flash_partitions.h in ESP-IDF.
const (
	TableOffset = 0x8000
	TableSize   = 0xC00
)

// Types of partitions, and the subtypes used here.
const (
	AppPartition  = 0
	DataPartition = 1

	factoryApp = 0x00 // subtype of AppPartition
	FirstSlot  = 0x10 // first subtype of AppPartition for upgrades
	LastSlot   = 0x1F

	otaData = 0x00 // subtype of DataPartition
	nvsData = 0x02
	nvsKeys = 0x04
)

// Partition is a range of a robot's flash.
type Partition struct {
	Name          string
	Type, Subtype byte
	Offset, Size  int64 // bytes
}

// IsApp reports whether a robot can start it: the factory application, or a slot.
func (p Partition) IsApp() bool { return p.Type == AppPartition }

// IsSettings reports whether a robot keeps its settings there.
func (p Partition) IsSettings() bool {
	return p.Type == DataPartition && (p.Subtype == nvsData || p.Subtype == nvsKeys)
}

// Table is the partitions of a robot's flash, by offset.
type Table []Partition

// BadPartitions is the word of refusals of partition tables.
const BadPartitions = "bad_partitions"

// ParseTable parses a partition table. It checks more than a boot loader: that the
// partitions come after the table and do not overlap, and the MD5 if present. The error is
// a *Refusal.
func ParseTable(b []byte) (Table, error) {
	var t Table
	b = b[:min(len(b), TableSize)]
	for at := 0; at+entrySize <= len(b); at += entrySize {
		entry := b[at : at+entrySize]
		switch {
		case entry[0] == 0xEB && entry[1] == 0xEB:
			if md5.Sum(b[:at]) != [16]byte(entry[16:]) {
				return nil, refuse(BadPartitions, "the partition table is damaged: its MD5 is wrong")
			}
			return t.check()
		case bytes.Count(entry, []byte{0xFF}) == entrySize:
			return t.check()
		case entry[0] != 0xAA || entry[1] != 0x50:
			return nil, refuse(BadPartitions, "there is no partition table, or a damaged one: its entry %d begins with %#02x %#02x", at/entrySize,
				entry[0], entry[1])
		}
		name, _, _ := bytes.Cut(entry[12:28], []byte{0})
		t = append(t, Partition{
			Name: plain.Clip(plain.Text(string(name)), assetsName), Type: entry[2], Subtype: entry[3],
			Offset: field(entry, 4), Size: field(entry, 8),
		})
	}
	return t.check()
}

// check sorts the partitions, and refuses a table that a robot could not use.
func (t Table) check() (Table, error) {
	if len(t) == 0 {
		return nil, refuse(BadPartitions, "the partition table is empty")
	}
	slices.SortStableFunc(t, func(a, b Partition) int { return int(a.Offset - b.Offset) })
	end := int64(TableOffset + sectorSize)
	for _, p := range t {
		if p.Offset%sectorSize != 0 || p.Size == 0 || p.Offset < end {
			return nil, refuse(BadPartitions, "the partition table is damaged: %s at %#x overlaps what lies before it, or begins within a sector",
				p.Name, p.Offset)
		}
		end = p.Offset + p.Size
	}
	return t, nil
}

// End returns the end of the last partition.
func (t Table) End() int64 {
	last := t[len(t)-1] // ParseTable refuses an empty table
	return last.Offset + last.Size
}

func (t Table) findFunc(is func(p Partition) bool) (Partition, bool) {
	n := slices.IndexFunc(t, is)
	if n < 0 {
		return Partition{}, false
	}
	return t[n], true
}

// Named returns the partition with that name.
func (t Table) Named(name string) (Partition, bool) {
	return t.findFunc(func(p Partition) bool { return p.Name == name })
}

// At returns the partition that contains an address.
func (t Table) At(address int64) (Partition, bool) {
	return t.findFunc(func(p Partition) bool { return address >= p.Offset && address < p.Offset+p.Size })
}

// Choice returns the partition otadata, which selects the slot that a robot starts.
func (t Table) Choice() (Partition, bool) {
	return t.findFunc(func(p Partition) bool {
		return p.Type == DataPartition && p.Subtype == otaData && p.Size >= 2*sectorSize
	})
}

// slots returns the partitions for upgrades, by number.
func (t Table) slots() []Partition {
	all := slices.DeleteFunc(slices.Clone(t), func(p Partition) bool { return !p.IsApp() || p.Subtype < FirstSlot || p.Subtype > LastSlot })
	slices.SortStableFunc(all, func(a, b Partition) int { return cmp.Compare(a.Subtype, b.Subtype) })
	return all
}

// ChoiceRecord is the length of the record in each of otadata's two sectors, in bytes.
const ChoiceRecord = 32

// States of a record that a boot loader skips. An image that was started but not confirmed
// is rolled back at the next start.
const (
	pendingVerify = 1
	invalidImage  = 3
	abortedImage  = 4
)

// Starts returns the partition that a robot with these two records starts next: the slot of
// the higher valid number or, without one, the factory application or the first slot.
func (t Table) Starts(first, second []byte) (Partition, bool) {
	slots, best := t.slots(), max(chosen(first), chosen(second))
	if best > 0 && len(slots) > 0 {
		return slots[(best-1)%uint32(len(slots))], true
	}
	if factory, is := t.findFunc(func(p Partition) bool { return p.IsApp() && p.Subtype == factoryApp }); is || len(slots) == 0 {
		return factory, is
	}
	return slots[0], true
}

// chosen parses esp_ota_select_entry_t: number, label, state, and the number's checksum. It
// returns 0 for a record that a boot loader skips.
func chosen(record []byte) uint32 {
	if len(record) < ChoiceRecord {
		return 0
	}
	number, state := binary.LittleEndian.Uint32(record), binary.LittleEndian.Uint32(record[24:])
	sum := crc32.Update(0xFFFFFFFF, crc32.IEEETable, record[:4])
	if number == 0xFFFFFFFF || binary.LittleEndian.Uint32(record[28:]) != sum ||
		state == pendingVerify || state == invalidImage || state == abortedImage {
		return 0
	}
	return number
}

// Choose returns the two sectors of otadata that make a robot start partition p.
func (t Table) Choose(p Partition) ([]byte, error) {
	out := bytes.Repeat([]byte{0xFF}, 2*sectorSize)
	if p.IsApp() && p.Subtype == factoryApp {
		return out, nil
	}
	n := slices.Index(t.slots(), p)
	if n < 0 {
		return nil, fmt.Errorf("%s is no partition that a robot starts", p.Name)
	}
	binary.LittleEndian.PutUint32(out, uint32(n+1))
	binary.LittleEndian.PutUint32(out[28:], crc32.Update(0xFFFFFFFF, crc32.IEEETable, out[:4]))
	return out, nil
}
