package ota

import (
	"encoding/json"

	"perch/ota/espimage"
)

// facts are what a robot reports of the flash that an image has to fit.
type facts struct {
	chip     espimage.Chip
	revision int
	slot     int64 // bytes of its smallest partition for updates; 0 is not reported
	fixed    bool  // its partitions are reported, and none is for updates
	assets   int64 // bytes of its partition for fonts, wake words and faces; 0 is not reported
}

// Partitions of applications that updates are written to: type, and the range
// of the subtype, ota_0 to ota_15.
const (
	typeApp  = 0
	firstOTA = 0x10
	lastOTA  = 0x1F
)

// parseFacts reads them from a check-in's body, and the ELF file's SHA-256 of
// what runs. They are read apart from the rest, so that a body that tells them
// in another form is still good for its names.
func parseFacts(text []byte) (f *facts, elf string) {
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
	f = &facts{chip: chip, revision: -1, fixed: len(t.Partitions) > 0}
	if t.ChipInfo.Revision != nil {
		f.revision = max(*t.ChipInfo.Revision, -1)
	}
	for _, p := range t.Partitions {
		if p.Type != typeApp && p.Label == "assets" {
			f.assets = max(p.Size, 0)
		}
		if p.Type != typeApp || p.Subtype < firstOTA || p.Subtype > lastOTA || p.Size <= 0 {
			continue
		}
		f.fixed = false
		if f.slot == 0 || p.Size < f.slot {
			f.slot = p.Size
		}
	}
	return f, elf
}

// isHash reports whether a text is a SHA-256 as this package writes it.
func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
