// Package music plays the owner's music: streams of radio stations, play lists, files and folders. The program
// ffmpeg decodes the sound. Only this package connects to a station, except that ffmpeg itself fetches the pieces
// of a stream that comes in pieces (HLS), and the streams of servers that answer "ICY 200 OK".
package music

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/voice"
)

// Source is a source of music in the owner's configuration.
type Source struct {
	Name   string
	Source string // URL of a stream or a play list, or path of a file, a play list or a folder
}

// IsURL reports whether a source is a URL, and not a path.
func IsURL(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

const (
	// patience is how long a station may send nothing, and how long ffmpeg may decode nothing.
	patience = 20 * time.Second
	// stable is how long a station must have played for the connection to be made again after it broke.
	stable = time.Minute
	// rewind is how much of a file is played again after a pause: what was decoded, and dropped before it was heard,
	// is at most the sound that a robot's queue holds.
	rewind = 12 * time.Second
	// maxFiles is how many files of a folder, or lines of a play list, are played.
	maxFiles = 10_000
)

// Decoder runs ffmpeg. It is safe for concurrent use.
type Decoder struct {
	command  []string // ffmpeg
	client   *http.Client
	patience time.Duration
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	transport := remote.NewTransport()
	transport.ResponseHeaderTimeout, transport.ForceAttemptHTTP2 = patience, false
	// The client follows at most ten redirects, and only to http and https.
	return &Decoder{command: []string{"ffmpeg"}, client: &http.Client{Transport: transport}, patience: patience}
}

// Close closes idle connections.
func (d *Decoder) Close() { d.client.CloseIdleConnections() }

// Playing is music that is played, from the beginning of a source to its end. Its methods may be called by any
// goroutine.
type Playing struct {
	decoder *Decoder
	source  Source

	mu      sync.Mutex
	entries []string      // files or URLs that are left to play; nil before the first Play
	offset  time.Duration // how much of the first entry was played, if it is a file
	proven  bool          // whether the first entry is a station that has played for stable
}

// Play returns the music of a source. It opens nothing.
func (d *Decoder) Play(s Source) *Playing { return &Playing{decoder: d, source: s} }

// Name returns the name of the source.
func (p *Playing) Name() string { return p.source.Name }

// errHeard is returned by Try's own callback once there is sound.
var errHeard = errors.New("there is sound")

// tryWithin is how long a source may take until its first sound.
const tryWithin = 10 * time.Second

// Try returns nil if the source can be played, and otherwise the reason, with its cure.
func (p *Playing) Try(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin,
		fmt.Errorf("%s has sent no sound for %s; check its source in music, and the network", p.source.Name, tryWithin))
	defer cancel()
	err := p.decoder.Play(p.source).Play(ctx, func([]int16) error { return errHeard })
	switch {
	case errors.Is(err, errHeard):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return cmp.Or(err, fmt.Errorf("%s has no sound", p.source.Name))
}

// Play calls out with consecutive pieces of 24 kHz PCM, until the source ends, ctx ends or out fails. The pieces are
// valid only during the call. A later call continues a file a little before where the last call has stopped, and
// connects to a station again. The connection to a station that has played for a minute is made again when it
// breaks. A file behind a URL is played once. Play returns an error with its cure if nothing of the source can be played, or a station has broken off,
// and the error of out or ctx.
func (p *Playing) Play(ctx context.Context, out func([]int16) error) error {
	p.mu.Lock() // an earlier call may still wait for its ffmpeg to end
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.entries == nil {
		entries, err := p.decoder.entries(ctx, p.source.Source)
		if err != nil {
			return fmt.Errorf("%s cannot be played: %w", p.source.Name, err)
		}
		p.entries = entries
	}
	p.offset = max(0, p.offset-rewind)
	var failed error
	sounded := false // some file has sound
	for len(p.entries) > 0 {
		heard, err := p.playFirst(ctx, out)
		var stopped *stopped
		switch {
		case errors.As(err, &stopped):
			return stopped.error
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && failed == nil:
			failed = err
		}
		sounded = sounded || heard && !IsURL(p.entries[0])
		p.entries, p.offset, p.proven = p.entries[1:], 0, false
	}
	p.entries = nil // the next call begins again
	if sounded || failed == nil {
		return nil
	}
	return fmt.Errorf("%s cannot be played: %w", p.source.Name, failed)
}

// stopped is an error of out.
type stopped struct{ error }

// playFirst plays the first entry. heard is true if it has sound. An error of out is returned as stopped.
func (p *Playing) playFirst(ctx context.Context, out func([]int16) error) (heard bool, err error) {
	failures := limit.Tries
	if p.proven {
		failures = 0
	}
	for {
		begun := p.offset
		within, giveUp := context.WithCancelCause(ctx)
		first := time.AfterFunc(2*p.decoder.patience, func() { giveUp(errStalled) }) // play lists may lead on for long
		err = p.decoder.decode(within, p.entries[0], begun, func(pcm []int16) error {
			first.Stop()
			heard = true
			p.offset += time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
			if err := out(pcm); err != nil {
				return &stopped{err}
			}
			return nil
		})
		first.Stop()
		giveUp(nil)
		if errors.Is(err, errEnded) {
			return heard, nil
		}
		if p.offset-begun >= stable {
			failures, p.proven = 0, true
		}
		var stopped *stopped
		if !IsURL(p.entries[0]) || failures >= limit.Tries || errors.As(err, &stopped) {
			return heard, err
		}
		select {
		case <-time.After(limit.Restart(failures)):
		case <-ctx.Done():
			return heard, ctx.Err()
		}
		failures++
	}
}

// entries returns the files or URLs that a source consists of.
func (d *Decoder) entries(ctx context.Context, source string) ([]string, error) {
	if IsURL(source) {
		return []string{source}, nil // decode finds out whether it is a play list
	}
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s on this machine; correct its path in music", source)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s may not be read by the user that runs Perch; change its permissions", source)
	case err != nil:
		return nil, err
	case info.IsDir():
		return folder(ctx, source)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file nor a folder; correct its path in music", source)
	case isPlaylist(source):
		text, err := readList(source)
		if err != nil {
			return nil, err
		}
		return listed(text, source)
	}
	return []string{source}, nil
}

// extensions returns the extensions of files in a folder that are played.
func extensions() []string {
	return []string{".mp3", ".flac", ".ogg", ".oga", ".opus", ".m4a", ".m4b", ".aac", ".wav", ".wma", ".aif", ".aiff", ".mka", ".webm"}
}

// folder returns the sound files in a folder and the folders in it, sorted by their paths. Hidden files, and what
// may not be read, are left out.
func folder(ctx context.Context, dir string) (files []string, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // WalkDir does not follow a link
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != dir; {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == dir:
			return err
		case err != nil:
			return nil
		case d.IsDir() && hidden:
			return fs.SkipDir
		case len(files) >= maxFiles:
			return fs.SkipAll
		case !d.IsDir() && !hidden && slices.Contains(extensions(), strings.ToLower(filepath.Ext(path))):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the folder %s has no sound files, such as .mp3, .flac or .ogg; put some into it", dir)
	}
	return files, err
}
