// Package sounds provides sounds that robots play besides speech: a few generated ones, and
// the WAV and Ogg Opus files of a directory.
package sounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/voice"
)

// Limits of a sound.
const (
	mostBytes = 10 << 20 // per file
	longest   = time.Minute
	mostFiles = 4096 // of a directory
	mostName  = 255  // bytes
)

// Library finds sounds by name. It is safe for concurrent use.
type Library struct{ dir string }

// Open returns the built-in sounds and those in a directory, which need not exist and may
// change at any time. An empty dir is no directory.
func Open(dir string) *Library { return &Library{dir} }

// endings returns the extensions of sound files, in order of preference.
func endings() []string { return []string{".wav", ".opus", ".ogg"} }

func isSound(file string) bool {
	return !strings.HasPrefix(file, ".") && slices.Contains(endings(), strings.ToLower(filepath.Ext(file)))
}

// stem returns a file's name without its extension.
func stem(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) }

// Names returns the base names of all sounds, sorted: "birthday.wav", "purr". A file
// replaces the built-in sound of that name.
func (l *Library) Names() []string {
	names := slices.Sorted(maps.Keys(builtIn()))
	root, files, err := l.list()
	if err != nil {
		return names // an error of the directory is reported when one of its files is loaded
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

// list opens the directory and lists its sound files.
func (l *Library) list() (*os.Root, []string, error) {
	if l.dir == "" {
		return nil, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, nil, err
	}
	var files []string
	dir, err := root.Open(".")
	if err == nil {
		defer func() { _ = dir.Close() }()
		files, err = dir.Readdirnames(mostFiles)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		_ = root.Close()
		return nil, nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return !isSound(name) })
	slices.Sort(files)
	return root, files, nil
}

// Load returns a sound by its base name, with or without extension, as 24 kHz mono PCM of
// at most a minute. The error wraps fs.ErrNotExist if there is no such sound; for a file
// that cannot be played it gives cause and cure.
func (l *Library) Load(ctx context.Context, name string) ([]int16, error) {
	if name == "" || len(name) > mostName || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return nil, fmt.Errorf("a sound has a plain name: %w", fs.ErrNotExist)
	}
	root, files, err := l.list()
	if err == nil {
		defer func() { _ = root.Close() }()
		if file := matching(files, name); file != "" {
			return load(ctx, root, file)
		}
	}
	if sound := builtIn()[name]; sound != nil {
		return sound().pcm(), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the directory of sounds: %w", err)
	}
	return nil, fmt.Errorf("no sound is named %q: %w", name, fs.ErrNotExist)
}

// matching returns the file that a name means, or "".
func matching(files []string, name string) string {
	if slices.Contains(files, name) {
		return name
	}
	for _, ending := range endings() {
		for _, file := range files {
			if stem(file) == name && strings.ToLower(filepath.Ext(file)) == ending {
				return file
			}
		}
	}
	return ""
}

// refused is the error for a file that cannot be played.
type refused struct {
	file  string
	cause error
}

func (r *refused) Error() string { return fmt.Sprintf("%s cannot be played: %v", r.file, r.cause) }
func (r *refused) Unwrap() error { return r.cause }

// Code and Status are for HTTP clients.
func (*refused) Code() string { return "bad_sound" }
func (*refused) Status() int  { return http.StatusUnprocessableEntity }

var (
	errTooLong = fmt.Errorf("it lasts longer than %s; cut it", longest)
	errSilent  = errors.New("there is no sound in it")
)

func load(ctx context.Context, root *os.Root, file string) ([]int16, error) {
	data, err := read(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has just gone: %w", file, err)
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
		return nil, &refused{file, err}
	}
	return pcm, nil
}

// read returns a file's content. Links that lead out of the directory are rejected.
func read(root *os.Root, file string) ([]byte, error) {
	info, err := root.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > mostBytes:
		return nil, fmt.Errorf("it has %d bytes, more than %d; cut it, or make it an Opus file", info.Size(), mostBytes)
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// samples returns the number of samples in the longest sound at a rate.
func samples(rate int) int { return rate * int(longest/time.Second) }

// resample converts a sound to the robots' rate, a tenth of a second at a time.
func resample(ctx context.Context, pcm []int16, rate int) ([]int16, error) {
	if rate == voice.SpeakerRate {
		return pcm, nil
	}
	r := voice.NewResampler(rate, voice.SpeakerRate)
	out := make([]int16, 0, len(pcm)*voice.SpeakerRate/rate+voice.SpeakerFrame)
	for len(pcm) > 0 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		n := min(len(pcm), rate/10)
		out = append(out, r.Resample(pcm[:n])...)
		pcm = pcm[n:]
	}
	return append(out, r.Resample(make([]int16, rate/100))...), nil // the filter's delay
}
