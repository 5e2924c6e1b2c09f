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

// sounds are the sounds that robots can play.
type sounds interface {
	// Names returns base names, such as "purr" or "birthday.wav".
	Names() []string
	// Play starts a sound on a robot. It wraps fs.ErrNotExist if the name is unknown; other
	// errors have a Code.
	Play(ctx context.Context, id device.ID, name string) error
}

// mostAsset bounds a client's name of a sound, in bytes.
const mostAsset = 1024

// errOutside refuses a file that is not one of the sounds.
var errOutside error = &httpserver.Fault{Word: "outside_roots", HTTP: http.StatusForbidden,
	Sentence: "only sounds in the directory that GET songs names as base can be played, by name or by path; sounds in folders below it cannot"}

// baseName returns the name of a sound from its name or absolute path. A file outside of
// root, or in a folder below it, is refused.
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

// play plays a sound on a robot, unless the robot is speaking.
func (a *API) play(ctx context.Context, id device.ID, name string) error {
	if a.o.Board.Robot(id).At(a.now()) == agent.Speaking {
		return &httpserver.Fault{Word: "robot_speaking", Sentence: "the robot is speaking; wait, or abort it first", HTTP: http.StatusConflict}
	}
	err := a.o.Sounds.Play(ctx, id, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &httpserver.Fault{Word: "unknown_sound", Sentence: "there is no sound of that name; GET songs lists those there are",
			HTTP: http.StatusNotFound}
	}
	return err
}

// songs lists the sounds. Base is the directory of the sound files.
type songs struct {
	Base  string   `json:"base"`
	Files []string `json:"files"`
}

func (a *API) songs() songs {
	list := songs{a.o.Root, append([]string{}, a.o.Sounds.Names()...)} // never null in JSON
	slices.Sort(list.Files)
	return list
}

// playSong plays the sound that a model names. If no sound is like it, the model is given the
// list to choose from.
func (a *API) playSong(ctx context.Context, e escalation) (string, error) {
	wanted, err := required("args.name", cmp.Or(e.Args.Name, e.Args.Query), mostAsset)
	if err != nil {
		return "", err
	}
	id, err := a.sessionRobot(e.SessionID)
	if err != nil {
		return "", err
	}
	all := a.songs().Files
	name, found := closest(wanted, all)
	switch {
	case !found && len(all) == 0:
		return "There are no songs.", nil
	case !found:
		return "There is no such song. There are: " + strings.Join(all, ", "), nil
	}
	if err := a.play(ctx, id, name); err != nil {
		return "", err
	}
	return fmt.Sprintf("Playing %s.", name), nil
}

// closest returns the sound with the same letters as a title, or else the first that contains
// them.
func closest(title string, names []string) (string, bool) {
	title = letters(title)
	if title == "" {
		return "", false
	}
	similar := ""
	for _, name := range names {
		stem := letters(strings.TrimSuffix(name, filepath.Ext(name)))
		if stem == title || letters(name) == title {
			return name, true
		}
		if similar == "" && strings.Contains(stem, title) {
			similar = name
		}
	}
	return similar, similar != ""
}

// letters returns a text's letters and digits, in lower case.
func letters(text string) string { return strings.Join(fields(strings.ToLower(text)), "") }
