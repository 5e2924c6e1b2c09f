package relay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
)

// player is a fake program of a kind.
type player struct {
	kind  string
	start func(t testing.TB) (Target, toldProgram)
	// again tells whether the relay repeats messages. A message that repeats the last value of its address is
	// then ignored.
	again bool
}

// toldProgram is a fake program that records the messages that it receives.
type toldProgram interface {
	all() string // returns the messages, one per line
	stop()       // kills the program
	again()      // starts the program at the same address, without recorded messages
}

// players returns a player of each kind.
func players() []player {
	return []player{
		{"aituberkit", func(t testing.TB) (Target, toldProgram) {
			f := newFakeAITuber(t)
			return Target{URL: f.URL, Key: f.key}, f
		}, false},
		{"chatdollkit", func(t testing.TB) (Target, toldProgram) {
			s := newLineServer(t, "")
			return Target{URL: "tcp://" + s.address}, plainly{s, performedLine}
		}, true},
		{"clawd", func(t testing.TB) (Target, toldProgram) {
			c := newFakeClawd(t, anywhere)
			return Target{URL: c.URL}, c
		}, false},
		{"nizima", func(t testing.TB) (Target, toldProgram) {
			f := newFakeNizima(t)
			f.eager = true
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, true},
		{"obs", func(t testing.TB) (Target, toldProgram) {
			o := newFakeOBS("a password")
			f := greetingFake(t, "", o.greet, o.answer)
			return Target{URL: "ws://" + f.address, Key: o.password}, f
		}, false},
		{"unreal", func(t testing.TB) (Target, toldProgram) {
			f := unrealFake(t)
			return Target{URL: "ws://" + f.address}, plainly{f, unnumbered}
		}, false},
		{"veadotube", func(t testing.TB) (Target, toldProgram) {
			f := newFakeVeado(t, "")
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, false},
		{"vmc", func(t testing.TB) (Target, toldProgram) {
			l := newListener(t, "")
			return Target{URL: "udp://" + l.address}, plainly{l, weightLine}
		}, true},
		{"vrchat", func(t testing.TB) (Target, toldProgram) {
			l := newListener(t, "")
			return Target{URL: "udp://" + l.address}, l
		}, true},
		{"vtube_studio", func(t testing.TB) (Target, toldProgram) {
			f := newFakeVTube(t, "").allowed()
			return Target{URL: "ws://" + f.address}, plainly{f, f.line}
		}, true},
		{"warudo", func(t testing.TB) (Target, toldProgram) {
			f := newFake(t, "", nil)
			return Target{URL: "ws://" + f.address}, f
		}, false},
		{"webhook", func(t testing.TB) (Target, toldProgram) {
			r := newReceiver(t, nil)
			return Target{URL: r.URL}, untimed{r}
		}, false},
	}
}

// plainly is a program whose messages are reduced to their constant parts.
type plainly struct {
	toldProgram
	line func(message string) string // returns the constant part, or "" to skip the message
}

func (p plainly) all() string {
	var lines []string
	for message := range strings.Lines(p.toldProgram.all()) {
		if line := p.line(message); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// performedLine returns the text that ChatdollKit performs. A face gets the address "face", because faces are
// repeated.
func performedLine(message string) string {
	_, text, _ := strings.Cut(message, `"Text":"`)
	text, _, _ = strings.Cut(text, `"`)
	if strings.HasPrefix(text, "[face:") {
		return "face " + text
	}
	return text
}

// unnumbered returns a request to Unreal without its number.
func unnumbered(message string) string {
	return regexp.MustCompile(`"(Id|RequestId)":\d+,`).ReplaceAllString(strings.TrimSpace(message), "")
}

// weightLine returns the final weight of a blend shape. It skips the weights while the blend shape moves.
func weightLine(message string) string {
	shape, is := strings.CutPrefix(strings.TrimSpace(message), "/VMC/Ext/Blend/Val ")
	if whole := strings.HasSuffix(shape, ".00") || strings.HasSuffix(shape, ".50"); !is || !whole {
		return ""
	}
	return shape
}

// act is a step of a spoken turn: an event, a loudness of the robot, or passing time.
type act struct {
	what   string
	event  event.Event
	mouth  float64
	passes bool
}

// acts returns a spoken turn, its end, and a notification.
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
		{what: "it is at rest", passes: true},
		{what: "a notification", event: event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"}},
	}
}

// playing is a running player.
type playing struct {
	player
	told toldProgram
	read int               // number of lines that were read
	last map[string]string // last line for each address
}

// play starts a program of each kind, relays to these programs, and the servers and programs of visitors. talk
// is the name of a conversation, which the visitors join.
func play(t testing.TB, talk string, change func(*Relays)) (*harness, []*playing) {
	t.Helper()
	var targets []Target
	var all []*playing
	for _, p := range players() {
		target, told := p.start(t)
		target.Kind = cmp.Or(target.Kind, p.kind)
		targets, all = append(targets, target), append(all, &playing{player: p, told: told})
	}
	h := changedHarness(t, slog.DiscardHandler, change, targets...)
	for kind, told := range visitors(t, h.feed, talk) {
		all = append(all, &playing{player: player{kind: kind}, told: told})
	}
	slices.SortFunc(all, func(a, b *playing) int { return strings.Compare(a.kind, b.kind) })
	h.eventually("all are connected", func() bool {
		return !slices.ContainsFunc(h.relays.List(), func(s Status) bool { return !s.OK })
	})
	return h, all
}

// again starts the killed program, without recorded messages.
func (p *playing) again() {
	p.read, p.last = 0, nil
	p.told.again()
}

// fresh returns the new lines, sorted, because their order within a step does not matter. If the first new
// lines are the wanted lines, fresh stops after them, and the next step reads the others. If wanted is nil,
// fresh returns all new lines. read is the number of lines up to the last returned one.
func (p *playing) fresh(wanted []string) (lines []string, read int) {
	var all []string
	if told := p.told.all(); told != "" {
		all = strings.Split(told, "\n")
	}
	for read = min(p.read, len(all)); read < len(all); read++ {
		line := all[read]
		if wanted != nil && slices.Equal(lines, wanted) && !slices.Contains(lines, line) {
			break
		}
		address, _, _ := strings.Cut(line, " ")
		if line != "" && (!p.player.again || p.last[address] != line) && !slices.Contains(lines, line) {
			lines = append(lines, line)
			slices.Sort(lines)
		}
	}
	return lines, read
}

// take marks the lines as read.
func (p *playing) take(lines []string, read int) {
	p.read = read
	if p.last == nil {
		p.last = map[string]string{}
	}
	for _, line := range lines {
		address, _, _ := strings.Cut(line, " ")
		p.last[address] = line
	}
}

// golden compares the messages after each act with a file. With PERCH_GOLDEN=rewrite, it writes the file.
type golden struct {
	t       testing.TB
	file    string
	want    map[string][]string // expected messages; key: act, a slash and kind
	rewrite bool
	wait    time.Duration // how long to wait for the messages of an act if the file is written
	written strings.Builder
}

func newGolden(t testing.TB, file string) *golden {
	t.Helper()
	g := &golden{t: t, file: file, wait: quietAfter, rewrite: os.Getenv("PERCH_GOLDEN") == "rewrite"}
	text, err := os.ReadFile(file)
	if err != nil && !g.rewrite {
		t.Fatal(err)
	}
	g.want = readActs(string(text))
	return g
}

// quietAfter is longer than a step takes: gestures and the chatbox take more than a second.
const quietAfter = 2500 * time.Millisecond

// act waits until each program has received the messages of an act, and fails if others come before. It
// returns when each program had received them, by kind.
func (g *golden) act(what string, all []*playing) (at map[string]time.Time) {
	g.t.Helper()
	fmt.Fprintf(&g.written, "== %s\n", what)
	if g.rewrite {
		time.Sleep(g.wait)
	}
	at = map[string]time.Time{}
	for until := time.Now().Add(time.Minute); len(at) < len(all); time.Sleep(2 * time.Millisecond) {
		for _, p := range all {
			if !at[p.kind].IsZero() {
				continue
			}
			expected := append([]string{}, g.want[what+"/"+p.kind]...)
			if g.rewrite {
				expected = nil
			}
			lines, read := p.fresh(expected)
			if !g.rewrite && !slices.Equal(lines, expected) {
				if time.Now().After(until) {
					g.t.Fatalf("%s: %s is told\n%s\nand not\n%s", what, p.kind, strings.Join(lines, "\n"), strings.Join(expected, "\n"))
				}
				continue
			}
			at[p.kind] = time.Now()
			p.take(lines, read)
			for _, line := range lines {
				fmt.Fprintf(&g.written, "%s: %s\n", p.kind, line)
			}
		}
	}
	return at
}

// end checks that there are no more messages, or writes the file.
func (g *golden) end(all []*playing) {
	g.t.Helper()
	if !g.rewrite {
		for _, p := range all {
			if lines, _ := p.fresh(nil); len(lines) > 0 {
				g.t.Errorf("%s is also told\n%s", p.kind, strings.Join(lines, "\n"))
			}
		}
		return
	}
	must.Succeed(g.t, os.WriteFile(g.file, []byte(g.written.String()), 0o644))
}

// TestSpokenTurn compares the messages to all programs with testdata/turn.txt: to programs of relays, and to
// programs that connect to servers.
func TestSpokenTurn(t *testing.T) {
	if len(players()) != len(kinds()) {
		t.Errorf("of %d kinds %d have a player", len(kinds()), len(players()))
	}
	g := newGolden(t, "testdata/turn.txt")
	h, all := play(t, robotsTalk, func(*Relays) {})
	g.act("the programs are connected", all)
	for _, a := range acts() {
		h.happen(a)
		g.act(a.what, all)
	}
	g.end(all)
}

// TestReturnOfPrograms tests that each program that is killed while the robot speaks is connected again by the
// first attempt after its return, and gets only the present state. The first attempt comes within a second; see
// TestReconnectsWithinASecond. The test also checks that no goroutine remains.
func TestReturnOfPrograms(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("all", comesBack)
	goleak.VerifyNone(t, before)
}

// watched is a program that records failed attempts to connect.
type watched struct {
	program
	mu     sync.Mutex
	failed []time.Time // when each failed attempt began
}

func (w *watched) open(ctx context.Context, note func(error)) (link, error) {
	began := time.Now()
	l, err := w.program.open(ctx, note)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = append(w.failed, began)
	}
	return l, err
}

// since returns how many failed attempts began after a time.
func (w *watched) since(when time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.failed {
		if at.After(when) {
			n++
		}
	}
	return n
}

func comesBack(t *testing.T) {
	g := newGolden(t, "testdata/return.txt")
	tries := map[string]*watched{}
	h, all := play(t, robotsTalk, func(r *Relays) {
		for _, one := range r.relays {
			tries[one.kind.Name] = &watched{program: one.program}
			one.program = tries[one.kind.Name]
		}
	})
	g.act("the programs are connected", all)
	for _, a := range []act{{what: "the robot is there", event: event.RobotOnline{}}, {what: "it is sad", event: event.Emotion{Name: "sad"}},
		{what: "it speaks", event: event.SpeakingStarted{}}, {what: "a sentence", event: event.Said{Text: "It is cold."}},
		{what: "its mouth opens", mouth: .5}} {
		h.happen(a)
		g.act(a.what, all)
	}
	for _, p := range all {
		p.told.stop()
	}
	h.happens(robotA, "s", event.Emotion{Name: "happy"}, event.Asked{ID: "q", Text: "May I open the window?"})
	h.voice.set(1)
	h.eventually("it asks", func() bool {
		v := h.feed.Join(feed.Filter{Kinds: []string{feed.KindNotice}})
		defer v.Leave()
		f, _ := v.Pop()
		return f != nil
	})
	back := map[string]time.Time{}
	h.eventually("all are away, and started again", func() bool {
		for _, p := range all {
			away := !slices.ContainsFunc(h.relays.List(), func(s Status) bool { return s.Kind == p.kind && s.OK })
			if away && back[p.kind].IsZero() { // the wait for the next attempt has just begun
				p.again()
				back[p.kind] = time.Now()
			}
		}
		return len(back) == len(all)
	})
	at := g.act("it is back", all)
	for _, p := range all {
		t.Logf("%s shows what there is %s after its return", p.kind, at[p.kind].Sub(back[p.kind]).Round(time.Millisecond))
		if w := tries[p.kind]; w != nil && w.since(back[p.kind]) > 0 {
			t.Errorf("%s was tried in vain %d times after its return", p.kind, w.since(back[p.kind]))
		}
	}
	for _, a := range []act{{what: "it is answered", event: event.Answered{ID: "q"}}, {what: "its mouth shuts", mouth: 0},
		{what: "the turn ends", event: event.TurnEnded{End: event.EndDone}}, {what: "it is at rest", passes: true}} {
		h.happen(a)
		g.act(a.what, all)
	}
	g.end(all)
}

// happen performs an act.
func (h *harness) happen(a act) {
	switch {
	case a.event != nil:
		h.happens(robotA, "s", a.event)
	case !a.passes:
		h.voice.set(a.mouth)
	}
}

// readActs returns the lines of a transcript by act and kind.
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
