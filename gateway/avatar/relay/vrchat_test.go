package relay

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/event"
	"perch/must"
)

// TestVRChatParameters tests the parameters for scenes, with configured words.
func TestVRChatParameters(t *testing.T) {
	for _, c := range []struct {
		what  string
		words map[string]string
		scene Scene
		want  string
	}{
		{"numbers", nil, Scene{State: agent.Thinking, Face: "happy"}, "Stackchan/Face=1 Stackchan/State=2"},
		{"the mood's face at rest", nil, Scene{State: agent.Idle, Mood: event.Mood{Face: "sad"}}, "Stackchan/Face=4 Stackchan/State=0"},
		{"a switch", map[string]string{"face.happy": "Smile", "state.thinking": ""}, Scene{State: agent.Thinking, Face: "happy"}, "Smile=T"},
		{"no parameter", map[string]string{"parameter.state": ""}, Scene{State: agent.Thinking}, "Stackchan/Face=0"},
		{"another name", map[string]string{"parameter.state": "Busy", "state.thinking": "1"}, Scene{State: agent.Thinking},
			"Busy=1 Stackchan/Face=0"},
	} {
		w := wordsOf(t, vrchatKind(), c.words)
		var got []string
		for name, v := range (&vrchatLink{words: w}).parameters(c.scene) {
			switch v.tag {
			case 'i':
				got = append(got, name+"="+string('0'+v.data[3]))
			case 'T', 'F':
				got = append(got, name+"="+string(v.tag))
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s and not %s", c.what, s, c.want)
		}
	}
}

// TestVRChatFile tests that the file for Unity has exactly the parameters in the words.
func TestVRChatFile(t *testing.T) {
	file, err := os.ReadFile("../../../docs/avatars/stackchan-vrchat.asset")
	must.Succeed(t, err)
	var names []string
	for line := range strings.Lines(string(file)) {
		if name, is := strings.CutPrefix(line, "  - name: "); is {
			names = append(names, strings.TrimSpace(name))
		}
	}
	var want []string
	for key, word := range vrchatKind().words {
		if strings.HasPrefix(key, "parameter.") || strings.HasPrefix(key, "feeling.") {
			want = append(want, word)
		}
	}
	slices.Sort(names)
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("the file has %q, want %q", names, want)
	}
}

// wordsOf returns the words of a kind with configured changes.
func wordsOf(t testing.TB, k kind, changed map[string]string) words {
	t.Helper()
	w, err := newWords(k, agent.StockWords(), changed)
	must.Succeed(t, err)
	return w
}

// TestVRChatIsLeftAtRest tests that everything is switched off at the end.
func TestVRChatIsLeftAtRest(t *testing.T) {
	l := newListener(t, "")
	h := newHarness(t, Target{Kind: "vrchat", URL: "udp://" + l.address,
		Words: map[string]string{"state.thinking": "Busy", "state.idle": "Rest", "gesture.nod": "2"}})
	h.eventually("it is reached", func() bool { return h.relays.List()[0].OK })
	if note := h.note(); !strings.Contains(note, "has no responses") {
		t.Errorf("its condition is %q", note)
	}
	h.happens(robotA, "s", turn()[:4]...)
	h.happens(robotA, "s", event.Mood{Dominant: "curiosity", Feelings: event.Feelings{Curiosity: .5}},
		event.Emotion{Name: "happy"}, event.Gesture{Name: "nod", By: event.ByModel})
	h.voice.set(.5)
	for _, on := range []string{"/chatbox/typing true", "/avatar/parameters/Busy true", "/avatar/parameters/Stackchan/Mouth 0.50",
		"/avatar/parameters/Stackchan/Curiosity 0.50", "/avatar/parameters/VRCEmote 2", "/avatar/parameters/Stackchan/Face 1"} {
		h.eventually(on, func() bool { return l.has(on) })
	}
	h.stop()
	for _, off := range []string{"/chatbox/typing false", "/avatar/parameters/Busy false", "/avatar/parameters/Stackchan/Mouth 0.00",
		"/avatar/parameters/Stackchan/Curiosity 0.00", "/avatar/parameters/VRCEmote 0", "/avatar/parameters/Stackchan/Face 0"} {
		of, _, _ := strings.Cut(off, " ")
		last := func() string {
			i := strings.LastIndex(l.all(), of+" ")
			return strings.SplitN(l.all()[max(i, 0):], "\n", 2)[0]
		}
		h.eventually(off, func() bool { return last() == off })
	}
	if l.has("/avatar/parameters/Rest true") && !l.has("/avatar/parameters/Rest false") {
		t.Error("the switch of rest stays on")
	}
}

// TestChatboxBounds tests the limits of the chatbox for any texts.
func TestChatboxBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c chatbox
		now := time.Now()
		var last time.Time
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			text := rapid.StringN(0, 300, -1).Draw(t, "text")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				c.setSpeech(text)
			case 1:
				c.notify(strings.Repeat(text+"\n", 3))
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			got := c.next(now)
			if got == "" {
				continue
			}
			if n := len(utf16.Encode([]rune(got))); n > 144 || strings.Count(got, "\n") > 8 {
				t.Fatalf("%d units, %d line ends", n, strings.Count(got, "\n"))
			}
			if now.Sub(last) < 1500*time.Millisecond {
				t.Fatalf("%s after the one before", now.Sub(last))
			}
			last = now
			if len(c.notices) > 4 {
				t.Fatalf("%d notifications wait", len(c.notices))
			}
		}
	})
}

// TestChatboxQueuesNotifications tests that the chatbox queues notifications, and the latest sentence.
func TestChatboxQueuesNotifications(t *testing.T) {
	var c chatbox
	now := time.Now()
	c.setSpeech("one")
	c.notify("the bell")
	c.setSpeech("two")
	var got []string
	for range 4 {
		got = append(got, c.next(now))
		now = now.Add(chatEvery)
	}
	if s := strings.Join(got, "|"); s != "the bell|two||" {
		t.Error(s)
	}
	if got := chatText(strings.Repeat("ab ", 100)); !strings.HasSuffix(got, "…") || len([]rune(got)) != 144 {
		t.Errorf("%q", got)
	}
	if got := chatText(strings.Repeat("😀", 100)); len(utf16.Encode([]rune(got))) > 144 {
		t.Errorf("%q", got)
	}
}
