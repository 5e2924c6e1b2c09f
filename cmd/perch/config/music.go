package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"perch/limit"
	"perch/plain"
	"perch/voice/music"
)

// Music is an entry of music in the configuration.
type Music struct {
	Name   string `yaml:"name"`   // what people call it
	Source string `yaml:"source"` // http or https address of a stream or a play list, or path of a file, a play list or a folder
}

// MusicSources returns the owner's music.
func (c *Config) MusicSources() []music.Source {
	sources := make([]music.Source, len(c.Music))
	for i, m := range c.Music {
		sources[i] = music.Source(m)
	}
	return sources
}

// checkMusic checks the owner's music. It does not look for the files, because a disk may be plugged in later.
func checkMusic(k *checker, entries []Music) {
	seen := map[string]bool{}
	for i, m := range entries {
		path := fmt.Sprintf("music.%d", i)
		switch name := strings.ToLower(m.Name); {
		case strings.TrimSpace(m.Name) != m.Name || m.Name == "" || plain.Text(m.Name) != m.Name || utf8.RuneCountInString(m.Name) > limit.Called:
			k.fault(path+".name", fmt.Errorf("the name of music is what people call it: one line of 1 to %d characters", limit.Called))
		case name == "off":
			k.fault(path+".name", errors.New(`"off" stands for no music; choose another name`))
		case seen[name]:
			k.fault(path+".name", fmt.Errorf("%s is listed twice", m.Name))
		default:
			seen[name] = true
		}
		if u, err := url.Parse(m.Source); music.IsURL(m.Source) && (err != nil || u.Host == "") || !music.IsURL(m.Source) && !filepath.IsAbs(m.Source) {
			k.fault(path+".source", errors.New("a source is an address that begins with http:// or https://, or the whole path of a file or folder, which begins with /"))
		}
	}
}
