package voice

import (
	"context"
	"slices"

	"perch/plain"
)

// Named is a voice that a synthesizer lists.
type Named struct {
	Name  string `json:"name"`            // the value of Options.Voice
	Title string `json:"title,omitempty"` // what people call the voice; empty if that is Name
}

// Lister is a Synthesizer that can list its voices.
type Lister interface {
	// Voices returns the voices that Options.Voice can name. The list is empty if the engine cannot list them.
	Voices(ctx context.Context) ([]Named, error)
}

// Limits of a list of voices, so that it can be the options of a select entity of Home Assistant.
const (
	maxVoices    = 200
	maxVoiceName = 100 // bytes, as in the settings of a robot
)

// ShortList returns the first maxVoices voices of a list from a server. It drops invalid and repeated names, and
// appends the name to a repeated title.
func ShortList(all []Named) (list []Named) {
	names, titles := map[string]bool{}, map[string]bool{}
	for _, v := range all {
		if v.Name == "" || len(v.Name) > maxVoiceName || plain.Text(v.Name) != v.Name || names[v.Name] {
			continue
		}
		if v.Title = plain.Clip(plain.Text(v.Title), maxVoiceName); v.Title != "" && titles[v.Title] {
			v.Title += " (" + v.Name + ")"
		}
		names[v.Name], titles[v.Title] = true, true
		if list = append(list, v); len(list) == maxVoices {
			break
		}
	}
	return slices.Clip(list)
}
