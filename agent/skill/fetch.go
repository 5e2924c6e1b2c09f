package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Fetch downloads a bundle. If it has this digest, Fetch stores it in a new subfolder of folder with
// the name of the skill. open downloads a file of the bundle, at a path relative to the bundle; if
// the file is missing, the error of open must wrap fs.ErrNotExist. Fetch downloads the files that
// this package uses, and the files listed in the manifest's integrity.
func Fetch(open func(name string) ([]byte, error), digest, folder string) (Skill, error) {
	if !digestFormat().MatchString(digest) {
		return Skill{}, errors.New("a digest is sha256: and 64 digits in hex, as perch skill check shows it")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Skill{}, fmt.Errorf("create the directory of skills: %w", err)
	}
	temporary, err := os.MkdirTemp(folder, ".fetched-*")
	if err != nil {
		return Skill{}, fmt.Errorf("store the skill: %w", err)
	}
	defer os.RemoveAll(temporary) // does nothing after the rename
	if err := fetchFiles(open, temporary); err != nil {
		return Skill{}, err
	}
	s, err := Read(temporary)
	if err != nil {
		return Skill{}, err
	}
	if s.Digest != digest {
		return Skill{}, fmt.Errorf("the skill at this address has another digest, %s, so it is not the one that was meant; ask its author", s.Digest)
	}
	s.Folder = filepath.Join(folder, s.Name)
	if _, err := os.Lstat(s.Folder); err == nil {
		return Skill{}, fmt.Errorf("%s exists already; remove it to get the skill again", s.Folder)
	}
	if err := errors.Join(os.Chmod(temporary, 0o755), os.Rename(temporary, s.Folder)); err != nil {
		return Skill{}, fmt.Errorf("store the skill: %w", err)
	}
	return s, nil
}

// fetchFiles downloads the files of a bundle into a folder.
func fetchFiles(open func(name string) ([]byte, error), folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("store the skill: %w", err)
	}
	defer root.Close()
	data, err := open(manifestFile)
	if err != nil {
		return err
	}
	var m manifest
	_ = json.Unmarshal(data, &m) // Read reports a fault
	names := append(slices.Collect(maps.Keys(m.Integrity)), instructionsFile, toolsFile, signatureFile)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range append([]string{manifestFile}, names[:min(len(names), maxFiles)]...) {
		if name != manifestFile {
			data, err = open(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = root.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = root.WriteFile(name, data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("get %.80s of the skill: %w", name, err)
		}
	}
	return nil
}
