package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"perch/plain"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"aé", 3, "aé"}, {"aé", 2, "a"}, {"é", 1, ""}, {"é", 0, ""}, {"é", -1, ""}, {"", 5, ""},
		{"日本", 5, "日"}, {"日本", 6, "日本"}, {"a🤖b", 4, "a"}, {"a🤖b", 5, "a🤖"},
		{"e\u0301", 1, "e"},                // a combining mark
		{"👩\u200d🚀", 10, "👩\u200d"},        // an emoji of three runes
		{"a\xffb", 5, "ab"},                // not UTF-8
		{"\xe6\x97ab\xe6", 5, "ab"},        // halves of letters
		{strings.Repeat("ß", 9), 7, "ßßß"}, // an odd limit
	} {
		if got := plain.Clip(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestClipCutsNoLetter checks that Clip returns the longest beginning of a valid text that fits and splits no rune.
func TestClipCutsNoLetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "most")
		got := plain.Clip(text, most)
		rest, begins := strings.CutPrefix(text, got)
		if _, next := utf8.DecodeRuneInString(rest); !begins || !utf8.ValidString(got) || len(got) > most || rest != "" && len(got)+next <= most {
			t.Fatalf("%q in %d bytes is %q", text, most, got)
		}
	})
}

func TestForgedText(t *testing.T) {
	for text, want := range map[string][2]string{
		" evil\x1b[2J\n":   {" evil[2J", "evil[2J"},
		"a\r\n b\u2028\tc": {"a bc", "a b c"},
		"a\u202eb\xff":     {"ab", "a\u202eb\ufffd"},
	} {
		if got := [2]string{plain.Text(text), plain.Line(text)}; got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
