// Package espimage reads firmware images of ESP-IDF, and asset files of the Xiaozhi firmware. It
// checks them as a robot does, for package ota and the tools for firmware. It opens no files and
// reads no clock.
//
// An application starts with a header of 24 bytes, which names the chip. Up to 16 segments
// follow, each with a header of 8 bytes; the first segment begins with the application's
// description. Padding to a multiple of 16 bytes follows; its last byte is the checksum. In
// nearly every build, the SHA-256 of all these bytes is at the end. The format is defined by
// esp_image_format.c and esp_app_desc.h in ESP-IDF.
package espimage

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the kind of a file.
type Kind string

// The kinds. A robot installs only an application.
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

// Image describes the content of a file. Fields that could not be read are zero.
type Image struct {
	Kind   Kind
	Size   int64    // size of the file in bytes
	SHA256 [32]byte // of the file; zero if the file was not read to its end

	// The following fields are only set for an application.

	Chip        Chip
	MinRevision int // lowest revision of the chip that can run the image: major * 100 + minor
	Segments    []Segment
	App         App
	Length      int64 // bytes that a boot loader reads, including the SHA-256
	Hashed      bool  // whether the image ends with a SHA-256
	Signed      bool  // whether a signature block of secure boot v2 follows the image
	Trailing    int64 // number of bytes after the image; 0 if Signed
}

// Segment is a part of an image.
type Segment struct {
	Address uint32 `json:"address"` // where the chip loads or maps the segment
	Length  uint32 `json:"length"`  // bytes
	Offset  int64  `json:"offset"`  // offset of the data in the file
}

// App is the description that the build of an application has set. The texts are UTF-8
// without control characters.
type App struct {
	Version    string
	Project    string
	Date, Time string   // in the format of __DATE__ and __TIME__
	IDF        string   // version of ESP-IDF
	ELF        [32]byte // SHA-256 of the build's ELF file, which a robot reports for its running image
}

// Refusal is the error for a file that a robot would not run or use.
type Refusal struct {
	Word     string // for programs, such as "truncated"
	Sentence string // for people; names the cause and often a remedy
}

// Error returns the sentence.
func (r *Refusal) Error() string { return r.Sentence }

// refuse returns a *Refusal.
func refuse(word, format string, values ...any) error {
	return &Refusal{word, fmt.Sprintf(format, values...)}
}

// Values of Refusal.Word.
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

// MaxSize is the largest size of a file in bytes. ESP-IDF accepts no larger partition.
const MaxSize = 16 << 20

// The format of an application. Sizes and offsets are in bytes.
const (
	magic       = 0xE9 // first byte of an application or a boot loader
	headerSize  = 24
	segmentSize = 8 // size of a segment's header
	maxSegments = 16
	descMagic   = 0xABCD5432 // first word of the application's description
	descOffset  = headerSize + segmentSize
	descSize    = 256
	mmuPage     = 64 << 10 // unit of the mapping of flash to addresses
)

// Read reads a file of size bytes and checks it as a boot loader does. If a robot would not run the
// file, the error is a *Refusal, and the Image contains the fields that could be read. Other errors
// wrap the error of r.
func Read(r io.ReaderAt, size int64) (Image, error) {
	size = max(size, 0)
	i := Image{Kind: Unknown, Size: size}
	start, err := readStart(r, size)
	if err == nil {
		i.Kind, err = detectKind(r, size, start)
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
	i.App = parseApp(start[descOffset:])
	if n := int(start[1]); n == 0 || n > maxSegments {
		return i, refuse(BadHeader, "the header lists %d segments; a boot loader accepts 1 to %d", n, maxSegments)
	}
	file := make([]byte, size)
	if n, err := r.ReadAt(file, 0); n < len(file) {
		return i, fmt.Errorf("read the image: %w", err)
	}
	return i, (&appReader{image: &i, file: file}).run(int(start[1]))
}

// Target describes a robot.
type Target struct {
	Chip     Chip  // NoChip if unknown
	Revision int   // revision of the chip: major * 100 + minor; negative if unknown
	Slot     int64 // bytes of the smallest partition for applications; 0 if unknown
}

// Fits returns a *Refusal if the image is for another chip or a later revision of it, or too large for
// the robot's partition, and otherwise nil.
func (i Image) Fits(t Target) error {
	switch {
	case t.Chip != NoChip && t.Chip != i.Chip:
		return refuse(WrongChip, "the image is built for %v, and the robot has %v", i.Chip, t.Chip)
	case t.Chip != NoChip && t.Revision >= 0 && t.Revision < i.MinRevision:
		return refuse(WrongChip, "the image needs revision %s of the chip, and the robot has %s", formatRevision(i.MinRevision), formatRevision(t.Revision))
	case t.Slot > 0 && i.Length > t.Slot:
		return refuse(TooLarge, "the image has %d bytes, and the robot's partition takes %d", i.Length, t.Slot)
	}
	return nil
}

// formatRevision formats the revision of a chip, such as "3.1".
func formatRevision(n int) string { return fmt.Sprintf("%d.%d", n/100, n%100) }
