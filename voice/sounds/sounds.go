// Package sounds provides the sounds that robots play besides speech: a few built-in sounds, and
// the WAV and Ogg Opus files in a directory.
package sounds

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of sounds.
const (
	maxFileSize = 10 << 20 // bytes
	maxDuration = time.Minute
	maxFiles    = 4096 // sound files of the directory that are listed
	maxName     = 255  // bytes of a name
)

// builtIn holds the built-in sounds. The program that computed them is in commit d8b12345, as
// voice/sounds/builtin.go; opusenc encoded the result.
//
//go:embed builtin/*.opus
var builtIn embed.FS

// Library is a collection of sounds. It is safe for concurrent use.
type Library struct{ dir string }

// Open returns a library of the built-in sounds and the sound files in a directory. The
// directory need not exist, and its contents may change at any time. If dir is "", the library
// has only the built-in sounds.
func Open(dir string) *Library { return &Library{dir} }

// extensions returns the extensions of sound files, the preferred ones first.
func extensions() []string { return []string{".wav", ".opus", ".ogg"} }

// isSound reports whether a file is a sound, by its name.
func isSound(file string) bool {
	return !strings.HasPrefix(file, ".") && slices.Contains(extensions(), strings.ToLower(filepath.Ext(file)))
}

// stem returns the name of a file without its extension.
func stem(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) }

// Names returns the names of all sounds, sorted, such as "birthday.wav" and "purr". A file such as
// "purr.wav" replaces the built-in sound "purr". If the directory cannot be read, Names returns
// only the built-in sounds.
func (l *Library) Names() []string {
	var names []string
	entries, _ := builtIn.ReadDir("builtin") // cannot fail
	for _, e := range entries {
		names = append(names, stem(e.Name()))
	}
	root, files, err := l.list()
	if err != nil {
		return names // Load returns the error
	}
	defer func() { _ = root.Close() }()
	for _, file := range files {
		if info, err := root.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == stem(file) })
		names = append(names, file)
	}
	slices.Sort(names)
	return names
}

// list opens the directory, and returns the names of its sound files, sorted.
func (l *Library) list() (*os.Root, []string, error) {
	if l.dir == "" {
		return nil, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, nil, err
	}
	files, err := soundFiles(root)
	if err != nil {
		_ = root.Close()
		return nil, nil, err
	}
	slices.Sort(files)
	return root, files, nil
}

// soundFiles returns the names of at most maxFiles sound files in a directory.
func soundFiles(root *os.Root) (files []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	for len(files) < maxFiles {
		names, err := dir.Readdirnames(maxFiles - len(files))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		files = append(files, slices.DeleteFunc(names, func(name string) bool { return !isSound(name) })...)
	}
	return files, nil
}

// Load returns the sound with this name, which need not include the extension, as 24 kHz mono
// PCM of at most a minute. The error wraps fs.ErrNotExist if there is no such sound. The error
// for a file that cannot be played has the methods Code and Status, which tell HTTP clients the
// error code and the status.
func (l *Library) Load(ctx context.Context, name string) ([]int16, error) {
	if name == "" || len(name) > maxName || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return nil, fmt.Errorf("the name of a sound must not contain a path: %w", fs.ErrNotExist)
	}
	root, files, err := l.list()
	if err == nil {
		defer func() { _ = root.Close() }()
		if file := findFile(files, name); file != "" {
			return loadFile(ctx, root, file)
		}
	}
	if data, err := builtIn.ReadFile("builtin/" + name + ".opus"); err == nil {
		return decodeOgg(ctx, data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the directory of sounds: %w", err)
	}
	return nil, fmt.Errorf("no sound is named %q: %w", name, fs.ErrNotExist)
}

// findFile returns the file for the name of a sound, with or without an extension, or "".
func findFile(files []string, name string) string {
	if slices.Contains(files, name) {
		return name
	}
	for _, extension := range extensions() {
		for _, file := range files {
			if stem(file) == name && strings.ToLower(filepath.Ext(file)) == extension {
				return file
			}
		}
	}
	return ""
}

// fileError is the error of a file that cannot be played.
type fileError struct {
	file  string
	cause error
}

// Error returns the file and the cause.
func (e *fileError) Error() string { return fmt.Sprintf("%s cannot be played: %v", e.file, e.cause) }

// Unwrap returns the cause.
func (e *fileError) Unwrap() error { return e.cause }

// Code returns the error code for HTTP clients.
func (*fileError) Code() string { return "bad_sound" }

// Status returns the HTTP status.
func (*fileError) Status() int { return http.StatusUnprocessableEntity }

var (
	errTooLong = fmt.Errorf("it lasts longer than %s; cut it", maxDuration)
	errSilent  = errors.New("there is no sound in it")
)

// loadFile reads and decodes a file.
func loadFile(ctx context.Context, root *os.Root, file string) ([]int16, error) {
	data, err := readFile(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has just been removed: %w", file, err)
	}
	var pcm []int16
	switch {
	case err != nil:
	case strings.EqualFold(filepath.Ext(file), ".wav"):
		pcm, err = decodeWAV(ctx, data)
	default:
		pcm, err = decodeOgg(ctx, data)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && len(pcm) == 0:
		err = errSilent
	}
	if err != nil {
		return nil, &fileError{file, err}
	}
	return pcm, nil
}

// readFile returns the contents of a file. It fails for links that lead out of the directory.
func readFile(root *os.Root, file string) ([]byte, error) {
	info, err := root.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("it has %d bytes, more than %d; cut it, or make it an Opus file", info.Size(), maxFileSize)
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFileSize))
}

// maxSamples returns the number of samples in a sound of maxDuration at a rate.
func maxSamples(rate int) int { return rate * int(maxDuration/time.Second) }
