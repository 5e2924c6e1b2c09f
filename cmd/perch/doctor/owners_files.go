package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// checkOwnersFiles reads what an owner has put into a data directory, as a start does: gestures,
// lists of words, characters, personas and skills. It returns an error for each file that a
// start leaves out, with its path, the cause and the cure. some reports whether there are any
// files.
func checkOwnersFiles(c *config.Config, data string) (faults []error, some bool) {
	imports, personas := characters.ImportDir(data), characters.PersonaDir(data)
	for _, dir := range []string{datadir.Gestures(data), datadir.Words(data), imports, personas, skills.Folder(c, data)} {
		entries, err := os.ReadDir(dir)
		some = some || len(entries) > 0
		if errors.Is(err, os.ErrPermission) {
			faults = append(faults, err)
		}
	}
	add := func(err error, cured func(error) error) {
		if err != nil {
			faults = append(faults, cured(err))
		}
	}
	again := func(err error) error {
		return fmt.Errorf("%w; correct or remove it, and restart the appliance", err)
	}
	_, err := perception.StockGestures().WithOwners(datadir.Gestures(data), config.IsEmotion)
	_, wrong := mood.ReadWords(datadir.Words(data))
	for _, one := range single(errors.Join(err, wrong)) {
		add(one, again)
	}
	for _, path := range listed(imports, "*.json") {
		_, err := manifest.Read(context.Background(), nil, path)
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if fetched := strings.Contains(name, "."); err == nil && !fetched {
			err = config.CheckCharacter(name)
		}
		add(at(path, err), func(err error) error {
			return fmt.Errorf("%w; correct it (perch character check), or remove it", err)
		})
	}
	for _, path := range listed(personas, "*.md") {
		_, err := config.RobotPersona(path)
		add(at(path, err), func(err error) error { return fmt.Errorf("%w; correct or remove it", err) })
	}
	trust, err := skills.Trust(c, data)
	var library *skill.Library
	if err == nil {
		library, err = skill.New(skill.Options{Folder: skills.Folder(c, data), Trust: trust, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		add(err, again)
		return faults, some
	}
	defer library.Close()
	for _, r := range library.Refused() {
		add(at(r.Folder, r.Err), func(err error) error {
			return fmt.Errorf("%w; perch skill check %s reads it again; restart the appliance then", err, r.Folder)
		})
	}
	return faults, some
}

// at returns an error that names a path, once.
func at(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// listed returns as many files of a directory as a start reads.
func listed(dir, pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil // not for these patterns
	}
	return paths[:min(len(paths), characters.MaxFiles)]
}

// single returns the errors that errors.Join has joined.
func single(err error) (all []error) {
	joined, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // not what is wrapped below
	if !is {
		return []error{err}
	}
	for _, part := range joined.Unwrap() {
		all = append(all, single(part)...)
	}
	return all
}
