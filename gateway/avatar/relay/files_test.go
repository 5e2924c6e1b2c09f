package relay

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perch/must"
)

// wordsWithPrefix returns the words of a kind whose keys have a prefix, sorted.
func wordsWithPrefix(k kind, prefix string) (list []string) {
	for key, word := range k.words {
		if strings.HasPrefix(key, prefix) {
			list = append(list, word)
		}
	}
	slices.Sort(list)
	return list
}

// TestWarudoFile tests that the file for Warudo receives exactly the actions in the words, and that only the
// mouth is a number.
func TestWarudoFile(t *testing.T) {
	file := string(must.Value(os.ReadFile("../../../docs/avatars/StackchanBlueprint.cs"))(t))
	types := map[string]string{}
	for _, call := range regexp.MustCompile(`Receive\(graph, "(.*)", WebSocketActionDataType\.(\w+)\);`).FindAllStringSubmatch(file, -1) {
		types[call[1]] = call[2]
	}
	if got, want := slices.Sorted(maps.Keys(types)), wordsWithPrefix(warudoKind(), "action."); !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
	for action, kind := range types {
		if want := map[bool]string{true: "Float", false: "String"}[action == "stackchan.mouth"]; kind != want {
			t.Errorf("%s is a %s", action, kind)
		}
	}
}

// TestUnrealFile tests that the script for Unreal exposes exactly the properties and functions in the words,
// and that only the mouth is a number.
func TestUnrealFile(t *testing.T) {
	file := string(must.Value(os.ReadFile("../../../docs/avatars/stackchan_unreal.py"))(t))
	var got []string
	for _, p := range regexp.MustCompile(`(?m)^    "(\w+)": "(\w+)",$`).FindAllStringSubmatch(file, -1) {
		got = append(got, "property Stackchan "+p[1])
		if want := map[bool]string{true: "real", false: "string"}[p[1] == "Mouth"]; p[2] != want {
			t.Errorf("%s is a %s", p[1], p[2])
		}
	}
	for _, f := range regexp.MustCompile(`\b(\w+) \(with\s+(?:the text parameter )?(\w+)\)`).FindAllStringSubmatch(file, -1) {
		if strings.Contains(file[strings.Index(file, "FUNCTIONS ="):], `"`+f[1]+`"`) {
			got = append(got, "function Stackchan "+f[1]+" "+f[2])
		}
	}
	slices.Sort(got)
	if want := wordsWithPrefix(unrealKind(), "tell."); !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
}
