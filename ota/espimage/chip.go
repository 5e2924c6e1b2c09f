package espimage

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Chip identifies a model of ESP chips by its number in image headers. The zero Chip is the
// ESP32.
type Chip uint16

// NoChip means that the chip is unknown.
const NoChip Chip = 0xFFFF

// chipInfo describes a chip.
type chipInfo struct {
	name   string // name in ESP-IDF
	mapped []span // addresses that flash is mapped to; nil if unknown to this package
}

// span is a range of addresses, which includes the address from and ends before the address to.
type span struct{ from, to uint32 }

// chips returns the chips that esptool supports. The spans are SOC_IROM and SOC_DROM in soc.h.
var chips = sync.OnceValue(func() map[Chip]chipInfo {
	return map[Chip]chipInfo{
		0:  {"esp32", []span{{0x400D0000, 0x40400000}, {0x3F400000, 0x3F800000}}},
		2:  {"esp32s2", nil},
		5:  {"esp32c3", []span{{0x42000000, 0x42800000}, {0x3C000000, 0x3C800000}}},
		9:  {"esp32s3", []span{{0x42000000, 0x44000000}, {0x3C000000, 0x3E000000}}},
		12: {"esp32c2", nil},
		13: {"esp32c6", nil},
		16: {"esp32h2", nil},
		18: {"esp32p4", nil},
		20: {"esp32c61", nil},
		23: {"esp32c5", nil},
		25: {"esp32h21", nil},
		28: {"esp32h4", nil},
		31: {"esp32e22", nil},
		32: {"esp32s31", nil},
	}
})

// ParseChip returns the chip with a name in ESP-IDF, such as "esp32s3". ok is false for an
// unknown name.
func ParseChip(name string) (c Chip, ok bool) {
	for chip, info := range chips() {
		if info.name == name {
			return chip, true
		}
	}
	return NoChip, false
}

// String returns the chip's name in ESP-IDF, or "chip N".
func (c Chip) String() string {
	return cmp.Or(chips()[c].name, fmt.Sprintf("chip %d", uint16(c)))
}

// isMapped reports whether flash is mapped to an address. It returns false if the addresses of
// the chip are unknown.
func (c Chip) isMapped(address uint32) bool {
	return slices.ContainsFunc(chips()[c].mapped, func(s span) bool { return address >= s.from && address < s.to })
}
