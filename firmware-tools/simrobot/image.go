package simrobot

import (
	"crypto/sha256"
	"encoding/binary"
)

// Image returns a firmware image that passes the checks of a Stack-chan's boot loader and of
// an appliance. It is an application for the ESP32-S3 in the format of ESP-IDF's
// esp_image_format.h. The image has one segment of size bytes (at least 256), which contains the
// description of the application, and zeros.
func Image(version string, size int) []byte {
	const header, segment, description = 24, 8, 256
	out := make([]byte, header+segment+max(description, size), size+1024)
	copy(out, []byte{0xE9, 1, 2, 0x4F, 12: 9, 23: 1}) // magic byte, one segment, flash mode and size, chip ESP32-S3, has a SHA-256
	binary.LittleEndian.PutUint32(out[24:], 0x3C000020)
	binary.LittleEndian.PutUint32(out[28:], uint32(len(out)-header-segment))
	binary.LittleEndian.PutUint32(out[32:], 0xABCD5432)
	copy(out[48:80], version)
	copy(out[80:], "stack-chan")
	elf := sha256.Sum256([]byte(version))
	copy(out[176:], elf[:])
	return Seal(out)
}

// Seal completes an image: it appends padding, the checksum and the SHA-256 to out, which contains the
// header and the segment.
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
