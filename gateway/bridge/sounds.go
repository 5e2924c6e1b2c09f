package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/httpserver"
)

// sounds are what robots can play.
type sounds interface {
	// Names are base names, such as "purr" or "birthday.wav".
	Names() []string
	// Play begins to play one on a robot. It wraps fs.ErrNotExist where there is
	// none of that name; other errors have codes of their own.
	Play(ctx context.Context, id device.ID, name string) error
}

// mostAsset bounds what a client calls a sound, in bytes.
const mostAsset = 1024

// errOutside is the answer to a file that is not one of the sounds.
var errOutside error = &httpserver.Fault{Word: "outside_roots", HTTP: http.StatusForbidden,
	Sentence: "only sounds in the directory that GET songs names as base can be played, by name or by path; sounds in folders below it cannot"}

// baseName is the name of the sound that a client means with a name or an
// absolute path. What lies outside of the root, or in a folder of it, is refused.
func baseName(asset, root string) (string, error) {
	switch {
	case asset == "":
		return "", httpserver.BadBody("asset is needed, the name of a sound")
	case len(asset) > mostAsset || strings.ContainsAny(asset, "\\\x00"):
		return "", errOutside
	}
	if !filepath.IsAbs(asset) {
		asset = filepath.Join(root, asset)
	}
	dir, name := filepath.Split(asset)
	if filepath.Clean(dir) != filepath.Clean(root) || name == "" || strings.HasPrefix(name, ".") {
		return "", errOutside
	}
	return name, nil
}

// play has a robot play a sound, and not over its own voice.
func (d *API) play(ctx context.Context, id device.ID, name string) error {
	if d.o.Board.Robot(id).At(d.now()) == agent.Speaking {
		return &httpserver.Fault{Word: "robot_speaking", Sentence: "the robot is speaking; wait, or abort it first", HTTP: http.StatusConflict}
	}
	err := d.o.Sounds.Play(ctx, id, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &httpserver.Fault{Word: "unknown_sound", Sentence: "there is no sound of that name; GET songs lists those there are",
			HTTP: http.StatusNotFound}
	}
	return err
}

// songs are the sounds there are, with the directory of files among them.
type songs struct {
	Base  string   `json:"base"`
	Files []string `json:"files"`
}

func (d *API) songs() songs {
	list := songs{d.o.Root, append([]string{}, d.o.Sounds.Names()...)} // none are a list too
	slices.Sort(list.Files)
	return list
}

// playSong plays what a model calls a song. Where there is none like it, the
// model is given the list, and can choose.
func (d *API) playSong(ctx context.Context, e escalation) (string, error) {
	wanted, err := needed("args.name", cmp.Or(e.Args.Name, e.Args.Query), mostAsset)
	if err != nil {
		return "", err
	}
	id, err := d.inTalk(e.SessionID)
	if err != nil {
		return "", err
	}
	all := d.songs().Files
	name, found := closest(wanted, all)
	switch {
	case !found && len(all) == 0:
		return "There are no songs.", nil
	case !found:
		return "There is no such song. There are: " + strings.Join(all, ", "), nil
	}
	if err := d.play(ctx, id, name); err != nil {
		return "", err
	}
	return fmt.Sprintf("Playing %s.", name), nil
}

// closest is the sound that a title means: of the same letters, or the first
// that holds them.
func closest(title string, names []string) (string, bool) {
	title = letters(title)
	if title == "" {
		return "", false
	}
	held := ""
	for _, name := range names {
		own := letters(strings.TrimSuffix(name, filepath.Ext(name)))
		if own == title || letters(name) == title {
			return name, true
		}
		if held == "" && strings.Contains(own, title) {
			held = name
		}
	}
	return held, held != ""
}

// letters are a text's letters and digits, in lower case.
func letters(text string) string { return strings.Join(fields(strings.ToLower(text)), "") }
