package voice_test

import (
	"strings"
	"testing"

	"perch/voice"
)

// FuzzSpoken: whatever a recognizer writes, it is one line or nothing.
func FuzzSpoken(f *testing.F) {
	for _, s := range []string{" Hello.\n", "[BLANK_AUDIO]", "(music) *laughs* ♪", "...", "a\xffb", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spoken := voice.Spoken(s)
		got := spoken.Text
		if strings.ContainsAny(got, "\r\n\t") || got != strings.TrimSpace(got) || spoken != voice.Spoken(got) || spoken.Refused != (got == "") {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
