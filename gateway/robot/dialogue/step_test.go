package dialogue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
)

// situation is a named state, and how to reach it: the situation to start from, and the inputs and durations that
// follow, separated by semicolons.
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

// histories are situations that are tested only with the inputs for which the table has a row.
var histories = []situation{
	{"early commands", "greeting", "reboot; emotion; text"},
	{"sound waits", "connecting", "play"},
	{"answers soon", "resting", "1s; text"},
	{"answers later", "resting", "3s; text"},
	{"misheard once", "recognizing", "misheard; nothing; drained"},
	{"silence once", "recognizing", "silence; nothing; drained"},
	{"silence then noise", "silence once", "listen auto; speech began; speech ended; misheard; nothing; drained"},
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

// happenings returns the inputs of the table by their names.
func happenings() map[string]Input {
	robot := func(m xiaozhi.FromRobot) Input { return FromRobot{m} }
	asked := &agent.Question{ID: "q", Text: "May I?"}
	own := &Question{Question: agent.Question{ID: "house", Text: "May we?", Until: time.Unix(1060, 0)}}
	return map[string]Input{
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

		"speech began": SpeechBegan{},
		"speech ended": SpeechEnded{},
		"streaming":    &Packet{Duration: 60 * time.Millisecond}, // repeated for more than a second

		"transcript":   Transcript{"hi"},
		"misheard":     Misheard{},
		"silence":      Misheard{Silence: true},
		"question put": QuestionPut{asked},
		"inquiry put":  QuestionPut{&own.Question},
		"answered":     QuestionAnswered{agent.Answer{Outcome: agent.AnswerTouch}},
		"cannot ask":   QuestionAnswered{agent.Answer{Outcome: agent.AnswerClosed}},
		"finished":     TurnFinished{event.EndDone, ""},
		"goodbye":      TurnFinished{event.EndHangUp, ""},
		"good night":   TurnFinished{event.EndSleep, ""},
		"failed":       TurnFinished{event.EndFailed, "away"},
		"nothing":      TurnFinished{"", ""},

		"starts":          Progress{Started: true},
		"sounds":          Progress{Began: true, Spoken: []string{"Yes."}},
		"plays":           Progress{Began: true},
		"question sounds": Progress{Began: true, Spoken: []string{"May I?"}},
		"inquiry sounds":  Progress{Began: true, Spoken: []string{"May we?"}},
		"paused":          Progress{Stopped: true, Paused: true, AskFor: 10 * time.Second},
		"drained":         Progress{Drained: true},

		"say":      Announce{Announcement{Text: "Dinner."}},
		"notice":   Announce{Announcement{Text: "News.", Notice: "n"}},
		"urgent":   Announce{Announcement{Text: "Fire.", Notice: "u", Urgent: true}},
		"alert":    ShowAlert{Notice: "s"},
		"emotion":  ShowEmotion{agent.Emotion{Name: "happy", Emoji: "😊"}},
		"text":     InjectText{"hi"},
		"be quiet": Abort{},
		"hold":     HoldChannel{time.Unix(2000, 0)},
		"collect":  CollectCommands{},
		"allow":    DecideQuestion{"q", true},
		"deny":     DecideQuestion{"house", false},
		"ask":      Ask{own},
		"withdraw": Withdraw{own},
		"play":     PlaySound{Sound: &Sound{Name: "song"}},
		"reboot":   Reboot{},
		"hang up":  HangUp{"bye"},
		"timer":    Tick{}, // at the time that Deadline returns
	}
}

// played is a state with its own clock, to which a test applies inputs.
type played struct {
	t       *testing.T
	now     time.Time
	state   State
	inputs  map[string]Input
	effects []Effect
}

// in returns a state in the named situation.
func in(t *testing.T, name string) *played {
	t.Helper()
	all := slices.Concat(situations, histories)
	i := slices.IndexFunc(all, func(s situation) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no situation is named %q", name)
	}
	if all[i].from == "" {
		start := time.Unix(1000, 0)
		return &played{t: t, now: start, inputs: happenings(), state: New(start, 15*time.Second, Settings{Greet: true, Idle: time.Minute})}
	}
	p := in(t, all[i].from)
	for input := range strings.SplitSeq(all[i].inputs, "; ") {
		p.happens(input)
	}
	return p
}

// happens applies the named input, or lets a duration such as "1s" pass, and stores the effects.
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
		if due := p.state.Deadline(); !due.IsZero() {
			p.now = due
		}
	}
	if name == "streaming" {
		for range 20 {
			p.now = p.now.Add(60 * time.Millisecond)
			p.step(input)
		}
		return
	}
	p.step(input)
}

func (p *played) step(in Input) {
	var effects []Effect
	p.state, effects = Step(p.state, p.now, in)
	p.effects = append(p.effects, effects...)
	if err := p.state.Check(); err != nil {
		p.t.Fatalf("after %T: %v", in, err)
	}
}

