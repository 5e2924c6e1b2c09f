package simrobot

import (
	"bytes"
	"crypto/md5" // the format requires it
	"crypto/sha256"
	"encoding/binary"
)

// Flash returns the factory's flash of a robot with 4 MB: a boot loader for
// the ESP32-S3 (number 9) or another chip, a partition table as xiaozhi's are
// but smaller, and an application in its first slot. Its partitions are nvs at
// 0x9000, otadata at 0xD000, phy_init at 0xF000, ota_0 at 0x20000, ota_1 at
// 0x120000 (1 MB each) and assets at 0x220000 (512 kB).
func Flash(app []byte) []byte {
	out := bytes.Repeat([]byte{0xFF}, 4<<20)
	copy(out, []byte{0xE9, 3, 2, 0x2F, 0x1C, 0x5A, 0x37, 0x40, 0xEE, 0, 0, 0, 9, 0, 0, 0, 0, 0xFF, 0xFF})
	copy(out[0x8000:], PartitionTable())
	copy(out[0x20000:], app)
	return out
}

// PartitionTable returns the table of Flash, as ESP-IDF's gen_esp32part.py does.
func PartitionTable() []byte {
	var out []byte
	for _, p := range []struct {
		name          string
		kind, subtype byte
		at, size      uint32
	}{
		{"nvs", 1, 2, 0x9000, 0x4000}, {"otadata", 1, 0, 0xD000, 0x2000}, {"phy_init", 1, 1, 0xF000, 0x1000},
		{"ota_0", 0, 0x10, 0x20000, 0x100000}, {"ota_1", 0, 0x11, 0x120000, 0x100000}, {"assets", 1, 0x82, 0x220000, 0x80000},
	} {
		entry := append(make([]byte, 0, 32), 0xAA, 0x50, p.kind, p.subtype)
		entry = binary.LittleEndian.AppendUint32(entry, p.at)
		entry = binary.LittleEndian.AppendUint32(entry, p.size)
		entry = append(entry, p.name...)
		out = append(out, entry[:32]...)
	}
	sum := md5.Sum(out)
	out = append(append(out, 0xEB, 0xEB), bytes.Repeat([]byte{0xFF}, 14)...)
	out = append(out, sum[:]...)
	return append(out, bytes.Repeat([]byte{0xFF}, 0xC00-len(out))...)
}

// Image returns a firmware that a Stack-chan boots, by the checks of its boot
// loader and of a server: an application for the ESP32-S3 with its description,
// size zero bytes, and the final checksum and hash (ESP-IDF's
// esp_image_format.h).
func Image(version string, size int) []byte {
	const header, segment, description = 24, 8, 256
	out := make([]byte, header+segment+max(description, size), size+1024)
	copy(out, []byte{0xE9, 1, 2, 0x4F, 12: 9, 23: 1})
	binary.LittleEndian.PutUint32(out[24:], 0x3C000020)
	binary.LittleEndian.PutUint32(out[28:], uint32(len(out)-header-segment))
	binary.LittleEndian.PutUint32(out[32:], 0xABCD5432)
	copy(out[48:80], version)
	copy(out[80:], "stack-chan")
	elf := sha256.Sum256([]byte(version))
	copy(out[176:], elf[:])
	return Seal(out)
}

// Seal ends an image's header and segments with its checksum and hash.
func Seal(out []byte) []byte {
	sum := byte(0xEF)
	for _, c := range out[32:] {
		sum ^= c
	}
	for len(out)%16 != 15 {
		out = append(out, 0)
	}
	out = append(out, sum)
	digest := sha256.Sum256(out)
	return append(out, digest[:]...)
}
