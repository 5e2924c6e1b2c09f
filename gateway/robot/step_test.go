package robot

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
)

// situation is a state worth a name, and what leads to it: the situation before,
// and since then inputs, and time that passes.
type situation struct{ name, from, inputs string }

var situations = []situation{
	{"greeting", "", ""},
	{"connecting", "greeting", "hello"},
	{"quiet", "connecting", "2s"},
	{"ready", "quiet", "listen auto"},
	{"ready (realtime)", "quiet", "listen realtime"},
	{"hearing", "ready", "speech began"},
	{"hearing (manual)", "quiet", "listen manual"},
	{"hearing (realtime)", "ready (realtime)", "speech began"},
	{"recognizing", "hearing", "speech ended"},
	{"recognizing (realtime)", "hearing (realtime)", "speech ended"},
	{"thinking", "recognizing", "transcript"},
	{"thinking (manual)", "hearing (manual)", "listen stop; transcript"},
	{"thinking (realtime)", "recognizing (realtime)", "transcript"},
	{"speaking", "thinking", "starts; sounds"},
	{"speaking (manual)", "thinking (manual)", "starts; sounds"},
	{"speaking (realtime)", "thinking (realtime)", "starts; sounds"},
	{"resting", "speaking", "finished; drained"},
	{"woken", "quiet", "wake word"},
	{"news to begin", "ready", "3s; notice"},
	{"news", "news to begin", "starts; sounds"},
	{"playing", "ready", "play; starts; plays"},
	{"question to sound", "thinking", "question put; starts"},
	{"question sounds", "question to sound", "question sounds"},
	{"asked", "question sounds", "paused"},
	{"asked (realtime)", "thinking (realtime)", "question put; starts; question sounds; paused"},
	{"answer awaited", "asked", "listen auto"},
	{"answering", "answer awaited", "speech began"},
	{"answer recognizing", "answering", "speech ended"},
	{"inquiry to sound", "ready", "ask; starts"},
	{"inquiry sounds", "inquiry to sound", "inquiry sounds"},
	{"inquiry", "inquiry sounds", "inquiry put; paused"},
	{"closing", "quiet", "hang up"},
}

// histories are situations in which only some inputs are of interest: those that
// a row has.
var histories = []situation{
	{"early commands", "greeting", "reboot; emotion; text"},
	{"sound waits", "connecting", "play"},
	{"answers soon", "resting", "1s; text"},
	{"answers later", "resting", "3s; text"},
	{"misheard once", "recognizing", "misheard; nothing; drained"},
	{"sensing", "quiet", "sensor"},
	{"held", "quiet", "hold"},
	{"opened late", "quiet", "57s; listen auto; 2s"},
	{"noise then news", "misheard once", "50s; say; starts; sounds; finished; 17s; drained"},
	{"cough in a story", "speaking (realtime)", "70s; speech began; speech ended; misheard; nothing; drained"},
	{"aborted story", "speaking", "70s; abort"},
	{"just typed", "quiet", "typed"},
	{"typed a while ago", "just typed", "500ms"},
	{"waking", "woken", "listen auto"},
	{"news waits", "speaking", "notice"},
	{"interrupted", "news waits", "abort"},
	{"put off", "thinking", "say; abort"},
	{"done", "speaking", "finished"},
	{"drained", "speaking", "drained"},
	{"goodbye before news", "news waits", "goodbye"},
	{"last news", "goodbye before news", "drained"},
	{"last news spoken", "last news", "starts; sounds; finished"},
	{"news put off", "news to begin", "listen manual; listen stop; transcript; starts; sounds; finished"},
	{"fire instead", "news", "urgent; starts; sounds; finished"},
	{"playing after abort", "quiet", "abort; play; starts"},
	{"answering late", "answer awaited", "9s; speech began"},
	{"inquiry waits", "speaking", "ask"},
	{"inquiry put", "inquiry sounds", "inquiry put"},
	{"inquiry put off", "inquiry to sound", "abort"},
	{"inquiry then fire", "inquiry", "urgent; touch; answered; finished"},
}

