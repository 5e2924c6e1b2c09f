package espimage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode"
)

// walk goes through an application from its first byte to its last, once.
type walk struct {
	image *Image
	in    io.Reader
	at    int64     // bytes read
	sum   byte      // of the segments' data
	hash  hash.Hash // of the image
	file  hash.Hash // of the file
}

func (w *walk) run(segments int) error {
	if _, err := w.take(headerSize, "header"); err != nil {
		return err
	}
	for n := range segments {
		if err := w.segment(n); err != nil {
			return err
		}
	}
	if err := w.checksum(); err != nil {
		return err
	}
	if err := w.digest(); err != nil {
		return err
	}
	w.image.Length = w.at
	return w.rest()
}

// take reads and hashes that many bytes, a few.
func (w *walk) take(n int, what string) ([]byte, error) {
	b := make([]byte, n)
	if err := w.full(b, what); err != nil {
		return nil, err
	}
	w.hash.Write(b)
	return b, nil
}

func (w *walk) full(b []byte, what string) error {
	n, err := io.ReadFull(w.in, b)
	w.at += int64(n)
	w.file.Write(b[:n])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(Truncated, "the file ends after %d bytes, within the image's %s; it was not copied whole", w.image.Size, what)
	case err != nil:
		return fmt.Errorf("read the image: %w", err)
	}
	return nil
}

func (w *walk) segment(n int) error {
	what := fmt.Sprintf("segment %d", n)
	b, err := w.take(segmentSize, what)
	if err != nil {
		return err
	}
	s := Segment{Address: binary.LittleEndian.Uint32(b), Length: binary.LittleEndian.Uint32(b[4:]), Offset: w.at}
	w.image.Segments = append(w.image.Segments, s)
	switch {
	case s.Length%4 != 0 || s.Length >= MaxSize:
		return refuse(BadSegment, "segment %d claims %d bytes; a boot loader takes multiples of 4 under 16 MB", n, s.Length)
	case w.image.Chip.maps(s.Address) && uint32(s.Offset%mmuPage) != s.Address%mmuPage:
		return refuse(BadSegment,
			"segment %d is to be mapped to %#x, which does not fit its place %#x in the file; it is linked for another chip or offset", n, s.Address,
			s.Offset)
	case n == 0 && s.Length < descSize:
		return refuse(BadSegment, "segment 0 has %d bytes, and the description of the application alone takes %d", s.Length, descSize)
	}
	return w.data(int64(s.Length), what)
}

// data hashes and sums a segment, a piece at a time.
func (w *walk) data(left int64, what string) error {
	piece := make([]byte, min(left, 32<<10))
	for left > 0 {
		b := piece[:min(left, int64(len(piece)))]
		if err := w.full(b, what); err != nil {
			return err
		}
		w.hash.Write(b)
		for _, c := range b {
			w.sum ^= c
		}
		left -= int64(len(b))
	}
	return nil
}

// checksum reads the padding, of which the checksum is the last byte.
func (w *walk) checksum() error {
	b, err := w.take(16-int(w.at%16), "checksum")
	if err != nil {
		return err
	}
	if got := b[len(b)-1]; got != w.sum {
		return refuse(BadChecksum, "the image's checksum is %#02x, and its data give %#02x; the file is damaged", got, w.sum)
	}
	return nil
}

func (w *walk) digest() error {
	if !w.image.Hashed {
		return nil
	}
	want := w.hash.Sum(nil)
	got := make([]byte, sha256.Size)
	if err := w.full(got, "SHA-256"); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return refuse(BadHash, "the SHA-256 at the end of the image is not that of its data; the file is damaged")
	}
	return nil
}

// A signature block of secure boot v2 begins at the next sector with this byte.
const (
	sectorSize     = 4096
	signatureMagic = 0xE7
)

// rest reads what follows the image: a robot writes it to its flash and ignores it.
func (w *walk) rest() error {
	var first [1]byte
	gap := (sectorSize - w.at%sectorSize) % sectorSize
	left := w.image.Size - w.at
	if left == gap+sectorSize {
		if err := w.skip(gap); err != nil {
			return err
		}
		if err := w.full(first[:], "signature"); err != nil {
			return err
		}
		w.image.Signed = first[0] == signatureMagic
	}
	if !w.image.Signed {
		w.image.Trailing = left
	}
	if err := w.skip(w.image.Size - w.at); err != nil {
		return err
	}
	w.file.Sum(w.image.SHA256[:0])
	return nil
}

func (w *walk) skip(n int64) error {
	n, err := io.CopyN(w.file, w.in, n)
	w.at += n
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	return nil
}

// readApp reads esp_app_desc_t.
func readApp(b []byte) App {
	return App{
		Version: text(b[16:48]), Project: text(b[48:80]),
		Time: text(b[80:96]), Date: text(b[96:112]), IDF: text(b[112:144]), ELF: [32]byte(b[144:176]),
	}
}

// text returns a C string without control characters, for logs and terminals.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(b))
}
