package music

import (
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"perch/limit"
)

// isPlaylist reports whether a path has the extension of a play list.
func isPlaylist(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".m3u", ".m3u8", ".pls":
		return true
	}
	return false
}

// readList reads a play list that is a file.
func readList(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, limit.File))
	return string(text), err
}

// listed returns the entries of an M3U or PLS play list that was read from a path or a URL. Entries may be relative
// to the play list. A play list from the network names only http and https, because a station must not play files
// of this machine.
func listed(text, from string) (entries []string, err error) {
	var base *url.URL // nil if from is a path
	if IsURL(from) {
		if base, err = url.Parse(from); err != nil {
			return nil, err
		}
	}
	isPLS := strings.HasPrefix(strings.ToLower(strings.TrimLeft(text, "\ufeff \t\r\n")), "[playlist]")
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		entry := strings.TrimSpace(line)
		if isPLS {
			key, value, _ := strings.Cut(entry, "=")
			if entry = strings.TrimSpace(value); !strings.HasPrefix(strings.ToLower(key), "file") {
				continue
			}
		}
		switch {
		case entry == "" || strings.HasPrefix(entry, "#") || len(entries) >= maxFiles:
			continue
		case IsURL(entry):
		case base != nil:
			ref, err := base.Parse(entry)
			if err != nil || !IsURL(ref.String()) {
				continue
			}
			entry = ref.String()
		case strings.HasPrefix(entry, "file:///"):
			if u, err := url.Parse(entry); err == nil {
				entry = u.Path
			}
		case !filepath.IsAbs(entry):
			entry = filepath.Join(filepath.Dir(from), entry)
		}
		entries = append(entries, entry)
	}
	if len(entries) == 0 {
		return nil, errors.New("its play list names nothing that can be played; " + cureAddress)
	}
	return entries, nil
}

// cureAddress is the cure for a URL that is not the URL of a stream.
const cureAddress = "set the address of the stream itself in music, which the station's page or a directory of stations names"