// happenings are the inputs of the table.
func happenings() map[string]input {
	robot := func(m xiaozhi.FromRobot) input { return fromRobot{m} }
	asked := &agent.Question{ID: "q", Text: "May I?"}
	own := &inquiry{Question: agent.Question{ID: "house", Text: "May we?", Until: time.Unix(1060, 0)}}
	return map[string]input{
		"hello":           robot(xiaozhi.Hello{}),
		"listen auto":     robot(xiaozhi.ListenStart{Mode: xiaozhi.Auto}),
		"listen manual":   robot(xiaozhi.ListenStart{Mode: xiaozhi.Manual}),
		"listen realtime": robot(xiaozhi.ListenStart{Mode: xiaozhi.Realtime}),
		"listen stop":     robot(xiaozhi.ListenStop{}),
		"wake word":       robot(xiaozhi.ListenDetect{Text: "hi"}),
		"face":            robot(xiaozhi.ListenDetect{Text: "face"}),
		"typed":           robot(xiaozhi.ListenDetect{Text: "hi", Typed: true}),
		"abort":           robot(xiaozhi.Abort{}),
		"sensor":          robot(xiaozhi.Event{Name: "face_detected"}),
		"touch":           robot(xiaozhi.Event{Name: "head_pet_started"}),
		"mcp":             robot(xiaozhi.FromMCP{}),

		"speech began": speechBegan{},
		"speech ended": speechEnded{},
		"streaming":    streaming{},

		"transcript":   transcript{"hi"},
		"misheard":     misheard{},
		"question put": questionPut{asked},
		"inquiry put":  questionPut{&own.Question},
		"answered":     questionAnswered{agent.Answer{Outcome: agent.AnswerTouch}},
		"cannot ask":   questionAnswered{agent.Answer{Outcome: agent.AnswerClosed}},
		"finished":     turnFinished{event.EndDone, ""},
		"goodbye":      turnFinished{event.EndHangUp, ""},
		"good night":   turnFinished{event.EndSleep, ""},
		"failed":       turnFinished{event.EndFailed, "away"},
		"nothing":      turnFinished{"", ""},

		"starts":          playbackProgress{started: true},
		"sounds":          playbackProgress{began: true, spoken: []string{"Yes."}},
		"plays":           playbackProgress{began: true},
		"question sounds": playbackProgress{began: true, spoken: []string{"May I?"}},
		"inquiry sounds":  playbackProgress{began: true, spoken: []string{"May we?"}},
		"paused":          playbackProgress{stopped: true, paused: true, askFor: 10 * time.Second},
		"drained":         playbackProgress{drained: true},

		"say":      announce{announcement{text: "Dinner."}},
		"notice":   announce{announcement{text: "News.", notice: "n"}},
		"urgent":   announce{announcement{text: "Fire.", notice: "u", urgent: true}},
		"alert":    showAlert{notice: "s"},
		"emotion":  showEmotion{happy},
		"text":     injectText{"hi"},
		"be quiet": abort{},
		"hold":     holdChannel{time.Unix(2000, 0)},
		"collect":  collectCommands{},
		"allow":    decideQuestion{"q", true},
		"deny":     decideQuestion{"house", false},
		"ask":      ask{own},
		"withdraw": withdraw{own},
		"play":     playSound{sound: &sound{name: "song"}},
		"reboot":   reboot{},
		"hang up":  hangUp{"bye"},
		"timer":    tick{}, // when the state has asked for it
	}
}

// played is a session of steps alone, with a clock of its own.
type played struct {
	t       *testing.T
	now     time.Time
	state   state
	inputs  map[string]input
	effects []effect
}

// in is a session in a situation.
func in(t *testing.T, name string) *played {
	t.Helper()
	all := slices.Concat(situations, histories)
	i := slices.IndexFunc(all, func(s situation) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no situation is named %q", name)
	}
	if all[i].from == "" {
		start := time.Unix(1000, 0)
		return &played{t: t, now: start, inputs: happenings(), state: state{greets: true, channel: channelState{opened: start}, limits: limits{
			hello: 10 * time.Second, idle: time.Minute, stalled: 1200 * time.Millisecond, longest: 15 * time.Second}}}
	}
	p := in(t, all[i].from)
	for input := range strings.SplitSeq(all[i].inputs, "; ") {
		p.happens(input)
	}
	return p
}

// happens is one input, and what becomes of it.
func (p *played) happens(name string) {
	p.t.Helper()
	p.effects = nil
	if long, err := time.ParseDuration(name); err == nil {
		p.pass(long)
		return
	}
	input, known := p.inputs[name]
	if !known {
		p.t.Fatalf("no input is named %q", name)
	}
	if name == "timer" {
		if due := p.state.due(); !due.IsZero() {
			p.now = due
		}
	}
	p.step(input)
}

