package espimage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"perch/plain"
)

// appReader reads an application after its header.
type appReader struct {
	image *Image // receives what is read
	file  []byte // the whole file
	at    int64  // number of bytes read
}

// run reads the given number of segments and the parts after them, and checks the application.
func (r *appReader) run(segments int) error {
	r.at = headerSize
	sum := byte(0xEF) // initial value of the checksum
	for n := range segments {
		data, err := r.segment(n)
		if err != nil {
			return err
		}
		for _, c := range data {
			sum ^= c
		}
	}
	padding, err := r.read(16-r.at%16, "checksum") // padding up to a multiple of 16 bytes; the last byte is the checksum
	if err != nil {
		return err
	}
	if got := padding[len(padding)-1]; got != sum {
		return refuse(BadChecksum, "the image's checksum is %#02x, and its data give %#02x; the file is damaged", got, sum)
	}
	if r.image.Hashed {
		want := sha256.Sum256(r.file[:r.at])
		got, err := r.read(sha256.Size, "SHA-256")
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want[:]) {
			return refuse(BadHash, "the SHA-256 at the end of the image is not that of its data; the file is damaged")
		}
	}
	r.image.Length = r.at
	r.image.SHA256 = sha256.Sum256(r.file)
	// A signature block of secure boot v2 is one sector long and begins at the next sector.
	// A robot ignores any other bytes after the image.
	rest, gap := r.image.Size-r.at, (sectorSize-r.at%sectorSize)%sectorSize
	if r.image.Signed = rest == gap+sectorSize && r.file[r.at+gap] == signatureMagic; !r.image.Signed {
		r.image.Trailing = rest
	}
	return nil
}

const (
	sectorSize     = 4096 // bytes
	signatureMagic = 0xE7 // first byte of a signature block
)

// read returns the next n bytes of the file. part names these bytes in errors.
func (r *appReader) read(n int64, part string) ([]byte, error) {
	if n > r.image.Size-r.at {
		return nil, refuse(Truncated, "the file ends after %d bytes, within the image's %s; it was not copied completely", r.image.Size, part)
	}
	r.at += n
	return r.file[r.at-n : r.at], nil
}

// segment reads and checks the next segment, which has the number n, and returns its data.
func (r *appReader) segment(n int) ([]byte, error) {
	part := fmt.Sprintf("segment %d", n)
	b, err := r.read(segmentSize, part)
	if err != nil {
		return nil, err
	}
	s := Segment{Address: binary.LittleEndian.Uint32(b), Length: binary.LittleEndian.Uint32(b[4:]), Offset: r.at}
	r.image.Segments = append(r.image.Segments, s)
	switch {
	case s.Length%4 != 0 || s.Length >= MaxSize:
		return nil, refuse(BadSegment, "segment %d has a length of %d bytes; a boot loader accepts multiples of 4 under 16 MB", n, s.Length)
	case r.image.Chip.isMapped(s.Address) && uint32(s.Offset%mmuPage) != s.Address%mmuPage:
		return nil, refuse(BadSegment,
			"segment %d is to be mapped to %#x, which does not fit its place %#x in the file; it is linked for another chip or offset", n, s.Address,
			s.Offset)
	case n == 0 && s.Length < descSize:
		return nil, refuse(BadSegment, "segment 0 has %d bytes, and the description of the application alone takes %d", s.Length, descSize)
	}
	return r.read(int64(s.Length), part)
}

// parseApp parses the description of an application, an esp_app_desc_t.
func parseApp(b []byte) App {
	return App{
		Version: text(b[16:48]), Project: text(b[48:80]),
		Time: text(b[80:96]), Date: text(b[96:112]), IDF: text(b[112:144]), ELF: [32]byte(b[144:176]),
	}
}

// text returns the text of a C string, without control characters.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return plain.Text(string(b))
}
