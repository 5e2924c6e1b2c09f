// Package agent answers turns: from the words a person spoke to the replies a
// robot or skin renders. It owns the conversations, the memory and the state that
// an agent visibly is in. Brains are drivers in folders below; each meets the
// interface Brain.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perch/device"
	"perch/event"
)

// Turn is what a brain is given to answer.
type Turn struct {
	Conversation string    // whose history it belongs to: a robot's id, or a skin's own
	Robot        device.ID // empty where no robot takes part
	Session      string
	Untrusted    bool       // somebody who may talk, and not act in the house; a robot that is one is a Stranger
	Unpublished  bool       // the mind publishes nothing of it: whoever asks tells what shows
	Text         string     // what was said
	Now          time.Time  // in the household's zone
	Language     string     // BCP 47
	Name         string     // that the robot is called by in its house; empty is none
	Persona      *Persona   // of this robot; nil is the household's
	Brain        string     // that is asked first, by its kind or, of the second of a kind, "openai 2"; empty is the first
	Body         Body       // nil where no robot takes part
	History      []Exchange // the mind's own, where it has any
}

// Stranger reports whether a robot talks that nobody has adopted by name.
func (t Turn) Stranger() bool { return t.Untrusted && t.Robot != "" }

// Exchange is one turn that was: what was heard and what was answered.
type Exchange struct {
	Heard string `json:"heard"`
	Said  string `json:"said"`
	Emoji string `json:"emoji,omitempty"` // the face it was said with
}

// Body is the robot a turn may act through.
type Body interface {
	// Tools are those the robot lists.
	Tools() []device.Tool
	// Call runs a tool and returns what it answered.
	Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error)
	// Reboot restarts the robot, once what is being said has been said.
	Reboot(ctx context.Context) error
}

// Reply is one piece of an answer. Replies are one ordered sequence, so text,
// face and sound cannot overtake one another. The set is closed: Felt, Say,
// Cue, Note, Ask, ToolStatus and Done.
type Reply interface{ isReply() }

// Felt changes the face.
type Felt struct {
	Emotion   Emotion
	Intensity float64 // over 0 to 1; 0 is a brain that does not say, and stands for 1
	Tag       string  // what the model wrote for it, where that was a word
}

// Say is one sentence to be spoken, without emoji.
type Say struct{ Text string }

// Cue is a stage direction for a skin that is drawn. A robot leaves it alone.
type Cue struct {
	Kind  string // "anim" or "pause"
	Value string // as the model wrote it: "wave", "1.5"
}

// Note is a fact to be remembered. The mind does so and passes it on to nobody.
type Note struct{ Text string }

// Ask is a question that the turn waits for. The sink that takes it returns
// only when Answer has been called, which happens exactly once.
type Ask struct {
	ID     string
	Text   string        // spoken and shown
	Within time.Duration // then it has expired
	Answer func(Answer)
}

// Outcome is how a question ended.
type Outcome string

// The outcomes.
const (
	AnswerGiven   Outcome = "answered"
	AnswerTouch   Outcome = "touched" // a touch of the head: yes
	AnswerAllowed Outcome = "allowed" // by the robot's owner, elsewhere
	AnswerDenied  Outcome = "denied"  // by the same
	AnswerExpired Outcome = "expired"
	AnswerClosed  Outcome = "closed" // the channel closed: no
)

// Answer ends a question.
type Answer struct {
	Outcome Outcome
	Text    string // what was said, where something was
}

// ToolStatus tells of a tool at work.
type ToolStatus struct{ event.ToolStatus }

// Done ends the sequence.
type Done struct{ End End }

// End says what follows a turn.
type End string

// The ends a brain may choose.
const (
	Continue End = event.EndDone   // the talk goes on
	HangUp   End = event.EndHangUp // the channel closes after the last packet
	Sleep    End = event.EndSleep  // good night: hang up, and be asleep
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
	// Think answers one turn through out, ending with Done. It returns out's
	// error when that fails, ctx's when cancelled, and wraps ErrAway where it
	// cannot answer at all right now.
	Think(ctx context.Context, t Turn, out func(Reply) error) error
}

// ErrAway is wrapped by a brain that cannot be reached. The next in the list
// is tried, unless this one has already spoken in the turn.
var ErrAway = errors.New("the brain does not answer")

// ErrStranger is how a brain that acts in the house passes over a turn of a
// robot that nobody has adopted by name. It wraps ErrAway, and is no failure of
// the brain's.
var ErrStranger = fmt.Errorf("%w: it acts in the house, and this robot is not adopted by name; perch adopt ROBOT does that", ErrAway)
