package ota

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"

	"perch/device"
	"perch/ota/espimage"
)

// Image is a firmware image in the catalogue.
type Image struct {
	SHA256  string    `json:"sha256"` // of the file, in hex; also the file's name
	Size    int64     `json:"size"`   // of the file, in bytes
	Boards  []string  `json:"boards"` // boards that the image is for, as the owner has declared
	Chip    string    `json:"chip"`
	Project string    `json:"project"`
	Version string    `json:"version"`
	Built   string    `json:"built"`        // date and time of the build
	IDF     string    `json:"idf"`          // version of ESP-IDF
	ELF     string    `json:"elf_sha256"`   // SHA-256 of the build's ELF file
	Length  int64     `json:"length"`       // number of bytes that a boot loader reads
	MinRev  int       `json:"min_revision"` // lowest revision of the chip: major * 100 + minor
	Added   time.Time `json:"added"`
	Signed  bool      `json:"signed"` // whether the image was added with a signature by the configured key
}

// Record is an image and its rollout, as stored.
type Record struct {
	Image
	Rollout Rollout     `json:"rollout"`
	Stopped string      `json:"stopped,omitempty"` // why the rollout has stopped; empty if it has not
	First   []device.ID `json:"first,omitempty"`   // the first robots that the image was offered to since its rollout was last set, other than to pause or resume it; at most maxFirst
	Failed  int         `json:"failed,omitempty"`  // how many robots in First counted as failed when the rollout stopped

	damage error // what is wrong with the file, or why the image cannot be offered now; nil if nothing is known; not stored
}

// A rollout stops if the image fails on maxFirstFailures of the first maxFirst robots.
const (
	maxFirst         = 5
	maxFirstFailures = 2
)

// isDeclaredFor reports whether the owner has declared the image for a board.
func (i Image) isDeclaredFor(board string) bool {
	return board != "" && slices.Contains(i.Boards, board)
}

// checkTarget returns an error if a robot could not run the image.
func (i Image) checkTarget(t espimage.Target) error {
	chip, ok := espimage.ParseChip(i.Chip)
	if !ok {
		return fmt.Errorf("no robot has the chip %q", i.Chip)
	}
	return espimage.Image{Chip: chip, MinRevision: i.MinRev, Length: i.Length}.Fits(t)
}

// newImage returns the catalogue entry for an image that the owner has declared for boards.
func newImage(i espimage.Image, boards []string, at time.Time) Image {
	return Image{
		SHA256: hex.EncodeToString(i.SHA256[:]), Size: i.Size, Length: i.Length, Boards: boards,
		Chip: i.Chip.String(), MinRev: i.MinRevision, Project: i.App.Project, Version: i.App.Version,
		Built: i.App.Date + " " + i.App.Time, IDF: i.App.IDF, ELF: hex.EncodeToString(i.App.ELF[:]), Added: at,
	}
}

// check returns a *httpserver.Fault if the image's chip is unknown, or if its version is empty or one that robots
// cannot compare, which may make the firmware abort at every boot.
func (i Image) check() error {
	if _, ok := espimage.ParseChip(i.Chip); !ok {
		return refuse("wrong_chip", http.StatusUnprocessableEntity, "the image is built for a chip that no robot has: %s", i.Chip)
	}
	if i.Version == "" {
		return refuse("bad_version", http.StatusUnprocessableEntity, "the image has no version; set PROJECT_VER in its build")
	}
	if _, err := parseVersion(i.Version); err != nil {
		return refuse("bad_version", http.StatusUnprocessableEntity, "%w", err)
	}
	return nil
}

// checkUnits returns a *httpserver.Fault if there are robots of the image's boards that have reported their
// facts, and none of them could run the image: then the declared board is probably wrong. If only some of them could
// not, checkUnits returns nil, but the image is never offered to these robots.
func (i Image) checkUnits(units map[device.ID]Unit) error {
	var lastErr error
	for id, u := range units {
		if !i.isDeclaredFor(u.Board) || !u.Reported {
			continue
		}
		err := i.checkTarget(u.target())
		if err == nil {
			return nil
		}
		lastErr = refuse("wrong_board", http.StatusUnprocessableEntity, "the image is not for the board %s: %v (robot %s)", u.Board, err,
			id)
	}
	return lastErr
}

// newestFirst compares images by version, as robots do. Of two images with the same version, the
// image that was added later comes first.
func newestFirst(a, b Record) int {
	av, _ := parseVersion(a.Version) // check has verified that the versions are valid
	bv, _ := parseVersion(b.Version)
	return cmp.Or(slices.Compare(bv, av), b.Added.Compare(a.Added), cmp.Compare(a.SHA256, b.SHA256))
}

// checkBoards returns a *httpserver.Fault if the boards that an owner has declared are not 1 to maxBoards
// valid names.
func checkBoards(boards []string) error {
	if len(boards) > maxBoards {
		return refuse("bad_board", http.StatusBadRequest, "an image is for at most %d boards, not for %d", maxBoards, len(boards))
	}
	if len(boards) == 0 || slices.ContainsFunc(boards, func(b string) bool { return b == "" || clip(b) != b }) {
		return refuse("bad_board", http.StatusBadRequest,
			"name the board that the image is for, as in perch robot list: the image itself does not name it, and does not run on other boards")
	}
	return nil
}
