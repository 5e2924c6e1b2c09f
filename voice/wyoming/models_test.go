package wyoming

import (
	"strings"
	"testing"

	"perch/must"
)

// TestOtherServersHaveNoModels checks that a server that is not perch-speech is recognized by its info, because it does not
// respond to unknown events.
func TestOtherServersHaveNoModels(t *testing.T) {
	for what, test := range map[string]struct{ info, want string }{
		"faster-whisper":       {whisper, "it is not perch-speech"},
		"piper":                {piper, "it is not perch-speech"},
		"one that disconnects": {"", "closed the connection"},
	} {
		f := &fake{info: test.info, script: func(*peer, Event) {}}
		s := must.Value(NewSpeech(f.listen(t)))(t)
		if list, err := s.Models(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v", what, list, err)
		}
	}
}
