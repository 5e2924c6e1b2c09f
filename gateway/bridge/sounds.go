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

// sounds plays sounds on robots.
type sounds interface {
	// Names returns the base names of the sounds, such as "purr" or "birthday.wav".
	Names() []string
	// Play starts a sound on a robot. Its error wraps fs.ErrNotExist if the name is unknown; other errors have the
	// method Code.
	Play(ctx context.Context, id device.ID, name string) error
}

// maxAsset is the maximum length of a sound's name or path in a request, in bytes.
const maxAsset = 1024

// errOutside is the error for a file that is not one of the sounds.
var errOutside error = &httpserver.Fault{Word: "outside_roots", HTTP: http.StatusForbidden,
	Sentence: "only sounds in the base directory that GET songs returns can be played, by name or by path; sounds in its folders cannot"}

// baseName returns the base name of a sound that is given by name or by absolute path. It returns an error for a file that
// is not directly in root.
func baseName(asset, root string) (string, error) {
	switch {
	case asset == "":
		return "", httpserver.BadBody("asset is needed, the name of a sound")
	case len(asset) > maxAsset || strings.ContainsAny(asset, "\\\x00"):
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

// playSound plays a sound on a robot, unless the robot is speaking.
func (a *API) playSound(ctx context.Context, id device.ID, name string) error {
	if a.o.Board.Robot(id).At(a.now()) == agent.Speaking {
		return &httpserver.Fault{Word: "robot_speaking", Sentence: "the robot is speaking; wait, or abort it first", HTTP: http.StatusConflict}
	}
	err := a.o.Sounds.Play(ctx, id, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &httpserver.Fault{Word: "unknown_sound", Sentence: "there is no sound of that name; GET songs lists the sounds",
			HTTP: http.StatusNotFound}
	}
	return err
}

// songs is the response with the list of sounds.
type songs struct {
	Base  string   `json:"base"`  // directory of the sound files
	Files []string `json:"files"` // base names
}

func (a *API) songs() songs {
	list := songs{a.o.Root, append([]string{}, a.o.Sounds.Names()...)} // never null in JSON
	slices.Sort(list.Files)
	return list
}

// playSong plays the sound that a model asks for. If closest finds none, playSong returns a text for the model with the
// list of sounds.
func (a *API) playSong(ctx context.Context, e escalation) (string, error) {
	title, err := requiredText("args.name", cmp.Or(e.Args.Name, e.Args.Query), maxAsset)
	if err != nil {
		return "", err
	}
	id, err := a.sessionRobot(e.SessionID)
	if err != nil {
		return "", err
	}
	names := a.songs().Files
	name, found := closest(title, names)
	switch {
	case !found && len(names) == 0:
		return "There are no songs.", nil
	case !found:
		return "There is no such song. There are: " + strings.Join(names, ", "), nil
	}
	if err := a.playSound(ctx, id, name); err != nil {
		return "", err
	}
	return fmt.Sprintf("Playing %s.", name), nil
}

// closest returns the name of the sound with the same letters and digits as a title, or else the first name that
// contains the letters and digits of the title.
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

// letters returns the letters and digits of a text, in lower case.
func letters(text string) string { return strings.Join(fields(strings.ToLower(text)), "") }
