package models

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is the path of a folder that has a folder for each model. It may be followed by a colon and the path of a second
// folder, whose models are only read: the models of Debian packages.
type Folder string

// Own returns the first folder, where models are downloaded to and removed.
func (f Folder) Own() string {
	own, _, _ := strings.Cut(string(f), ":")
	return filepath.Clean(own)
}

// Installed is a model in the folder, whether or not it is in the catalogue.
type Installed struct {
	Name     string `json:"name"`
	Job      string `json:"job"`
	Language string `json:"language"` // BCP 47 tag; empty for Detects and Judges
	Dir      string `json:"dir"`

	voice string // path of a Piper voice without the extension .onnx; empty for other models
}

// List returns the complete models in the order of their names. A model in the first folder hides one with the same name in the
// second. A folder that does not exist has no models.
func (f Folder) List() (list []Installed, err error) {
	for _, folder := range filepath.SplitList(string(f)) {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the models: %w", err)
		}
		for _, e := range entries {
			m, ok := recognize(folder, e.Name())
			if isHidden := slices.ContainsFunc(list, func(other Installed) bool { return other.Name == m.Name }); ok && !isHidden {
				list = append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b Installed) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Listed is a model of the catalogue or of the folder.
type Listed struct {
	Model     // without licence and files, and with its folder as Source, if it is not in the catalogue
	Installed bool
	Received  int64 // bytes of its files that are in the folder
}

// All returns the models in the folder that are not in the catalogue, and then the catalogue.
func (f Folder) All(catalogue []Model) (all []Listed, err error) {
	installed, err := f.List()
	isThere := map[string]bool{}
	for _, m := range installed {
		isThere[m.Name] = true
		if !slices.ContainsFunc(catalogue, func(known Model) bool { return known.Name == m.Name }) {
			all = append(all, Listed{Model: Model{Name: m.Name, Job: m.Job, Language: m.Language, Source: m.Dir}, Installed: true})
		}
	}
	for _, m := range catalogue {
		l := Listed{Model: m, Installed: isThere[m.Name]}
		for _, file := range m.Files {
			path := filepath.Join(f.Own(), m.Name, file.Name)
			l.Received += min(max(sizeOf(path), sizeOf(path+partEnd)), file.Size)
		}
		all = append(all, l)
	}
	return all, err
}

// find returns the model with a name in List.
func (f Folder) find(name string) (m Installed, ok bool, err error) {
	list, err := f.List()
	i := slices.IndexFunc(list, func(m Installed) bool { return m.Name == name })
	if i < 0 {
		return m, false, err
	}
	return list[i], true, nil
}

// isPackaged reports whether the model is not in the first folder.
func (f Folder) isPackaged(m Installed) bool { return filepath.Dir(m.Dir) != f.Own() }

// recognize returns the model with a name in a folder. ok is false if there is no model, or if one of its files is missing or
// shorter than in the catalogue.
func recognize(folder, name string) (m Installed, ok bool) {
	dir := filepath.Join(folder, name)
	known, listed := Find(name)
	for _, file := range known.Files {
		if info, err := os.Stat(filepath.Join(dir, file.Name)); err != nil || info.Size() < file.Size {
			return m, false
		}
	}
	m = Installed{Name: name, Language: known.Language, Dir: dir}
	if exists(dir, encoderFile) && exists(dir, decoderFile) && exists(dir, tokenizerFile) {
		m.Job = Hears
		if !listed {
			m.Language = name[strings.LastIndexByte(name, '-')+1:] // as Moonshine names its models: base-ja
		}
		return m, true
	}
	if exists(dir, detectorFile) {
		m.Job = Detects
		return m, true
	}
	if exists(dir, turnFile) {
		m.Job = Judges
		return m, true
	}
	voices, _ := filepath.Glob(filepath.Join(dir, "*"+settingsEnd)) // Glob fails only for a bad pattern
	if len(voices) != 1 {
		return m, false
	}
	m.Job, m.voice = Speaks, strings.TrimSuffix(voices[0], settingsEnd)
	if !listed {
		language, _, _ := strings.Cut(filepath.Base(m.voice), "-") // as Piper names its voices: de_DE-thorsten-medium
		m.Language = strings.ReplaceAll(language, "_", "-")
	}
	return m, exists(dir, filepath.Base(m.voice)+voiceEnd)
}

// exists reports whether there is a file in a folder.
func exists(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// sizeOf returns the size of a file, or 0.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Remove removes a model with its folder. It returns an error if the model is neither in List nor in the catalogue, or belongs
// to a Debian package.
func (f Folder) Remove(name string) error {
	m, isThere, err := f.find(name)
	_, inCatalogue := Find(name) // such a model may be incomplete, and then List does not contain it
	switch {
	case err != nil:
		return err
	case isThere && f.isPackaged(m):
		return fmt.Errorf("%s belongs to a Debian package: dpkg -S %s names it, and sudo apt remove removes it", name, m.Dir)
	case !isThere && !inCatalogue:
		return fmt.Errorf("there is no model %q in %s; perch-speech models list shows those that are there", name, f.Own())
	}
	return os.RemoveAll(filepath.Join(f.Own(), name))
}

// Verify compares the files of a model with the catalogue. For a model that is not in the catalogue it returns nil.
func (m Installed) Verify() error {
	known, _ := Find(m.Name)
	for _, file := range known.Files {
		sum, err := sumOf(filepath.Join(m.Dir, file.Name), file.Size)
		if err != nil {
			return err
		}
		if sum != file.SHA256 {
			return fmt.Errorf("%s is damaged: perch-speech models remove %s, and get it again", file.Name, m.Name)
		}
	}
	return nil
}

// sumOf returns the SHA-256 of the first size bytes of a file, in hexadecimal digits. Any bytes after them are metadata
// that finish or appendMetadata has appended.
func sumOf(path string, size int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(h, f, size); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Recognizer is a Moonshine model that is ready to be loaded. The fields are paths.
type Recognizer struct{ Encoder, Decoder, Tokens string }

// Voice is a Piper voice that is ready to be loaded.
type Voice struct {
	Model, Tokens string  // paths
	Rate          int     // Hz
	Noise, NoiseW float32 // the settings noise_scale and noise_w
	Length        float32 // the setting length_scale; speech is slower if it is greater
}

// Recognizer prepares the files of a model that hears, and returns their paths.
func (m Installed) Recognizer() (Recognizer, error) {
	in := func(name string) string { return filepath.Join(m.Dir, name) }
	return Recognizer{in(encoderFile), in(decoderFile), in(tokensFile)}, prepareMoonshine(m.Dir)
}

// Voice prepares the files of a model that speaks, and returns their paths and the settings of the voice.
func (m Installed) Voice() (Voice, error) {
	s, err := preparePiper(m.voice)
	return Voice{m.voice + voiceEnd, filepath.Join(m.Dir, tokensFile), s.Audio.Rate, s.Inference.Noise, s.Inference.NoiseW, s.Inference.Length}, err
}

// prepare makes the files of a model readable by sherpa-onnx.
func (m Installed) prepare() error {
	switch m.Job {
	case Hears:
		return prepareMoonshine(m.Dir)
	case Speaks:
		_, err := preparePiper(m.voice)
		return err
	}
	return nil
}

// Judge returns the path of the file of a model that judges.
func (m Installed) Judge() string { return filepath.Join(m.Dir, turnFile) }

// Detector returns the path of the file of a model that detects.
func (m Installed) Detector() string { return filepath.Join(m.Dir, detectorFile) }
