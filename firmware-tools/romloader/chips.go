package romloader

import (
	"context"
	"slices"

	"perch/ota/espimage"
)

// model is what differs between chips. Addresses are from their reference manuals.
type model struct {
	chip       espimage.Chip
	bootLoader int64  // address of its boot loader in the flash
	magic      uint32 // at magicAddress; 0 for chips that report their number
	spi        spiRegisters
	efuse      uint32 // base address
	watchdogs  watchdogs
	revision   func(ctx context.Context, r *registers) int // major * 100 + minor
}

// spiRegisters are the registers of the flash controller.
type spiRegisters struct{ cmd, usr, usr2, miso, w0 uint32 }

// watchdogs are the registers of the two watchdogs that go on while the chip's own
// USB is its serial line. They would restart it during a write.
type watchdogs struct {
	config, protect, key                uint32
	swdConfig, swdProtect, swdKey, feed uint32 // feed is the bit that feeds it
}

const (
	magicAddress = 0x40001000
	watchdogKey  = 0x50D83AA1
	block1       = 0x44 // offset in the eFuses of all chips but the ESP32
	block2       = 0x5C
)

// models returns the supported chips. Similar loaders of others were not checked.
func models() []model {
	newer := func(base uint32) spiRegisters {
		return spiRegisters{base, base + 0x18, base + 0x20, base + 0x28, base + 0x58}
	}
	lp := func(base uint32) watchdogs {
		return watchdogs{base, base + 0x18, watchdogKey, base + 0x1C, base + 0x20, watchdogKey, 1 << 18}
	}
	rtc := func(config, protect, swdConfig, swdProtect uint32) watchdogs {
		return watchdogs{0x60008000 + config, 0x60008000 + protect, watchdogKey, 0x60008000 + swdConfig, 0x60008000 + swdProtect, 0x8F1D312A, 1 << 31}
	}
	return []model{
		{0, 0x1000, 0x00F01D83, spiRegisters{0x3FF42000, 0x3FF4201C, 0x3FF42024, 0x3FF4202C, 0x3FF42080}, 0x3FF5A000, watchdogs{}, revisionESP32},
		{2, 0x1000, 0x000007C6, newer(0x3F402000), 0x3F41A000, watchdogs{}, revisionS2},
		{5, 0, 0, newer(0x60002000), 0x60008800, rtc(0x90, 0xA8, 0xAC, 0xB0), revisionC3},
		{9, 0, 0, newer(0x60002000), 0x60007000, rtc(0x98, 0xB0, 0xB4, 0xB8), revisionS3},
		{13, 0, 0, newer(0x60003000), 0x600B0800, lp(0x600B1C00), revisionC6},
		{18, 0x2000, 0, newer(0x5008D000), 0x5012D000, lp(0x50116000), revisionP4},
	}
}

func findModel(is func(m model) bool) (model, bool) {
	all := models()
	n := slices.IndexFunc(all, is)
	if n < 0 {
		return model{}, false
	}
	return all[n], true
}

// registers reads registers until the first error.
type registers struct {
	loader *Loader
	base   uint32 // of the chip's eFuses
	err    error
}

func (r *registers) at(ctx context.Context, address uint32) uint32 {
	if r.err != nil {
		return 0
	}
	value, err := r.loader.readRegister(ctx, address)
	r.err = err
	return value
}

// word returns a word of an eFuse block.
func (r *registers) word(ctx context.Context, block uint32, n uint32) uint32 {
	return r.at(ctx, r.base+block+4*n)
}

func revisionESP32(ctx context.Context, r *registers) int {
	w3, w5 := r.word(ctx, 0, 3), r.word(ctx, 0, 5)
	const date = 0x3FF6607C // of the system controller
	major := map[uint32]int{1: 1, 3: 2, 7: 3}[r.at(ctx, date)>>31<<2|w5>>20&1<<1|w3>>15&1]
	return major*100 + int(w5>>24&3)
}

func revisionS2(ctx context.Context, r *registers) int {
	w3, w4 := r.word(ctx, block1, 3), r.word(ctx, block1, 4)
	return int(w3>>18&3)*100 + int(w3>>20&1<<3+w4>>4&7)
}

func revisionC3(ctx context.Context, r *registers) int {
	w3, w5 := r.word(ctx, block1, 3), r.word(ctx, block1, 5)
	return int(w5>>24&3)*100 + int(w5>>23&1<<3+w3>>18&7)
}

// revisionS3 recognizes the first chips, which use these fields otherwise.
func revisionS3(ctx context.Context, r *registers) int {
	w3 := r.word(ctx, block1, 3)
	if w3>>18&7 == 0 && w3>>24&7 == 1 && r.word(ctx, block2, 4)&3 == 1 {
		return 0
	}
	return revisionC3(ctx, r)
}

func revisionC6(ctx context.Context, r *registers) int {
	w3 := r.word(ctx, block1, 3)
	return int(w3>>22&3)*100 + int(w3>>18&15)
}

func revisionP4(ctx context.Context, r *registers) int {
	w2 := r.word(ctx, block1, 2)
	return int(w2>>23&1<<2|w2>>4&3)*100 + int(w2&15)
}
