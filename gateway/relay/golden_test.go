package relay

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/event"
)

// player is a program of a kind, which notes what it is told.
type player struct {
	kind  string
	start func(t testing.TB) (Target, interface{ all() string })
	// again reports whether a program is told now and then what it was told before; then
	// only what is new of an address counts.
	again bool
}

// players are a program of each kind.
func players() []player {
	return []player{
		{"aituberkit", func(t testing.TB) (Target, interface{ all() string }) {
			f := newFakeAITuber(t)
			return Target{URL: f.URL, Secret: f.key}, f
		}, false},
		{"chatdollkit", func(t testing.TB) (Target, interface{ all() string }) {
			s := newLineServer(t, "", "")
			return Target{URL: "tcp://" + s.l.Addr().String()}, plainly{s, performedLine}
		}, true},
		{"clawd", func(t testing.TB) (Target, interface{ all() string }) {
			c := newFakeClawd(t, "127.0.0.1:0")
			return Target{URL: "http://" + c.address}, c
		}, false},
		{"nizima", func(t testing.TB) (Target, interface{ all() string }) {
			f := newFakeNizima(t)
			f.eager = true
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, true},
		{"obs", func(t testing.TB) (Target, interface{ all() string }) {
			o := newFakeOBS("a password")
			f := greetingFake(t, "", o.greet, o.answer)
			return Target{URL: "ws://" + f.address, Secret: o.password}, f
		}, false},
		{"unreal", func(t testing.TB) (Target, interface{ all() string }) {
			f := unrealFake(t, true)
			return Target{URL: "ws://" + f.address}, plainly{f, unnumbered}
		}, false},
		{"veadotube", func(t testing.TB) (Target, interface{ all() string }) {
			f := newFakeVeado(t, "")
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, false},
		{"vmc", func(t testing.TB) (Target, interface{ all() string }) {
			l := newListener(t, "")
			return Target{URL: "udp://" + l.address}, plainly{l, weightLine}
		}, true},
		{"vrchat", func(t testing.TB) (Target, interface{ all() string }) {
			l := newListener(t, "")
			return Target{URL: "udp://" + l.address}, l
		}, true},
		{"vtube_studio", func(t testing.TB) (Target, interface{ all() string }) {
			f := newFakeVTube(t, "").allowed()
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, true},
		{"warudo", func(t testing.TB) (Target, interface{ all() string }) {
			f := newFake(t, "", nil)
			return Target{URL: "ws://" + f.address}, f
		}, false},
		{"webhook", func(t testing.TB) (Target, interface{ all() string }) {
			r := newReceiver(t, nil)
			return Target{URL: r.URL}, transcript{r}
		}, false},
	}
}

// plainly is what a program is told, but for what differs from day to day.
type plainly struct {
	told interface{ all() string }
	line func(message string) string // empty is left out
}

func (p plainly) all() string {
	var lines []string
	for message := range strings.Lines(p.told.all()) {
		if line := p.line(message); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// performedLine is what ChatdollKit performs: a face is told again now and then.
func performedLine(message string) string {
	_, text, _ := strings.Cut(message, `"Text":"`)
	text, _, _ = strings.Cut(text, `"`)
	if strings.HasPrefix(text, "[face:") {
		return "face " + text
	}
	return text
}

// unnumbered is what Unreal is asked, without the number of the call.
func unnumbered(message string) string {
	return regexp.MustCompile(`"(Id|RequestId)":\d+,`).ReplaceAllString(strings.TrimSpace(message), "")
}

// weightLine is the weight of a blend shape that it moves to, not those on its way.
func weightLine(message string) string {
	shape, is := strings.CutPrefix(strings.TrimSpace(message), "/VMC/Ext/Blend/Val ")
	if whole := strings.HasSuffix(shape, ".00") || strings.HasSuffix(shape, ".50"); !is || !whole {
		return ""
	}
	return shape
}

// act is a step of a spoken turn: something happens, or the robot is heard so loud.
type act struct {
	what  string
	event event.Event
	mouth float64
}

// acts are a spoken turn, what a person is told after it, and the end of both.
func acts() []act {
	return []act{
		{what: "the robot is there", event: event.RobotOnline{}},
		{what: "it listens", event: event.ListeningStarted{}},
		{what: "it has heard", event: event.Heard{Text: "How warm is it?"}},
		{what: "it thinks", event: event.ThinkingStarted{}},
		{what: "a tool works", event: event.ToolStatus{ID: "1", Name: "weather", Status: event.ToolRunning}},
		{what: "the tool is done", event: event.ToolStatus{ID: "1", Name: "weather", Status: event.ToolDone}},
		{what: "it is happy", event: event.Emotion{Name: "happy"}},
		{what: "it waves", event: event.Gesture{Name: "wave", By: event.ByModel}},
		{what: "it speaks", event: event.SpeakingStarted{}},
		{what: "its first sentence", event: event.Said{Text: "It is warm."}},
		{what: "its mouth opens", mouth: 0.5},
		{what: "its mouth is wide open", mouth: 1},
		{what: "its mouth shuts", mouth: 0},
		{what: "its second sentence", event: event.Said{Text: "Ja, gern ☕."}},
		{what: "the turn ends", event: event.TurnEnded{End: event.EndDone}},
		{what: "a notification", event: event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"}},
	}
}

// playing is a player at work.
type playing struct {
	player
	told interface{ all() string }
	read int               // lines
	last map[string]string // by address, where it is told again
}

// fresh are the lines since it was last asked, sorted: the order of what belongs
// together is no program's business.
func (p *playing) fresh() (lines []string, read int) {
	var all []string
	if told := p.told.all(); told != "" {
		all = strings.Split(told, "\n")
	}
	for _, line := range all[min(p.read, len(all)):] {
		address, _, _ := strings.Cut(line, " ")
		if line != "" && (!p.again || p.last[address] != line) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines, len(all)
}

// take counts the lines as read.
func (p *playing) take(lines []string, read int) {
	p.read = read
	for _, line := range lines {
		address, _, _ := strings.Cut(line, " ")
		p.last[address] = line
	}
}

// quietAfter is how long nothing comes after what a step brings about: gestures end and
// the chatbox waits for longer than a second.
const quietAfter = 2500 * time.Millisecond

// TestASpokenTurnThroughAllAtOnce is what every program is told of it.
// PERCH_GOLDEN=rewrite writes testdata/turn.txt.
func TestASpokenTurnThroughAllAtOnce(t *testing.T) {
	const file = "testdata/turn.txt"
	rewrite := os.Getenv("PERCH_GOLDEN") == "rewrite"
	golden, err := os.ReadFile(file)
	if err != nil && !rewrite {
		t.Fatal(err)
	}
	want := readActs(string(golden))
	if len(players()) != len(kinds()) {
		t.Errorf("of %d kinds %d have a player", len(kinds()), len(players()))
	}
	var targets []Target
	var all []*playing
	for _, p := range players() {
		target, told := p.start(t)
		target.Kind = cmp.Or(target.Kind, p.kind)
		targets, all = append(targets, target), append(all, &playing{p, told, 0, map[string]string{}})
	}
	h := newHarness(t, targets...)
	h.eventually("all are connected", func() bool {
		return !slices.ContainsFunc(h.relays.List(), func(s Shown) bool { return !s.OK })
	})
	var written strings.Builder
	for _, a := range append([]act{{what: "the programs are connected"}}, acts()...) {
		fmt.Fprintf(&written, "== %s\n", a.what)
		switch {
		case a.event != nil:
			h.happens(robotA, "s", a.event)
		default:
			h.voice.set(a.mouth)
		}
		if rewrite {
			time.Sleep(quietAfter)
		}
		for _, p := range all {
			expected := want[a.what+"/"+p.kind]
			lines, read := p.fresh()
			for until := time.Now().Add(10 * time.Second); !rewrite && !slices.Equal(lines, expected); lines, read = p.fresh() {
				if time.Now().After(until) {
					t.Fatalf("%s: %s is told\n%s\nand not\n%s", a.what, p.kind, strings.Join(lines, "\n"), strings.Join(expected, "\n"))
				}
				time.Sleep(5 * time.Millisecond)
			}
			p.take(lines, read)
			for _, line := range lines {
				fmt.Fprintf(&written, "%s: %s\n", p.kind, line)
			}
		}
	}
	if rewrite {
		if err := os.WriteFile(file, []byte(written.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readActs are the lines of a transcript, by act and kind.
func readActs(text string) map[string][]string {
	all, act := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if what, is := strings.CutPrefix(line, "== "); is {
			act = what
		} else if kind, told, is := strings.Cut(line, ": "); is {
			all[act+"/"+kind] = append(all[act+"/"+kind], told)
		}
	}
	return all
}