// pass lets time pass, and applies a Tick at each deadline.
func (p *played) pass(d time.Duration) {
	until := p.now.Add(d)
	for due := p.state.Deadline(); !due.IsZero() && !due.After(until); due = p.state.Deadline() {
		p.now = due
		p.step(Tick{})
	}
	p.now = until
}

// change describes the change of a state as the table does: the new phase and whether a question waits, or "=" if
// both are unchanged; the change of the number of waiting announcements; and what follows the turn.
func change(before, after State) string {
	words := "="
	if after.phase != before.phase || after.question.isWaiting() != before.question.isWaiting() {
		words = []string{"greeting", "quiet", "ready", "hearing", "thinking", "speaking", "closing"}[after.phase]
		if after.question.isWaiting() {
			words += ", asked"
		}
	}
	queued := func(s State) int { return len(s.queue.early) + len(s.queue.waiting) }
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

// possible reports whether an input can occur in a state. Some inputs need a turn or a question in a certain state.
func possible(name string, s State) bool {
	fresh := s.turn.active && !s.question.isWaiting()
	switch name {
	case "transcript", "misheard", "silence":
		return s.question.isWaiting() || fresh && !s.turn.understood && s.turn.announcement == Announcement{}
	case "question put":
		return fresh && s.turn.understood
	case "inquiry put":
		return fresh && s.turn.announcement.Question != nil
	case "answered", "cannot ask", "paused":
		return s.question.isWaiting()
	case "finished", "goodbye", "good night", "failed", "nothing":
		return fresh && !s.turn.done
	case "drained":
		return fresh && !s.turn.drained
	case "starts":
		return fresh && s.phase == thinking
	case "sounds":
		return fresh && s.phase == speaking && s.turn.announcement.Sound == nil && s.turn.announcement.Question == nil
	case "plays":
		return s.phase == speaking && s.turn.announcement.Sound != nil
	case "question sounds":
		return s.question.isWaiting() && s.phase == speaking
	case "inquiry sounds":
		return s.phase == speaking && s.turn.announcement.Question != nil
	}
	return true
}

// effectInWords describes an effect as the table does, by its name and its object.
func effectInWords(e Effect) string {
	about := ""
	switch e := e.(type) {
	case Send:
		if _, alert := e.Message.(xiaozhi.Alert); alert {
			return "alert"
		}
		return messageInWords(e.Message)
	case Publish:
		about = event.Kind(e.Event)
		switch e := e.Event.(type) {
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
	case BeginTurn:
		a := e.Announcement
		about = e.Text + a.Text + a.Phrase
		switch {
		case e.Utterance:
			about = "utterance"
			if !e.Aloud {
				about = "utterance in silence"
			}
		case a.Sound != nil:
			about = a.Sound.Name
		case a.Question != nil:
			about = a.Question.Text
		}
	case CancelTurn:
		if e.Abort {
			about = "abort"
		}
	case EndTurn:
		about = e.End
	case AnswerQuestion:
		about = string(e.Outcome)
	case EndInquiry:
		about = string(e.Answer.Outcome)
		if e.Err != nil {
			about = "error"
		}
	case AnswerPlay:
		about = "yes"
		if e.Err != nil {
			about = e.Err.(*httpserver.Fault).Word
		}
	case CloseChannel:
		about = e.Why
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "dialogue.")
	name = strings.ToLower(name[:1]) + name[1:]
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

// TestSteps checks the table for every possible input in every situation. If no row names the situation, the row for
// "elsewhere" applies; without such a row, the input must have no effect. In the situation "closing", no input may
// have an effect.
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

// stepRow is the expected result of an input in a situation: the change of the state and the effects.
type stepRow struct {
	after, effects string
	used           bool
}

// readSteps returns the rows of the table; key: "INPUT in SITUATION".
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
				in(t, where) // fails the test if there is no such situation
			}
			if rows[key] != nil {
				t.Fatalf("%s has two rows", key)
			}
			rows[key] = &stepRow{after: cells[2], effects: cells[3]}
		}
	}
	return rows
}

// messageInWords describes a message to the robot as the table does.
func messageInWords(m xiaozhi.ToRobot) string {
	switch m := m.(type) {
	case xiaozhi.TTSStop:
		return "tts stop"
	case xiaozhi.STT:
		return "stt " + m.Text
	case xiaozhi.LLM:
		return "face " + m.Emotion
	case xiaozhi.Reboot:
		return "reboot"
	}
	return fmt.Sprintf("%T", m)
}

// TestPacketsAllocateNothing checks that packets, of which a listening robot sends seventeen per second, cause no
// allocation.
func TestPacketsAllocateNothing(t *testing.T) {
	for _, where := range []string{"ready", "hearing", "speaking (realtime)", "resting"} {
		p, packet := in(t, where), &Packet{Duration: 60 * time.Millisecond}
		if n := testing.AllocsPerRun(10, func() { p.state, _ = Step(p.state, p.now, packet) }); n > 0 {
			t.Errorf("%s: a packet allocates %v times", where, n)
		}
	}
}