func (p *played) step(in input) {
	var effects []effect
	p.state, effects = step(p.state, p.now, in)
	p.effects = append(p.effects, effects...)
	if err := p.state.check(); err != nil {
		p.t.Fatalf("after %T: %v", in, err)
	}
}

// pass lets time pass, with what is due in it.
func (p *played) pass(d time.Duration) {
	until := p.now.Add(d)
	for due := p.state.due(); !due.IsZero() && !due.After(until); due = p.state.due() {
		p.now = due
		p.step(tick{})
	}
	p.now = until
}

// change is what has become of a state, as the table has it: the phase, and
// whether a question waits; by how many more or fewer announcements the queue is
// longer; and what is to follow the turn. What is as before is left out.
func change(before, after state) string {
	words := "="
	if after.phase != before.phase || after.question.waits() != before.question.waits() {
		words = []string{"greeting", "quiet", "ready", "hearing", "thinking", "speaking", "closing"}[after.phase]
		if after.question.waits() {
			words += ", asked"
		}
	}
	queued := func(s state) int { return len(s.queue.early) + len(s.queue.waiting) }
	if n := queued(after) - queued(before); n != 0 {
		words += fmt.Sprintf(" %+d", n)
	}
	if after.turn.listensAfter && !before.turn.listensAfter {
		words += ", then listens"
	}
	if after.channel.hangsUp && !before.channel.hangsUp {
		words += ", then hangs up"
	}
	return words
}

// possible reports whether an input can come of a turn that is as the state has it.
func possible(name string, s state) bool {
	fresh := s.turn.active && !s.question.waits()
	switch name {
	case "transcript", "misheard":
		return s.question.waits() || fresh && !s.turn.understood && s.turn.announcement == announcement{}
	case "question put":
		return fresh && s.turn.understood
	case "inquiry put":
		return fresh && s.turn.announcement.question != nil
	case "answered", "cannot ask", "paused":
		return s.question.waits()
	case "finished", "goodbye", "good night", "failed", "nothing":
		return fresh && !s.turn.done
	case "drained":
		return fresh && !s.turn.drained
	case "starts":
		return fresh && s.phase == thinking
	case "sounds":
		return fresh && s.phase == speaking && s.turn.announcement.sound == nil && s.turn.announcement.question == nil
	case "plays":
		return s.phase == speaking && s.turn.announcement.sound != nil
	case "question sounds":
		return s.question.waits() && s.phase == speaking
	case "inquiry sounds":
		return s.phase == speaking && s.turn.announcement.question != nil
	}
	return true
}

// effectInWords is an effect as the table has it: its name, and what it is about.
func effectInWords(e effect) string {
	about := ""
	switch e := e.(type) {
	case send:
		if _, alert := e.message.(xiaozhi.Alert); alert {
			return "alert"
		}
		return inWords(e.message)
	case publish:
		about = event.Kind(e.event)
		switch e := e.event.(type) {
		case event.TurnEnded:
			about += " " + e.End
		case event.NotificationChanged:
			about += " " + e.ID + " " + e.State
		case event.Answered:
			about += " " + e.Answer
		case event.SoundEnded:
			about += " " + e.End
		case event.Command:
			about += " " + e.State
		}
		return about
	case beginTurn:
		a := e.announcement
		about = e.text + a.text + a.phrase
		switch {
		case e.utterance:
			about = "utterance"
			if !e.aloud {
				about = "utterance in silence"
			}
		case a.sound != nil:
			about = a.sound.name
		case a.question != nil:
			about = a.question.Text
		}
	case cancelTurn:
		if e.abort {
			about = "abort"
		}
	case endTurn:
		about = e.end
	case answerQuestion:
		about = string(e.Outcome)
	case endInquiry:
		about = string(e.answer.Outcome)
		if e.err != nil {
			about = "error"
		}
	case answerPlay:
		about = "yes"
		if e.err != nil {
			about = e.err.(*door.Fault).Word
		}
	case closeChannel:
		about = e.why
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "robot.")
	return strings.TrimSpace(name + " " + about)
}

