package robots

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/robot"
	"perch/language"
)

// Naming makes each robot that is adopted while Run runs, and has no name, ask once for a name. The robot asks
// pauseBeforeName after its adoption if it can be reached, and otherwise pauseBeforeName after its next turn.
type Naming struct {
	Robots    OwnerRegistry
	Server    *robot.Server
	Character func(device.ID) robot.Character
	IsCommand func(text string) bool // reports whether a text is a command
	Log       *slog.Logger
}

const (
	pauseBeforeName = 5 * time.Second  // silence before the question
	timeForName     = 30 * time.Second // time to ask and to answer
	maxNameWords    = 2                // maximum number of words in a name
	maxNameLetters  = 8                // maximum number of characters in a name in a script without spaces
)

// openQuestion is the question of a robot for its name.
type openQuestion struct {
	end      context.CancelFunc
	proposal string // the name that the robot proposes
	asked    bool   // the robot has begun to ask
}

// nameless maps each robot that has not asked yet to the time when it will ask; the zero time means after its next turn.
type nameless map[device.ID]time.Time

// Run handles the events of reader until ctx ends or the bus is closed.
func (n Naming) Run(ctx context.Context, reader *event.Reader) {
	events, stop := reader.Events(ctx)
	defer stop()
	var questions sync.WaitGroup
	defer questions.Wait()
	waiting, open := nameless{}, map[device.ID]*openQuestion{}
	for {
		select {
		case e, more := <-events:
			if !more {
				return
			}
			n.handleEvent(waiting, open, e)
		case <-waiting.next():
		}
		for id, due := range waiting {
			if due.IsZero() || time.Now().Before(due) {
				continue
			}
			delete(waiting, id)
			asking, end := context.WithCancel(ctx)
			proposal := n.propose(id, open)
			open[id] = &openQuestion{end: end, proposal: proposal}
			questions.Go(func() {
				defer end()
				n.ask(ctx, asking, id, proposal)
			})
		}
	}
}

// next returns a channel that receives at the earliest time in w, or nil if all times are zero.
func (w nameless) next() <-chan time.Time {
	var first time.Time
	for _, due := range w {
		if !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// handleEvent updates the times at which robots ask. It cancels the question of a robot that was renamed or forgotten. If
// somebody speaks or the robot goes offline before it has asked, it asks after its next turn.
func (n Naming) handleEvent(waiting nameless, open map[device.ID]*openQuestion, e event.Envelope) {
	_, waits := waiting[e.Robot]
	question := open[e.Robot]
	switch ev := e.Event.(type) {
	case event.RobotAdopted:
		waiting[e.Robot] = time.Time{}
		if slices.Contains(n.Server.Reachable(), e.Robot) {
			waiting[e.Robot] = time.Now().Add(pauseBeforeName)
		}
	case event.RobotRenamed, event.RobotForgotten:
		delete(waiting, e.Robot)
		if question != nil {
			question.end()
			delete(open, e.Robot)
		}
	case event.Asked:
		if question != nil {
			question.asked = true
		}
	case event.TurnEnded:
		if waits && ev.End == event.EndDone {
			waiting[e.Robot] = time.Now().Add(pauseBeforeName)
		}
	case event.Hearing, event.Heard, event.ThinkingStarted, event.RobotOffline:
		if question != nil && !question.asked {
			question.end()
			delete(open, e.Robot)
			waits = true
		}
		if waits {
			waiting[e.Robot] = time.Time{}
		}
	}
}

// ask makes a robot ask for its name, and stores the answer. asking is the question's context, which handleEvent may
// cancel. An answer that is neither a name nor yes or no is handled like any other text.
func (n Naming) ask(ctx, asking context.Context, id device.ID, proposal string) {
	r, err := n.Robots.Get(id)
	speech := n.Character(id).Speech
	if err != nil || !r.Adopted() || r.Settings.Name != "" || speech.Mute || speech.Deaf {
		return
	}
	words := new(language.Catalogue).In(speech.Language)
	a, err := n.Server.Ask(asking, id, agent.Question{Text: words.Message("naming.ask", "name", proposal), Until: time.Now().Add(timeForName)})
	if err != nil {
		n.Log.Debug("a robot could not ask for its name", "robot", id, "err", err)
		return
	}
	name := proposal // accepted by a touch, or by a yes on the page
	switch a.Outcome {
	case agent.AnswerTouch, agent.AnswerAllowed:
	case agent.AnswerDenied:
		name = ""
	case agent.AnswerGiven:
		yes, understood := agent.YesOrNo(new(language.Catalogue), a.Text)
		if !yes {
			name = ""
		}
		if understood {
			break
		}
		if name = nameIn(a.Text, words); name == "" || n.IsCommand(a.Text) {
			if err := n.Server.InjectText(ctx, id, a.Text); err != nil { // the robot answers it like any other text
				n.Log.Debug("a robot cannot answer what was said instead of a name", "robot", id, "err", err)
			}
			return
		}
	default:
		return // nobody has answered
	}
	reply := "naming.unnamed"
	if name != "" {
		reply = "naming.named"
		if err := n.Robots.Nickname(id, name); err != nil {
			n.Log.Info("the spoken name cannot be stored", "robot", id, "err", err)
			reply = "naming.unnamed"
		}
	}
	if _, err := n.Server.Speak(ctx, id, words.Message(reply, "name", name)); err != nil {
		n.Log.Debug("a robot cannot say its name", "robot", id, "err", err)
	}
}

// propose returns a name that no robot has or proposes, or the first name of the list if all are taken.
func (n Naming) propose(id device.ID, open map[device.ID]*openQuestion) string {
	words := new(language.Catalogue).In(n.Character(id).Speech.Language)
	names := strings.Split(words.Message("naming.names"), ", ")
	taken := func(name string) bool {
		for _, q := range open {
			if q.proposal == name {
				return true
			}
		}
		return slices.ContainsFunc(n.Robots.List(), func(r device.Robot) bool { return strings.EqualFold(r.Settings.Name, name) })
	}
	if i := slices.IndexFunc(names, func(name string) bool { return !taken(name) }); i >= 0 {
		return names[i]
	}
	return names[0]
}

// nameIn returns the name in an answer such as "your name is Momo", or "" if the answer contains no valid
// name.
func nameIn(answer string, words *language.Words) string {
	trim := func(s string) string {
		return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) })
	}
	name := trim(answer)
	for around := range strings.SplitSeq(words.Message("naming.around"), ", ") {
		if rest, is := strings.CutPrefix(strings.ToLower(name), around); is && len(rest) < len(name) {
			name = trim(name[len(name)-len(rest):])
		} else if rest, is := strings.CutSuffix(name, around); is {
			name = trim(rest)
		}
	}
	spaceless := strings.ContainsFunc(name, language.Spaceless)
	if name == "" || len(strings.Fields(name)) > maxNameWords || spaceless && utf8.RuneCountInString(name) > maxNameLetters {
		return ""
	}
	first, n := utf8.DecodeRuneInString(name)
	if name, err := device.CheckName(string(unicode.ToUpper(first)) + name[n:]); err == nil {
		return name
	}
	return ""
}
