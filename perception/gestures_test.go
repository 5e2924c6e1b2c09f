package perception

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/event"
	"perch/limit"
	"perch/must"
)

// TestStockGestures checks the names of the built-in gestures, which other programs use.
func TestStockGestures(t *testing.T) {
	want := []string{"wave", "nod", "shake", "think", "celebrate", "concern", "bow", "point", "shrug", "fidget", "dance", "idle"}
	if got := StockGestures().Names(); !slices.Equal(got, want) {
		t.Errorf("they are %q", got)
	}
	for _, g := range StockGestures() {
		if g.About == "" {
			t.Errorf("nobody says what %s means", g.Name)
		}
	}
}

// FuzzGestures reads arbitrary files. All gestures of an accepted file must be executable.
func FuzzGestures(f *testing.F) {
	f.Add(gesturesFile)
	f.Add([]byte(`{"gestures": [{"name": "a", "duration_ms": 900, "frames": [{"at_ms": 0, "yaw": -90, "light": [0, 1, 168]}]}]} {}`))
	f.Add([]byte(`{"gestures": [{"name": "\u0000", "duration_ms": 9223372036854775807, "frames": [{"at_ms": -9223372036854775808}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readGestures(text, func(face string) bool { return face == "happy" })
		if err != nil {
			if !errors.Is(err, ErrGesture) || len(all) > 0 {
				t.Fatal(err, all)
			}
			return
		}
		for _, g := range all {
			if name, ok := event.GestureName(g.Name); !ok || name != g.Name || g.Duration < 500 || g.Duration > 10_000 ||
				len(g.Frames) == 0 || len(g.Frames) > maxKeyframes {
				t.Fatalf("%+v", g)
			}
			last := int64(-100)
			for _, at := range g.Frames {
				if at.At < last+100 || at.At >= g.Duration || at.Yaw != nil && (*at.Yaw < -90 || *at.Yaw > 90) ||
					at.Pitch != nil && (*at.Pitch < 5 || *at.Pitch > 85) || at.Speed != 0 && (at.Speed < 100 || at.Speed > 1000) {
					t.Fatalf("%+v", at)
				}
				last = at.At
			}
		}
	})
}

// TestGesturesOfAnOwner reads an owner's files, and reports why one cannot be used.
func TestGesturesOfAnOwner(t *testing.T) {
	frame := `{"at_ms": 0, "yaw": 5, "pitch": 20, "light": [0, 0, 1], "face": "happy"}`
	one := func(name, more string) string { return `{"gestures": [{"name": "` + name + `", ` + more + `}]}` }
	for _, c := range []struct{ name, text, fault string }{
		{"its own", one("twirl", `"duration_ms": 900, "frames": [`+frame+`]`), ""},
		{"instead of ours", one("wave", `"duration_ms": 900, "frames": [`+frame+`]`), ""},
		{"no JSON", "wave", "write {"},
		{"a key of another name", one("a", `"duration": 900, "frames": [`+frame+`]`), `unknown field "duration"`},
		{"no name", one("A b", `"duration_ms": 900, "frames": [`+frame+`]`), "lower-case letters"},
		{"for ever", one("a", `"duration_ms": 9223372036854775807, "frames": [`+frame+`]`), "is not from 500 to 10000"},
		{"without keyframes", one("a", `"duration_ms": 900, "frames": []`), "there are 0"},
		{"too far", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0, "yaw": 91}]`), "frames[0].yaw: 91 is not from -90 to 90"},
		{"beyond the servo", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0, "pitch": 86}]`), "pitch: 86 is not from 5 to 85"},
		{"too fast", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0, "speed": 1001}]`), "speed: 1001 is not from 100 to 1000"},
		{"too bright", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0, "light": [0, 169, 0]}]`), "light: 169 is not from 0 to 168"},
		{"too soon after", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0}, {"at_ms": 99}]`), "frames[1].at_ms"},
		{"no face", one("a", `"duration_ms": 900, "frames": [{"at_ms": 0, "face": "smug"}]`), `face: "smug" is no emotion`},
		{"too long", one("a", `"about": "`+strings.Repeat("x", limit.Body)+`"`), "more than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "mine.json"), []byte(c.text), 0o600))
			all, err := StockGestures().WithOwners(dir, func(face string) bool { return face == "happy" })
			switch {
			case c.fault == "" && err != nil:
				t.Error(err)
			case c.fault != "" && (!errors.Is(err, ErrGesture) || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("it says %v", err)
			case c.fault != "" && !strings.Contains(err.Error(), "mine.json"):
				t.Errorf("it does not name the file: %v", err)
			case c.fault != "" && len(all.Names()) != len(StockGestures().Names()):
				t.Error("the appliance has lost its own")
			}
		})
	}
	if all, err := StockGestures().WithOwners(filepath.Join(t.TempDir(), "none"), nil); err != nil || len(all.Names()) != 12 {
		t.Errorf("without a directory there are %q, %v", all.Names(), err)
	}
}
