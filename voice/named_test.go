package voice_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"perch/voice"
)

// TestShortList checks that ShortList limits the number of voices, drops invalid and repeated names, and makes titles
// unique.
func TestShortList(t *testing.T) {
	all := []voice.Named{{"a", ""}, {"", "nobody"}, {"a", "again"}, {"b\n", ""}, {strings.Repeat("x", 101), ""}, {"3", "Zunda\x07mon"}, {"7", "Zundamon"}}
	want := []voice.Named{{"a", ""}, {"3", "Zundamon"}, {"7", "Zundamon (7)"}}
	if list := voice.ShortList(all); !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
	for i := range 1000 {
		all = append(all, voice.Named{Name: strconv.Itoa(100 + i)})
	}
	if list := voice.ShortList(all); len(list) != 200 {
		t.Errorf("%d voices", len(list))
	}
}
