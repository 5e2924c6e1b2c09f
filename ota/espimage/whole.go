package espimage

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// WrongBootLoader is the word of refusals of boot loaders.
const WrongBootLoader = "wrong_boot_loader"

// WholeTarget is the robot for an image of the whole flash.
type WholeTarget struct {
	Target           // its Slot is ignored
	BootLoader int64 // address of the boot loader for its chip
	Flash      int64 // size of its flash, in bytes
}

// CheckWhole checks the parts of a merged image, from the beginning of the flash on: the
// boot loader, the partition table, and the applications; at least one must be startable.
// The error is a *Refusal.
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
		return nil, refuse(TooLarge, "the image's partition table speaks of %d bytes of flash, and the robot has %d", table.End(), t.Flash)
	}
	starts, there := table.Starts(nil, nil)
	if choice, is := table.Choice(); is {
		starts, there = table.Starts(part(b, choice.Offset), part(b, choice.Offset+sectorSize))
	}
	if !there {
		return nil, refuse(BadPartitions, "the image's partition table has no partition for an application")
	}
	for _, p := range table {
		if !p.IsApp() || p != starts && blank(part(b, p.Offset)) {
			continue
		}
		if err := checkPart(b, p, t.Target); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// part returns the content of an image from an address on.
func part(b []byte, at int64) []byte { return b[min(at, int64(len(b))):] }

func blank(b []byte) bool {
	b = b[:min(len(b), descOffset)]
	return bytes.Count(b, []byte{0xFF}) == len(b)
}

// checkPart checks an application within a merged image.
func checkPart(b []byte, p Partition, t Target) error {
	app := part(b, p.Offset)
	app = app[:min(len(app), MaxSize)] // beyond its partition, to find its length
	i, err := Read(bytes.NewReader(app), int64(len(app)))
	t.Slot = p.Size
	if err == nil || i.Kind == Application && t.Chip != NoChip && i.Chip != t.Chip {
		err = i.Fits(t)
	}
	if r, is := errors.AsType[*Refusal](err); is {
		return refuse(r.Word, "in the partition %s of the image: %s", p.Name, r.Sentence)
	}
	return err
}

// CheckBootLoader checks that b is a boot loader for this chip. The error is a *Refusal.
func CheckBootLoader(b []byte, t Target) error {
	if len(b) < headerSize || b[0] != magic || len(b) >= descOffset+4 && binary.LittleEndian.Uint32(b[descOffset:]) == descMagic {
		return refuse(WrongBootLoader, "there is no boot loader where the robot's chip (%v) looks for one", t.Chip)
	}
	if chip := Chip(binary.LittleEndian.Uint16(b[12:])); t.Chip != NoChip && chip != t.Chip {
		return refuse(WrongChip, "the boot loader is built for %v, and the robot has %v", chip, t.Chip)
	}
	return nil
}

// AppStart is the length of the part of an application that AppOf needs, in bytes.
const AppStart = descOffset + descSize

// AppOf reads only the description of the application that start begins with.
func AppOf(start []byte) (App, bool) {
	if !startsApp(start) {
		return App{}, false
	}
	return readApp(start[descOffset:]), true
}
