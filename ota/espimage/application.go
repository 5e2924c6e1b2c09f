package espimage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"perch/plain"
)

// walk reads an application from its first segment to its last byte.
type walk struct {
	image *Image
	file  []byte
	at    int64 // bytes read
}

func (w *walk) run(segments int) error {
	w.at = headerSize
	sum := byte(0xEF)
	for n := range segments {
		data, err := w.segment(n)
		if err != nil {
			return err
		}
		for _, c := range data {
			sum ^= c
		}
	}
	padding, err := w.read(16-w.at%16, "checksum") // the last byte is the checksum
	if err != nil {
		return err
	}
	if got := padding[len(padding)-1]; got != sum {
		return refuse(BadChecksum, "the image's checksum is %#02x, and its data give %#02x; the file is damaged", got, sum)
	}
	if w.image.Hashed {
		want := sha256.Sum256(w.file[:w.at])
		got, err := w.read(sha256.Size, "SHA-256")
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want[:]) {
			return refuse(BadHash, "the SHA-256 at the end of the image is not that of its data; the file is damaged")
		}
	}
	w.image.Length = w.at
	w.image.SHA256 = sha256.Sum256(w.file)
	// A robot writes what follows the image to its flash and ignores it. A signature
	// block of secure boot v2 begins at the next sector.
	left, gap := w.image.Size-w.at, (sectorSize-w.at%sectorSize)%sectorSize
	if w.image.Signed = left == gap+sectorSize && w.file[w.at+gap] == signatureMagic; !w.image.Signed {
		w.image.Trailing = left
	}
	return nil
}

const (
	sectorSize     = 4096
	signatureMagic = 0xE7
)

// read returns the next bytes of the file. what names that part of the image for errors.
func (w *walk) read(n int64, what string) ([]byte, error) {
	if n > w.image.Size-w.at {
		return nil, refuse(Truncated, "the file ends after %d bytes, within the image's %s; it was not copied whole", w.image.Size, what)
	}
	w.at += n
	return w.file[w.at-n : w.at], nil
}

// segment returns the data of the next segment.
func (w *walk) segment(n int) ([]byte, error) {
	what := fmt.Sprintf("segment %d", n)
	b, err := w.read(segmentSize, what)
	if err != nil {
		return nil, err
	}
	s := Segment{Address: binary.LittleEndian.Uint32(b), Length: binary.LittleEndian.Uint32(b[4:]), Offset: w.at}
	w.image.Segments = append(w.image.Segments, s)
	switch {
	case s.Length%4 != 0 || s.Length >= MaxSize:
		return nil, refuse(BadSegment, "segment %d claims %d bytes; a boot loader takes multiples of 4 under 16 MB", n, s.Length)
	case w.image.Chip.maps(s.Address) && uint32(s.Offset%mmuPage) != s.Address%mmuPage:
		return nil, refuse(BadSegment,
			"segment %d is to be mapped to %#x, which does not fit its place %#x in the file; it is linked for another chip or offset", n, s.Address,
			s.Offset)
	case n == 0 && s.Length < descSize:
		return nil, refuse(BadSegment, "segment 0 has %d bytes, and the description of the application alone takes %d", s.Length, descSize)
	}
	return w.read(int64(s.Length), what)
}

// readApp parses esp_app_desc_t.
func readApp(b []byte) App {
	return App{
		Version: text(b[16:48]), Project: text(b[48:80]),
		Time: text(b[80:96]), Date: text(b[96:112]), IDF: text(b[112:144]), ELF: [32]byte(b[144:176]),
	}
}

// text returns a C string without control characters, for logs and terminals.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return plain.Text(string(b))
}
