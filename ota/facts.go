package ota

import (
	"cmp"
	"encoding/json"
	"strings"

	"perch/ota/espimage"
)

// Facts are a robot's report of its chip and flash, which an image has to fit.
type Facts struct {
	Chip     espimage.Chip `json:"chip"`
	Revision int           `json:"revision"`
	Slot     int64         `json:"slot"`             // bytes of its smallest partition for updates; 0 if not reported
	Fixed    bool          `json:"fixed,omitempty"`  // it reports partitions, but none for updates
	Assets   int64         `json:"assets,omitempty"` // bytes of its partition for fonts, wake words and faces; 0 if not reported
}

// parseFacts parses the facts in a check-in's body, and the SHA-256 of the running build's
// ELF file. They are parsed separately from the names, which are then still read if the
// facts have an unknown form.
func parseFacts(text []byte) (f *Facts, elf string) {
	var t struct {
		Chip     string `json:"chip_model_name"`
		ChipInfo struct {
			Revision *int `json:"revision"`
		} `json:"chip_info"`
		Application struct {
			ELF string `json:"elf_sha256"`
		} `json:"application"`
		Partitions []struct {
			Label   any   `json:"label"`
			Type    int   `json:"type"`
			Subtype int   `json:"subtype"`
			Size    int64 `json:"size"`
		} `json:"partition_table"`
	}
	if json.Unmarshal(text, &t) != nil {
		return nil, ""
	}
	if isHash(t.Application.ELF) {
		elf = t.Application.ELF
	}
	chip, known := espimage.ParseChip(t.Chip)
	if !known {
		return nil, elf
	}
	f = &Facts{Chip: chip, Revision: -1, Fixed: len(t.Partitions) > 0}
	if t.ChipInfo.Revision != nil {
		f.Revision = max(*t.ChipInfo.Revision, -1)
	}
	for _, p := range t.Partitions {
		isApp := p.Type == espimage.AppPartition
		if !isApp && p.Label == "assets" {
			f.Assets = max(p.Size, 0)
		}
		if isApp && p.Subtype >= espimage.FirstSlot && p.Subtype <= espimage.LastSlot && p.Size > 0 {
			f.Fixed, f.Slot = false, min(p.Size, cmp.Or(f.Slot, p.Size))
		}
	}
	return f, elf
}

// isHash reports whether s is a SHA-256 as this package writes it.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
