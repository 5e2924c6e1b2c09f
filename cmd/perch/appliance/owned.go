package appliance

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
	"perch/cmd/perch/config"
	"perch/perception"
)

// OwnersFiles reads what an owner has put into a data directory, as a start does:
// gestures, lists of words, characters, personas and skills. There is an error for each
// that a start leaves out, with its path, the cause and the cure. Some is whether there
// is anything.
func OwnersFiles(c *config.Config, data string) (faults []error, some bool) {
	characters := characters{data: data}
	for _, dir := range []string{gesturesDirectory(data), wordsDirectory(data), characters.imports(), characters.directory(), SkillFolder(c, data)} {
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
	_, err := perception.StockGestures().WithOwners(gesturesDirectory(data), isFace)
	_, wrong := mood.ReadWords(wordsDirectory(data))
	if err = errors.Join(err, wrong); err != nil {
		for _, one := range single(err) {
			add(one, again)
		}
	}
	for _, path := range listed(characters.imports(), "*.json") {
		_, err := manifest.Read(context.Background(), nil, path) // which asks nobody
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if fetched := strings.Contains(name, "."); err == nil && !fetched {
			err = config.CheckCharacter(name)
		}
		add(of(path, err), func(err error) error {
			return fmt.Errorf("%w; correct it (perch character check), or remove it", err)
		})
	}
	for _, path := range listed(characters.directory(), "*.md") {
		_, err := config.RobotPersona(path)
		add(of(path, err), func(err error) error { return fmt.Errorf("%w; correct or remove it", err) })
	}
	trust, err := SkillTrust(c, data)
	var library *skill.Library
	if err == nil {
		library, err = skill.New(skill.Options{Folder: SkillFolder(c, data), Trust: trust, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		add(err, again)
		return faults, some
	}
	defer library.Close()
	for _, r := range library.Refused() {
		add(of(r.Folder, r.Err), func(err error) error {
			return fmt.Errorf("%w; perch skill check %s reads it again; restart the appliance then", err, r.Folder)
		})
	}
	return faults, some
}

// of is an error of a path, which is named once.
func of(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// listed are the files of a directory, no more than a start reads.
func listed(dir, pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil // not for these patterns
	}
	return paths[:min(len(paths), 2*mostCharacters)]
}

// single are the errors that errors.Join has made one of, each with its file.
func single(err error) (all []error) {
	many, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // not what is wrapped below
	if !is {
		return []error{err}
	}
	for _, one := range many.Unwrap() {
		all = append(all, single(one)...)
	}
	return all
}
