package espimage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// detectKind returns the kind of a file. It recognizes a merged image by its partition table,
// and other kinds by start, the first bytes of the file.
func detectKind(r io.ReaderAt, size int64, start []byte) (Kind, error) {
	if startsApp(start) {
		return Application, nil
	}
	merged, err := hasPartitionTable(r, size)
	switch {
	case err != nil:
		return Unknown, err
	case merged:
		return Merged, nil
	case isTableEntry(start):
		return PartitionTable, nil
	case len(start) > 0 && start[0] == magic:
		return BootLoader, nil
	case isSettings(start):
		return Settings, nil
	case isAssets(start, size):
		return AssetFile, nil
	case bytes.HasPrefix(start, []byte("\x7fELF")):
		return ELF, nil
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return Archive, nil
	}
	return Unknown, nil
}

// readStart reads the first AppStart bytes of a file, or the whole file if it is shorter.
func readStart(r io.ReaderAt, size int64) ([]byte, error) {
	start := make([]byte, min(AppStart, size))
	n, err := r.ReadAt(start, 0)
	if err == io.EOF {
		err = nil
	}
	return start[:n], err
}

// startsApp reports whether b begins with an application that has a description.
func startsApp(b []byte) bool {
	return len(b) >= AppStart && b[0] == magic && uint32At(b, descOffset) == descMagic
}

// hasPartitionTable reports whether a partition table begins at a sector of a file, from the second
// sector up to the one at 128 kB.
func hasPartitionTable(r io.ReaderAt, size int64) (bool, error) {
	entry := make([]byte, entrySize)
	for at := int64(sectorSize); at <= 128<<10 && at+entrySize <= size; at += sectorSize {
		if _, err := r.ReadAt(entry, at); err != nil && err != io.EOF {
			return false, err
		}
		if isTableEntry(entry) {
			return true, nil
		}
	}
	return false, nil
}

// entrySize is the size in bytes of an entry of a partition table.
const entrySize = 32

// isTableEntry reports whether b begins with an entry of a partition table: the entry of an
// application or data partition that starts at a sector and is not empty.
func isTableEntry(b []byte) bool {
	return len(b) >= entrySize && b[0] == 0xAA && b[1] == 0x50 && b[2] <= 1 &&
		binary.LittleEndian.Uint32(b[4:])%sectorSize == 0 && binary.LittleEndian.Uint32(b[8:]) > 0
}

// isSettings reports whether b begins with a page of NVS, whose header has a checksum.
func isSettings(b []byte) bool {
	if len(b) < 32 {
		return false
	}
	crc := crc32.Update(0xFFFFFFFF, crc32.IEEETable, b[4:28])
	return binary.LittleEndian.Uint32(b[28:]) == crc
}

// isAssets reports whether b begins with the header of an asset file of size bytes.
func isAssets(b []byte, size int64) bool {
	if len(b) < assetsHeader+assetsEntry {
		return false
	}
	count, length := uint32At(b, 0), uint32At(b, 8)
	return count > 0 && count*assetsEntry <= length && length == size-assetsHeader && uint32At(b, 4) <= 0xFFFF
}

// refusal returns the *Refusal for a file that is not an application.
func (k Kind) refusal(size int64) error {
	switch {
	case k == Unknown && size == 0:
		return refuse(NotAnApplication, "the file is empty")
	case k == Unknown:
		return refuse(NotAnApplication, "this is not a firmware image: an application begins with the byte 0xE9 and a description at byte 32")
	case k == Archive:
		return refuse(NotAnApplication, "this is an archive; unpack it, and take the application out of it")
	}
	description := map[Kind]string{
		Merged: "a merged image of a whole flash, for USB", AssetFile: "an asset file, of fonts, faces or wake words",
		ELF: "the ELF file of a build", BootLoader: "a boot loader, or an application without a description",
	}[k]
	return refuse(NotAnApplication, "this is %s; a robot installs the application alone, which the build leaves as PROJECT.bin in its build folder",
		cmp.Or(description, "a file of another kind ("+string(k)+")"))
}
