package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"perch/agent/manifest"
	"perch/agent/mood"
	"perch/agent/skill"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/skills"
	"perch/perception"
)

// checkOwnersFiles reads the files that an owner has put into a data directory, as the appliance does at its
// start: gestures, lists of words, characters, personas and skills. It returns an error for each file that the
// appliance ignores, with the path, the cause and how to correct it. hasFiles reports whether there are any
// files of the owner.
func checkOwnersFiles(c *config.Config, data string) (faults []error, hasFiles bool) {
	imports, personas := characters.ImportDir(data), characters.PersonaDir(data)
	for _, dir := range []string{datadir.Gestures(data), datadir.Words(data), imports, personas, skills.Folder(c, data)} {
		entries, err := os.ReadDir(dir)
		hasFiles = hasFiles || len(entries) > 0
		if errors.Is(err, os.ErrPermission) {
			faults = append(faults, err)
		}
	}
	add := func(err error, withAdvice func(error) error) {
		if err != nil {
			faults = append(faults, withAdvice(err))
		}
	}
	adviseRestart := func(err error) error {
		return fmt.Errorf("%w; correct or remove it, and restart the appliance", err)
	}
	_, err := perception.StockGestures().WithOwners(datadir.Gestures(data), config.IsEmotion)
	_, wordsErr := mood.ReadWords(datadir.Words(data))
	for _, part := range splitJoined(errors.Join(err, wordsErr)) {
		add(part, adviseRestart)
	}
	for _, path := range listFiles(imports, "*.json") {
		_, err := manifest.Read(context.Background(), nil, path)
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if fetched := strings.Contains(name, "."); err == nil && !fetched {
			err = config.CheckCharacter(name)
		}
		add(withPath(path, err), func(err error) error {
			return fmt.Errorf("%w; correct it (perch character check), or remove it", err)
		})
	}
	for _, path := range listFiles(personas, "*.md") {
		_, err := config.RobotPersona(path)
		add(withPath(path, err), func(err error) error { return fmt.Errorf("%w; correct or remove it", err) })
	}
	trust, err := skills.Trust(c, data)
	var library *skill.Library
	if err == nil {
		library, err = skill.New(skill.Options{Folder: skills.Folder(c, data), Trust: trust})
	}
	if err != nil {
		add(err, adviseRestart)
		return faults, hasFiles
	}
	defer library.Close()
	for _, r := range library.Refused() {
		add(withPath(r.Folder, r.Err), func(err error) error {
			return fmt.Errorf("%w; perch skill check %s checks it again; restart the appliance after that", err, r.Folder)
		})
	}
	return faults, hasFiles
}

// withPath adds a path to the text of an error, unless the text contains it. It returns nil if err is nil.
func withPath(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// listFiles returns the paths of the files in a directory that match a pattern: at most
// characters.MaxFiles, as many as the appliance reads.
func listFiles(dir, pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil // only a malformed pattern is an error, and no caller passes one
	}
	return paths[:min(len(paths), characters.MaxFiles)]
}

// splitJoined returns the errors that errors.Join has joined in err, or err itself if it was not joined.
func splitJoined(err error) (errs []error) {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // an error that wraps a joined error is not split
	if !ok {
		return []error{err}
	}
	for _, part := range joined.Unwrap() {
		errs = append(errs, splitJoined(part)...)
	}
	return errs
}
