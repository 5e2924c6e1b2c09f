package ota

import (
	"cmp"
	"encoding/json"
	"strings"

	"perch/ota/espimage"
)

// Facts describe a robot's chip and flash, as the robot has reported them.
type Facts struct {
	Chip     espimage.Chip `json:"chip"`
	Revision int           `json:"revision"`         // major * 100 + minor; -1 if not reported
	Slot     int64         `json:"slot"`             // bytes of the smallest partition for updates; 0 if not reported
	Fixed    bool          `json:"fixed,omitempty"`  // whether the robot reports partitions, but none for updates
	Assets   int64         `json:"assets,omitempty"` // bytes of the partition for asset files (see Asset); 0 if not reported
}

// parseFacts parses the facts in the body of a check-in, and the SHA-256 of the running
// image's ELF file. f is nil if the body is invalid or names no known chip; elf is empty if the
// body has no valid hash. The fields of checkInBody are parsed separately, so that facts of an
// unknown form do not make those fields invalid.
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
	chip, ok := espimage.ParseChip(t.Chip)
	if !ok {
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

// isHash reports whether s is a SHA-256 in lower-case hex.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
