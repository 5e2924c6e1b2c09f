package relay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/event"
	"perch/must"
	"perch/waittest"
)

func newVMCLink(t testing.TB, changed map[string]string) *vmcLink {
	t.Helper()
	w := wordsOf(t, vmcKind(), changed)
	return &vmcLink{words: w, current: map[string]float64{}, goal: map[string]float64{}}
}

// weightText formats the weights above 0.
func weightText(weights map[string]float64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if weights[name] != 0 {
			all = append(all, fmt.Sprintf("%s %.2f", name, weights[name]))
		}
	}
	return strings.Join(all, ", ")
}

func TestVMCWeights(t *testing.T) {
	curious := event.Mood{Face: "thinking", Feelings: event.Feelings{Curiosity: .9}, Morphs: event.Morphs{BrowOuterUpLeft: .7, MouthSmile: .25}}
	for _, c := range []struct {
		what  string
		words map[string]string
		scene Scene
		want  string
	}{
		{"a face", nil, Scene{State: agent.Speaking, Face: "happy"}, "Joy 1.00"},
		{"none", nil, Scene{State: agent.Idle}, ""},
		{"asleep", nil, Scene{State: agent.Sleeping}, "Blink 1.00"},
		{"a mood", nil, Scene{State: agent.Idle, Mood: curious}, "BrowOuterUpLeft 0.70, MouthSmileLeft 0.25, MouthSmileRight 0.25"},
		{"words of an owner", map[string]string{"feeling.curiosity": "Curious", "morph.browOuterUpLeft": "", "morph.mouthSmile": "Joy",
			"state.idle": "Calm, Joy"}, Scene{State: agent.Idle, Mood: curious}, "Calm 1.00, Curious 0.90, Joy 1.00"},
	} {
		if got := weightText(newVMCLink(t, c.words).weights(c.scene)); got != c.want {
			t.Errorf("%s: %s and not %s", c.what, got, c.want)
		}
	}
	for _, e := range agent.Emotions() {
		if _, set := vmcKind().words["face."+e.Name]; !set {
			t.Errorf("the face %s has no word", e.Name)
		}
	}
}

// TestVMCMoves tests that a face changes in three ticks, and a mouth at once.
func TestVMCMoves(t *testing.T) {
	l := newVMCLink(t, nil)
	l.goal = map[string]float64{"Joy": 1}
	var got []string
	move := func(stride float64) {
		moved := l.move(stride)
		got = append(got, fmt.Sprintf("%s %t", weightText(l.current), moved))
	}
	move(vmcStride)
	l.level = .5
	move(0)
	move(0)
	l.goal, l.level = map[string]float64{"Sorrow": .3}, 0
	move(vmcStride)
	move(vmcStride)
	if s := strings.Join(got, "; "); s != "Joy 0.34 true; A 0.50, Joy 0.34 true; A 0.50, Joy 0.34 false; Sorrow 0.30 true; Sorrow 0.30 false" {
		t.Error(s)
	}
}

// TestVMCDatagramsAreSmall tests that datagrams are small even with the maximum number of weights.
func TestVMCDatagramsAreSmall(t *testing.T) {
	told := newListener(t, "")
	d, err := openDatagrams(t.Context(), "udp://"+told.address, oscMessage(vmcApply))
	must.Succeed(t, err)
	l := newVMCLink(t, nil)
	l.datagrams = d
	for i := range maxShapes {
		l.current[fmt.Sprintf("Shape number %02d of a model", i)] = .5
	}
	l.close()
	waittest.For(t, "both datagrams", func() bool { return strings.Count(told.all(), vmcApply) >= 2 })
	if n := strings.Count(told.all(), vmcValue); n != maxShapes || strings.Count(told.all(), vmcApply) != 2 || strings.Contains(told.all(), "0.50") {
		t.Errorf("%d weights: %s", n, told.all())
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if told.largest > 1472 {
		t.Errorf("a datagram of %d bytes", told.largest)
	}
}
