package espimage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// kindOf recognizes a file by its first bytes, and a merged image by its table.
func kindOf(r io.ReaderAt, size int64, start []byte) (Kind, error) {
	if startsApp(start) {
		return Application, nil
	}
	merged, err := hasTable(r, size)
	switch {
	case err != nil:
		return Unknown, err
	case merged:
		return Merged, nil
	case isEntry(start):
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

// readStart reads the bytes that identify a kind.
func readStart(r io.ReaderAt, size int64) ([]byte, error) {
	start := make([]byte, min(AppStart, size))
	n, err := r.ReadAt(start, 0)
	if err == io.EOF {
		err = nil
	}
	return start[:n], err
}

// startsApp reports whether an application with a description begins here.
func startsApp(b []byte) bool {
	return len(b) >= AppStart && b[0] == magic && field(b, descOffset) == descMagic
}

// hasTable looks for a partition table where a merged image may have one: at a
// sector of the first 128 kB, but not at its first.
func hasTable(r io.ReaderAt, size int64) (bool, error) {
	entry := make([]byte, entrySize)
	for at := int64(sectorSize); at <= 128<<10 && at+entrySize <= size; at += sectorSize {
		if _, err := r.ReadAt(entry, at); err != nil && err != io.EOF {
			return false, err
		}
		if isEntry(entry) {
			return true, nil
		}
	}
	return false, nil
}

const entrySize = 32

// isEntry reports whether b begins with an entry of a partition table: a partition of an
// application or of data that starts at a sector and is not empty.
func isEntry(b []byte) bool {
	return len(b) >= entrySize && b[0] == 0xAA && b[1] == 0x50 && b[2] <= 1 &&
		binary.LittleEndian.Uint32(b[4:])%sectorSize == 0 && binary.LittleEndian.Uint32(b[8:]) > 0
}

// isSettings recognizes a page of NVS by the checksum of its header.
func isSettings(b []byte) bool {
	if len(b) < 32 {
		return false
	}
	crc := crc32.Update(0xFFFFFFFF, crc32.IEEETable, b[4:28])
	return binary.LittleEndian.Uint32(b[28:]) == crc
}

// isAssets recognizes a container of assets by its header: the number of files, a
// checksum, and the length of the rest.
func isAssets(b []byte, size int64) bool {
	if len(b) < assetsHeader+assetsEntry {
		return false
	}
	count, length := field(b, 0), field(b, 8)
	return count > 0 && count*assetsEntry <= length && length == size-assetsHeader && field(b, 4) <= 0xFFFF
}

// refusal returns what to do with a file of another kind.
func (k Kind) refusal(size int64) error {
	switch {
	case k == Unknown && size == 0:
		return refuse(NotAnApplication, "the file is empty")
	case k == Unknown:
		return refuse(NotAnApplication, "this is no firmware image: an application begins with the byte 0xE9 and a description at byte 32")
	case k == Archive:
		return refuse(NotAnApplication, "this is an archive; unpack it, and take the application out of it")
	}
	what := map[Kind]string{
		Merged: "a merged image of a whole flash, for USB", AssetFile: "an asset file, of fonts, faces or wake words",
		ELF: "the ELF file of a build", BootLoader: "a boot loader, or an application without a description",
	}[k]
	return refuse(NotAnApplication, "this is %s; a robot installs the application alone, which the build leaves as PROJECT.bin in its build folder",
		cmp.Or(what, "a file of another kind ("+string(k)+")"))
}
