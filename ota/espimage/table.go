package espimage

import (
	"bytes"
	"cmp"
	"crypto/md5" // required by the format of the table, to detect damage
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"perch/plain"
)

// The partition table in a robot's flash. The format is defined by esp_flash_partitions.h in
// ESP-IDF.
const (
	TableOffset = 0x8000 // address
	TableSize   = 0xC00  // largest size in bytes
)

// Values of Partition.Type and Partition.Subtype.
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

// IsApp reports whether the partition is for an application.
func (p Partition) IsApp() bool { return p.Type == AppPartition }

// IsSettings reports whether the partition contains the robot's settings.
func (p Partition) IsSettings() bool {
	return p.Type == DataPartition && (p.Subtype == nvsData || p.Subtype == nvsKeys)
}

// Table contains the partitions of a robot's flash, in ascending order of Offset.
type Table []Partition

// BadPartitions is the value of Refusal.Word for an invalid partition table.
const BadPartitions = "bad_partitions"

// ParseTable parses the partition table at the beginning of b. It verifies the MD5 if the table
// has one. Unlike a boot loader, it also checks that the partitions follow the table and do not
// overlap. The error is a *Refusal.
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
			Offset: uint32At(entry, 4), Size: uint32At(entry, 8),
		})
	}
	return t.check()
}

// check sorts the partitions. It returns an error if the table has none, or if partitions overlap each
// other or the table, or are misaligned or empty.
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

// End returns the address after the last partition.
func (t Table) End() int64 {
	last := t[len(t)-1] // ParseTable refuses an empty table
	return last.Offset + last.Size
}

// find returns the first partition that match accepts. ok is false if match accepts no partition.
func (t Table) find(match func(p Partition) bool) (p Partition, ok bool) {
	n := slices.IndexFunc(t, match)
	if n < 0 {
		return Partition{}, false
	}
	return t[n], true
}

// Named returns the partition with a name. ok is false if no partition has this name.
func (t Table) Named(name string) (p Partition, ok bool) {
	return t.find(func(p Partition) bool { return p.Name == name })
}

// At returns the partition that contains an address. ok is false if there is no such partition.
func (t Table) At(address int64) (p Partition, ok bool) {
	return t.find(func(p Partition) bool { return address >= p.Offset && address < p.Offset+p.Size })
}

// OTAData returns the partition otadata, which selects the slot that a robot starts. A slot is a
// partition for upgrades. ok is false if the table has no otadata.
func (t Table) OTAData() (p Partition, ok bool) {
	return t.find(func(p Partition) bool {
		return p.Type == DataPartition && p.Subtype == otaData && p.Size >= 2*sectorSize
	})
}

// slots returns the partitions for upgrades, in the order of their numbers.
func (t Table) slots() []Partition {
	slots := slices.DeleteFunc(slices.Clone(t), func(p Partition) bool { return !p.IsApp() || p.Subtype < FirstSlot || p.Subtype > LastSlot })
	slices.SortStableFunc(slots, func(a, b Partition) int { return cmp.Compare(a.Subtype, b.Subtype) })
	return slots
}

// OTADataRecord is the size in bytes of a record of otadata. Both sectors of otadata begin with a
// record.
const OTADataRecord = 32

// States of a record that make a boot loader ignore the record. pendingVerify means that the
// image in the slot was started but not confirmed.
const (
	pendingVerify = 1
	invalidImage  = 3
	abortedImage  = 4
)

// StartPartition returns the partition that a robot starts next. first and second are the two records
// in otadata; the valid record with the higher number selects a slot. Without a valid record the
// robot starts the factory application, or else the first slot. ok is false if the table has
// neither.
func (t Table) StartPartition(first, second []byte) (p Partition, ok bool) {
	slots, best := t.slots(), max(slotNumber(first), slotNumber(second))
	if best > 0 && len(slots) > 0 {
		return slots[(best-1)%uint32(len(slots))], true
	}
	if factory, ok := t.find(func(p Partition) bool { return p.IsApp() && p.Subtype == factoryApp }); ok || len(slots) == 0 {
		return factory, ok
	}
	return slots[0], true
}

// slotNumber parses a record, an esp_ota_select_entry_t: number, label, state, and checksum of
// the number. It returns the number, or 0 for a record that a boot loader ignores.
func slotNumber(record []byte) uint32 {
	if len(record) < OTADataRecord {
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

// SelectSlot returns the content of the two sectors of otadata that makes a robot start p. It returns an
// error if p is neither the factory application nor a slot.
func (t Table) SelectSlot(p Partition) ([]byte, error) {
	sectors := bytes.Repeat([]byte{0xFF}, 2*sectorSize)
	if p.IsApp() && p.Subtype == factoryApp {
		return sectors, nil
	}
	n := slices.Index(t.slots(), p)
	if n < 0 {
		return nil, fmt.Errorf("a robot does not start from the partition %s", p.Name)
	}
	binary.LittleEndian.PutUint32(sectors, uint32(n+1))
	binary.LittleEndian.PutUint32(sectors[28:], crc32.Update(0xFFFFFFFF, crc32.IEEETable, sectors[:4]))
	return sectors, nil
}
