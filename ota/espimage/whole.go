package espimage

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// WrongBootLoader is the value of Refusal.Word if there is no boot loader.
const WrongBootLoader = "wrong_boot_loader"

// WholeTarget describes the robot that a merged image, which contains the whole flash, is for.
type WholeTarget struct {
	Target           // Slot is ignored
	BootLoader int64 // address of the boot loader in the flash
	Flash      int64 // size of the flash in bytes
}

// CheckWhole checks a merged image, which is written to the beginning of the flash: the boot
// loader, the partition table, and the applications. The application that the robot starts
// must be present; other applications may be missing. CheckWhole returns the partition table. The
// error is a *Refusal.
func CheckWhole(b []byte, t WholeTarget) (Table, error) {
	if int64(len(b)) > t.Flash {
		return nil, refuse(TooLarge, "the image has %d bytes, and the robot's flash %d", len(b), t.Flash)
	}
	if len(b) < TableOffset+entrySize {
		return nil, refuse(Truncated, "the image ends before its partition table: it was cut short")
	}
	if err := CheckBootLoader(b[min(int(t.BootLoader), len(b)):], t.Target); err != nil {
		return nil, err
	}
	table, err := ParseTable(b[TableOffset:])
	if err != nil {
		return nil, err
	}
	if table.End() > t.Flash {
		return nil, refuse(TooLarge, "the image's partition table needs %d bytes of flash, and the robot has %d", table.End(), t.Flash)
	}
	starts, ok := table.StartPartition(nil, nil)
	if otadata, found := table.OTAData(); found {
		starts, ok = table.StartPartition(from(b, otadata.Offset), from(b, otadata.Offset+sectorSize))
	}
	if !ok {
		return nil, refuse(BadPartitions, "the image's partition table has no partition for an application")
	}
	for _, p := range table {
		if !p.IsApp() || p != starts && isErased(from(b, p.Offset)) {
			continue
		}
		if err := checkApp(b, p, t.Target); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// from returns the content of an image from an address on.
func from(b []byte, address int64) []byte { return b[min(address, int64(len(b))):] }

// isErased reports whether a partition with the content b is empty.
func isErased(b []byte) bool {
	b = b[:min(len(b), descOffset)]
	return bytes.Count(b, []byte{0xFF}) == len(b)
}

// checkApp checks the application in a partition of a merged image.
func checkApp(b []byte, p Partition, t Target) error {
	app := from(b, p.Offset)
	app = app[:min(len(app), MaxSize)] // Read finds the length of the application, which may be larger than its partition
	i, err := Read(bytes.NewReader(app), int64(len(app)))
	t.Slot = p.Size
	if err == nil || i.Kind == Application && t.Chip != NoChip && i.Chip != t.Chip {
		err = i.Fits(t)
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		return refuse(r.Word, "in the partition %s of the image: %s", p.Name, r.Sentence)
	}
	return err
}

// CheckBootLoader checks that b is a boot loader for the robot's chip. The error is a *Refusal.
func CheckBootLoader(b []byte, t Target) error {
	if len(b) < headerSize || b[0] != magic || len(b) >= descOffset+4 && binary.LittleEndian.Uint32(b[descOffset:]) == descMagic {
		return refuse(WrongBootLoader, "there is no boot loader where the robot's chip (%v) looks for one", t.Chip)
	}
	if chip := Chip(binary.LittleEndian.Uint16(b[12:])); t.Chip != NoChip && chip != t.Chip {
		return refuse(WrongChip, "the boot loader is built for %v, and the robot has %v", chip, t.Chip)
	}
	return nil
}

// AppStart is the number of bytes at the beginning of an application that AppOf needs.
const AppStart = descOffset + descSize

// AppOf returns the description of an application. start contains at least the first AppStart
// bytes of the application. ok is false if start is not an application with a description.
func AppOf(start []byte) (a App, ok bool) {
	if !startsApp(start) {
		return App{}, false
	}
	return parseApp(start[descOffset:]), true
}
