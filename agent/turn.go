// Package agent answers turns: from the words a person spoke to the replies a
// robot or skin renders. It owns the conversations, the memory and the visible state
// of agents. Brains are drivers in the packages below; each implements the
// interface Brain.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perch/device"
	"perch/driver"
	"perch/event"
)

// Turn is the input of a brain.
type Turn struct {
	Conversation string    // whose history the turn belongs to: a robot's id, or the name of a skin's conversation
	Robot        device.ID // empty if no robot takes part
	Session      string
	Untrusted    bool       // may talk, but not act on the home; an untrusted robot is a stranger
	Unpublished  bool       // the caller publishes its events, the Mind does not
	Text         string     // what the person said
	Now          time.Time  // in the household's zone
	Language     string     // BCP 47
	Name         string     // the robot's name in its home; may be empty
	Persona      *Persona   // of this robot; nil is the household's
	Brain        string     // the brain to ask first, by its kind, or "openai 2" for the second of a kind; empty is the first in the list
	Body         Body       // nil if no robot takes part
	History      []Exchange // replaced by the Mind's history, if it has one
}

// Stranger reports whether the turn is of a robot that nobody has adopted by name.
func (t Turn) Stranger() bool { return t.Untrusted && t.Robot != "" }

// Exchange is one past turn: the text heard and the text said in answer.
type Exchange struct {
	Heard string `json:"heard"`
	Said  string `json:"said"`
	Emoji string `json:"emoji,omitempty"` // of the face shown with the answer
}

// Body is the robot that a turn may act through.
type Body interface {
	// Tools lists the robot's tools that a brain may use.
	Tools() []device.Tool
	// Call runs a tool and returns its result.
	Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error)
	// Reboot restarts the robot after the present speech.
	Reboot(ctx context.Context) error
}

// Reply is one piece of an answer. Replies are one ordered sequence, so that text,
// face and sound stay in step. The set is closed: Felt, Say, Cue, Note, Ask,
// ToolStatus and Done.
type Reply interface{ isReply() }

// Felt changes the face.
type Felt struct {
	Emotion   Emotion
	Intensity float64 // from 0 to 1; 0 is unknown and stands for 1
	Tag       string  // the model's own word for it, if any
	// Assumed marks the default face of words without a face. It does not replace a
	// face that the turn has, such as the face a tool has set.
	Assumed bool
}

// Say is one sentence to be spoken, without emoji.
type Say struct{ Text string }

// Cue is a stage direction. Robots make the gesture of an "anim", and ignore others.
type Cue struct {
	Kind  string // "anim" or "pause"
	Value string // as the model wrote it: "wave", "1.5"
}

// Gesture returns the gesture that a cue asks for. ok is false for any other cue and
// for a value that is not a valid gesture name.
func (c Cue) Gesture() (_ event.Gesture, ok bool) {
	name, ok := event.GestureName(c.Value)
	return event.Gesture{Name: name, By: event.ByModel}, ok && c.Kind == "anim"
}

// Note is a fact to remember. The Mind remembers it and does not pass it on.
type Note struct {
	Text      string
	Type      string // user, feedback, project or reference; empty is user
	Tags      string // words with a space between
	Important bool
}

// Ask is a question whose answer the turn waits for. The receiver must call Answer
// exactly once before it returns.
type Ask struct {
	ID     string
	Text   string        // to be spoken and shown
	Within time.Duration // the question expires after this time
	Answer func(Answer)
}

// Outcome is how a question ended.
type Outcome string

// The outcomes.
const (
	AnswerGiven   Outcome = "answered"
	AnswerTouch   Outcome = "touched" // the head was touched: yes
	AnswerAllowed Outcome = "allowed" // by the robot's owner, on another device
	AnswerDenied  Outcome = "denied"  // by the robot's owner, on another device
	AnswerExpired Outcome = "expired"
	AnswerClosed  Outcome = "closed" // the channel closed, or nobody can be asked: no
)

// Answer ends a question.
type Answer struct {
	Outcome Outcome
	Text    string // the spoken answer, if any
}

// ToolStatus reports a running or finished tool.
type ToolStatus struct{ event.ToolStatus }

// Done ends the sequence of replies.
type Done struct{ End End }

// End is what happens after a turn.
type End string

// The values that a brain may choose.
const (
	Continue End = event.EndDone   // the conversation goes on
	HangUp   End = event.EndHangUp // the channel closes after the last packet
	Sleep    End = event.EndSleep  // good night: hang up, and show the sleeping state
)

func (Felt) isReply()       {}
func (Say) isReply()        {}
func (Cue) isReply()        {}
func (Note) isReply()       {}
func (Ask) isReply()        {}
func (ToolStatus) isReply() {}
func (Done) isReply()       {}

// Brain answers turns.
type Brain interface {
	// Name is the brain's kind as the configuration spells it.
	Name() string
	// Think answers one turn through out and ends with Done. It returns out's
	// error if out fails, ctx's error if ctx ends, and an error that wraps ErrAway
	// if the brain cannot answer at the moment.
	Think(ctx context.Context, t Turn, out func(Reply) error) error
}

// Silent is the brain of kind NoBrain, which answers nothing.
type Silent struct{}

// Name returns NoBrain.
func (Silent) Name() string { return NoBrain }

// Think ends the turn without a word.
func (Silent) Think(_ context.Context, _ Turn, out func(Reply) error) error {
	return out(Done{End: Continue})
}

// SilentDriver declares the brain of kind NoBrain. It has no options.
func SilentDriver() driver.Driver[struct{}, Brain] {
	return driver.Driver[struct{}, Brain]{Kind: NoBrain, Runs: []string{"nothing"}, Sample: `{kind: none}    # never answers; everything else works`,
		Options: func() any { return new(struct{}) },
		Check:   func(any, struct{}) error { return nil },
		New:     func(any, struct{}) (Brain, error) { return Silent{}, nil }}
}

// ErrAway is wrapped by the errors of a brain that cannot be reached. The next
// brain in the list is then asked, unless this one has already spoken in the turn.
var ErrAway = errors.New("the brain does not answer")

// ErrStranger is returned for a stranger by a brain that can act on the home. It wraps
// ErrAway, and is not a fault of the brain.
var ErrStranger = fmt.Errorf("%w: it acts on the home, and this robot is not adopted by name; perch robot adopt ROBOT adopts it", ErrAway)

// ErrNoQuestion is returned for an answer to a question that does not wait for
// one: it was answered, it has expired, or it was never asked.
var ErrNoQuestion = errors.New("no question waits for an answer under that id")

// Question is a permission request of an agent, answered by yes or no.
type Question struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`    // as it is asked
	Robot   device.ID `json:"robot"`   // the robot that asks
	Session string    `json:"session"` // of the waiting turn
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"` // without an answer by then, the answer is no
}
