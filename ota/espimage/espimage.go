// Package espimage reads a firmware image of ESP-IDF as a boot loader would, and refuses
// what a robot would refuse, with the reason. It opens no files and reads no clock.
//
// An application starts with a header of 24 bytes, which names the chip, followed by up to
// 16 segments, each with a header of 8 bytes. Then come padding and one byte of checksum,
// which ends a block of 16, and in nearly every build the SHA-256 of all before it. The
// first segment begins with the application's description. The layout is defined by
// esp_image_format.c and esp_app_desc.h in ESP-IDF.
package espimage

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the kind of a file.
type Kind string

// The known kinds. A robot installs only an application.
const (
	Application    Kind = "application"
	BootLoader     Kind = "boot loader"
	Merged         Kind = "merged image"
	PartitionTable Kind = "partition table"
	AssetFile      Kind = "asset file"
	Settings       Kind = "NVS partition"
	Archive        Kind = "archive"
	ELF            Kind = "ELF file"
	Unknown        Kind = "unknown"
)

// Image is the content of a file, as far as it could be read.
type Image struct {
	Kind   Kind
	Size   int64    // of the file, in bytes
	SHA256 [32]byte // of the file, if it was read to its end

	// The rest is only set for an application.

	Chip        Chip
	MinRevision int // of the chip: major * 100 + minor
	Segments    []Segment
	App         App
	Length      int64 // of what a boot loader reads, including the hash
	Hashed      bool  // it ends with a SHA-256
	Signed      bool  // a signature block of secure boot follows
	Trailing    int64 // bytes that follow and belong to no part
}

// Segment is a part of an image, with the address it is loaded or mapped to.
type Segment struct {
	Address uint32 `json:"address"`
	Length  uint32 `json:"length"` // bytes
	Offset  int64  `json:"offset"` // of its data in the file
}

// App is the description that a build puts into an application, in UTF-8 without control
// characters.
type App struct {
	Version    string
	Project    string
	Date, Time string   // in the format of __DATE__ and __TIME__
	IDF        string   // version of ESP-IDF
	ELF        [32]byte // SHA-256 of the ELF file, with which a robot identifies its running image
}

// Refusal is why a robot would not run a file.
type Refusal struct {
	Word     string // for programs, such as "truncated"
	Sentence string // for people: cause and cure
}

func (r *Refusal) Error() string { return r.Sentence }

func refuse(word, format string, values ...any) error {
	return &Refusal{word, fmt.Sprintf(format, values...)}
}

// Words of refusals.
const (
	NotAnApplication = "not_an_application"
	Truncated        = "truncated"
	BadHeader        = "bad_header"
	BadSegment       = "bad_segment"
	BadChecksum      = "bad_checksum"
	BadHash          = "bad_hash"
	WrongChip        = "wrong_chip"
	TooLarge         = "too_large"
)

// MaxSize bounds an image, in bytes; ESP-IDF accepts no larger partition.
const MaxSize = 16 << 20

const (
	magic        = 0xE9
	headerSize   = 24
	segmentSize  = 8
	mostSegments = 16
	descMagic    = 0xABCD5432
	descOffset   = headerSize + segmentSize
	descSize     = 256
	mmuPage      = 64 << 10
)

// Read reads a file of the given size. The error is a *Refusal if a robot would not run the
// file; the Image then has what could be read. Any other error is the reader's.
func Read(r io.ReaderAt, size int64) (Image, error) {
	size = max(size, 0)
	i := Image{Kind: Unknown, Size: size}
	start, err := readStart(r, size)
	if err == nil {
		i.Kind, err = kindOf(r, size, start)
	}
	if err != nil {
		return i, fmt.Errorf("read the image: %w", err)
	}
	if i.Kind != Application {
		return i, i.Kind.refusal(size)
	}
	if size > MaxSize {
		return i, refuse(TooLarge, "the image has %d bytes; no robot has a partition of more than 16 MB", size)
	}
	i.Chip = Chip(binary.LittleEndian.Uint16(start[12:])) // the fields of esp_image_header_t
	i.MinRevision = int(binary.LittleEndian.Uint16(start[15:]))
	i.Hashed = start[23] != 0
	i.App = readApp(start[descOffset:])
	if n := int(start[1]); n == 0 || n > mostSegments {
		return i, refuse(BadHeader, "the header tells of %d segments; a boot loader takes 1 to %d", n, mostSegments)
	}
	file := make([]byte, size)
	if n, err := r.ReadAt(file, 0); n < len(file) {
		return i, fmt.Errorf("read the image: %w", err)
	}
	return i, (&walk{image: &i, file: file}).run(int(start[1]))
}

// Target describes a robot. Unknown values are NoChip, a negative revision, or 0.
type Target struct {
	Chip     Chip
	Revision int   // major * 100 + minor
	Slot     int64 // bytes of its smallest partition for applications
}

// Fits returns why a robot would not run the image, because it is built for another chip or
// does not fit into the partition, or nil.
func (i Image) Fits(t Target) error {
	switch {
	case t.Chip != NoChip && t.Chip != i.Chip:
		return refuse(WrongChip, "the image is built for %v, and the robot has %v", i.Chip, t.Chip)
	case t.Chip != NoChip && t.Revision >= 0 && t.Revision < i.MinRevision:
		return refuse(WrongChip, "the image needs revision %s of the chip, and the robot has %s", revision(i.MinRevision), revision(t.Revision))
	case t.Slot > 0 && i.Length > t.Slot:
		return refuse(TooLarge, "the image has %d bytes, and the robot's partition takes %d", i.Length, t.Slot)
	}
	return nil
}

func revision(n int) string { return fmt.Sprintf("%d.%d", n/100, n%100) }