func (p *played) effectsInWords() string {
	words := []string{}
	for _, e := range p.effects {
		words = append(words, effectInWords(e))
	}
	return strings.NewReplacer(
		"cancelTurn, turn_ended cancelled", "cancel",
		"cancelTurn abort, turn_ended cancelled", "cancel abort",
		"resetInput, listening_started", "listen",
	).Replace(strings.Join(words, ", "))
}

// TestSteps holds the table for every input in every situation. Where no row
// names the situation, that of "elsewhere" holds, and where there is none either,
// nothing happens. After the hang-up nothing does, whatever comes.
func TestSteps(t *testing.T) {
	rows := readSteps(t)
	for name := range happenings() {
		for _, s := range slices.Concat(situations, histories) {
			row := rows[name+" in "+s.name]
			if row == nil && slices.Contains(histories, s) {
				continue
			}
			if row == nil && s.name != "closing" {
				row = rows[name+" in elsewhere"]
			}
			if row == nil {
				row = &stepRow{after: "="}
			}
			p := in(t, s.name)
			if !possible(name, p.state) {
				continue
			}
			before, at := p.state, p.now
			p.happens(name)
			got := change(before, p.state)
			if name == "timer" && !at.Equal(p.now) {
				got = p.now.Sub(at).String() + " " + got
			}
			if effects := p.effectsInWords(); got != row.after || effects != row.effects {
				t.Errorf("%s in %s: got\n%s | %s\nwant\n%s | %s", name, s.name, got, effects, row.after, row.effects)
			}
			row.used = true
		}
	}
	for name, row := range rows {
		if !row.used {
			t.Errorf("no step is that of %s", name)
		}
	}
}

// stepRow is what becomes of an input in a situation.
type stepRow struct {
	after, effects string
	used           bool
}

// readSteps are the rows, by input and situation.
func readSteps(t *testing.T) map[string]*stepRow {
	t.Helper()
	inputs, rows := happenings(), map[string]*stepRow{}
	for line := range strings.Lines(strings.TrimSpace(steps)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			t.Fatalf("%q is no row", line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, known := inputs[cells[0]]; !known {
			t.Fatalf("%q is no input", cells[0])
		}
		for where := range strings.SplitSeq(cells[1], ", ") {
			key := cells[0] + " in " + where
			if where != "elsewhere" {
				in(t, where) // which there is
			}
			if rows[key] != nil {
				t.Fatalf("%s has two rows", key)
			}
			rows[key] = &stepRow{after: cells[2], effects: cells[3]}
		}
	}
	return rows
}

// check holds the table of phases in state's comment. The transcripts, the fuzz
// tests and the table of steps call it after every step.
func (s state) check() error {
	var broken []string
	must := func(ok bool, what string) {
		if !ok {
			broken = append(broken, what)
		}
	}
	if !s.turn.active {
		must(reflect.DeepEqual(s.turn, turnState{}), "something is left of a turn")
	}
	if !s.question.waits() {
		must(s.question == questionState{}, "something is left of a question")
	}
	must(s.turn.active || !s.question.waits(), "a question waits without a turn")
	must(!s.turn.done || !s.turn.drained, "a turn that is over goes on")
	must(s.question.published || !s.question.audible, "a question is heard and not published")
	must(s.mic.everOpened || !s.mic.open && !s.mic.listening, "a microphone that was never opened is open")
	must(s.phase == greeting || len(s.queue.early) == 0, "early commands are left after hello")
	switch s.phase {
	case greeting:
		must(!s.turn.active && len(s.queue.waiting) == 0, "something waits to be spoken, or is, before hello")
		must(!s.mic.everOpened && !s.channel.settled && s.channel.greeted.IsZero(), "something has happened before hello")
	case quiet, ready:
		must(!s.turn.active || s.question.waits(), "the robot rests in a turn without a question")
		must(s.phase != ready || s.turn.active || s.mic.listening, "we are ready to listen to a closed microphone")
	case hearing, thinking, speaking:
		must(s.turn.active, "there is no turn")
		must(s.mic.resumeAwaited.IsZero(), "the robot is awaited to listen again in a turn")
	case closing:
		must(!s.turn.active, "a turn outlives the channel")
		for _, a := range s.queue.waiting {
			must(a.question == nil, "a question outlives the channel")
		}
	}
	if broken == nil {
		return nil
	}
	return fmt.Errorf("%v in phase %d: %+v", broken, s.phase, s)
}
