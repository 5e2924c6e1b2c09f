package espimage

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Chip is the number of an ESP chip in image headers and reports. The ESP32 is 0.
type Chip uint16

// NoChip is an unknown chip.
const NoChip Chip = 0xFFFF

// named is a chip's name in ESP-IDF, and the address ranges of its mapped flash.
type named struct {
	name string
	maps []span
}

// span is a range of addresses; its end is exclusive.
type span struct{ from, to uint32 }

// chips returns the chips of esptool. The ranges are SOC_IROM and SOC_DROM of soc.h.
var chips = sync.OnceValue(func() map[Chip]named {
	return map[Chip]named{
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

// ParseChip returns a chip by its name in ESP-IDF, such as "esp32s3".
func ParseChip(name string) (Chip, bool) {
	for chip, c := range chips() {
		if c.name == name {
			return chip, true
		}
	}
	return NoChip, false
}

func (c Chip) String() string {
	return cmp.Or(chips()[c].name, fmt.Sprintf("chip %d", uint16(c)))
}

// maps reports whether a segment at that address is mapped from flash.
func (c Chip) maps(address uint32) bool {
	return slices.ContainsFunc(chips()[c].maps, func(s span) bool { return address >= s.from && address < s.to })
}
