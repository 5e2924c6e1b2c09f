// Package espimagetest makes asset files for tests.
package espimagetest

import (
	"encoding/binary"
	"strings"
)

// Assets returns an asset file. The arguments are the name and the content of each file: name,
// content, name, content and so on.
func Assets(files ...string) []byte {
	var table, data []byte
	for i := 0; i < len(files); i += 2 {
		entry := make([]byte, 44)
		copy(entry, files[i])
		binary.LittleEndian.PutUint32(entry[32:], uint32(len(files[i+1])))
		binary.LittleEndian.PutUint32(entry[36:], uint32(len(data)))
		table, data = append(table, entry...), append(append(data, "ZZ"...), files[i+1]...)
	}
	return Sealed(len(files)/2, append(table, data...))
}

// Font returns an asset file with an index and a font of size bytes.
func Font(size int) []byte {
	return Assets("index.json", `{"version":1,"text_font":"font.bin"}`, "font.bin", strings.Repeat("f", size))
}

// Sealed returns an asset file with a header for count files. rest is the content after the
// header.
func Sealed(count int, rest []byte) []byte {
	sum := uint32(0)
	for _, b := range rest {
		sum += uint32(b)
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(count))
	head = binary.LittleEndian.AppendUint32(head, sum&0xFFFF)
	return append(binary.LittleEndian.AppendUint32(head, uint32(len(rest))), rest...)
}
