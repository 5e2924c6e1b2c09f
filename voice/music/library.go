package music

import "strings"

// Library is the owner's music. It is safe for concurrent use. A nil Library has none.
type Library struct {
	decoder *Decoder
	sources []Source
}

// NewLibrary returns a library of sources.
func NewLibrary(sources []Source) *Library { return &Library{NewDecoder(), sources} }

// Names returns the names of the sources, in the order of the configuration.
func (l *Library) Names() []string {
	if l == nil {
		return nil
	}
	names := make([]string, len(l.sources))
	for i, s := range l.sources {
		names[i] = s.Name
	}
	return names
}

// Find returns the music with a name, or the first if the name is "". Case does not matter. ok is false if there is
// no such music.
func (l *Library) Find(name string) (p *Playing, ok bool) {
	if l == nil {
		return nil, false
	}
	for _, s := range l.sources {
		if name == "" || strings.EqualFold(name, s.Name) {
			return l.decoder.Play(s), true
		}
	}
	return nil, false
}
