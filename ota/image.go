package ota

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"perch/device"
	"perch/ota/espimage"
)

// Image is a firmware image in the catalogue.
type Image struct {
	SHA256  string    `json:"sha256"` // of the file, in hex; its name
	Size    int64     `json:"size"`   // of the file, in bytes
	Boards  []string  `json:"boards"` // declared by the owner; the image itself does not say
	Chip    string    `json:"chip"`
	Project string    `json:"project"`
	Version string    `json:"version"`
	Built   string    `json:"built"`
	IDF     string    `json:"idf"`
	ELF     string    `json:"elf_sha256"`
	Length  int64     `json:"length"` // of what a boot loader reads
	MinRev  int       `json:"min_revision"`
	Added   time.Time `json:"added"`
	Signed  bool      `json:"signed"` // by the configured key
}

// Record is an image and its rollout, as stored.
type Record struct {
	Image
	Rollout Rollout     `json:"rollout"`
	Stopped string      `json:"stopped,omitempty"` // why the rollout stopped
	First   []device.ID `json:"first,omitempty"`   // the first robots it was offered to
	Failed  int         `json:"failed,omitempty"`  // of First, when it stopped

	damage error // of the file, as far as it was read; not stored
}

// A rollout stops if this many of its first robots fail.
const (
	firstRobots   = 5
	firstFailures = 2
)

func (i Image) declared(board string) bool { return board != "" && slices.Contains(i.Boards, board) }

// fits returns why a robot would not run the image, or nil.
func (i Image) fits(t espimage.Target) error {
	chip, known := espimage.ParseChip(i.Chip)
	if !known {
		return fmt.Errorf("no robot has the chip %q", i.Chip)
	}
	return espimage.Image{Chip: chip, MinRevision: i.MinRev, Length: i.Length}.Fits(t)
}

// newImage returns the catalogue entry of a file that was read.
func newImage(i espimage.Image, boards []string, at time.Time) Image {
	return Image{
		SHA256: hex.EncodeToString(i.SHA256[:]), Size: i.Size, Length: i.Length, Boards: boards,
		Chip: i.Chip.String(), MinRev: i.MinRevision, Project: i.App.Project, Version: i.App.Version,
		Built: i.App.Date + " " + i.App.Time, IDF: i.App.IDF, ELF: hex.EncodeToString(i.App.ELF[:]), Added: at,
	}
}

// check refuses images that a boot loader accepts but that would harm a robot.
func (i Image) check() error {
	if _, known := espimage.ParseChip(i.Chip); !known {
		return &fault{"wrong_chip", http.StatusUnprocessableEntity, fmt.Errorf("the image is built for a chip that no robot has: %s", i.Chip)}
	}
	if i.Version == "" {
		return &fault{"bad_version", http.StatusUnprocessableEntity, errors.New("the image has no version; PROJECT_VER of its build sets it")}
	}
	if _, err := parseVersion(i.Version); err != nil {
		return &fault{"bad_version", http.StatusUnprocessableEntity, err}
	}
	return nil
}

// checkUnits compares an image with the known robots of its boards: if none of them could
// run it, the board is wrong. A robot that differs from the others of its board is skipped
// when the image is offered.
func (i Image) checkUnits(units map[device.ID]Unit) error {
	var wrong error
	for id, u := range units {
		if !i.declared(u.Board) || !u.Reported {
			continue
		}
		err := i.fits(u.target())
		if err == nil {
			return nil
		}
		wrong = &fault{"wrong_board", http.StatusUnprocessableEntity, fmt.Errorf("the image is not for the board %s: %v (robot %s)", u.Board, err,
			id)}
	}
	return wrong
}

// newestFirst sorts images by version, as robots compare it.
func newestFirst(a, b Record) int {
	av, _ := parseVersion(a.Version) // check has refused versions that cannot be compared
	bv, _ := parseVersion(b.Version)
	return cmp.Or(slices.Compare(bv, av), b.Added.Compare(a.Added), cmp.Compare(a.SHA256, b.SHA256))
}

// checkBoards checks the boards that an owner declared.
func checkBoards(boards []string) error {
	if len(boards) == 0 || len(boards) > mostBoards || slices.ContainsFunc(boards, func(b string) bool { return b == "" || clip(b) != b }) {
		return &fault{"bad_board", http.StatusBadRequest,
			errors.New("the board that the image is for must be named, as in perch robot list: an image itself does not tell, and on another board it would not run")}
	}
	return nil
}
