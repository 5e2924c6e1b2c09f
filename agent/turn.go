// Package agent answers turns. A turn is what a person says, together with the answer. Package
// agent gets the person's text, and returns replies: sentences, faces, gestures and questions,
// which a robot or skin renders. It holds the conversations, the memory and the visible state
// of agents. The answers come from implementations of Brain, which are in the subdirectories.
//
// A skin is a program that shows an agent, such as an avatar on a screen. A face is what a
// robot or skin shows for an emotion. A stranger is a robot that the owner has not adopted.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perch/device"
	"perch/driver"
	"perch/event"
	"perch/voice"
)

// Turn is the input of a brain.
type Turn struct {
	Conversation string    // conversation ID: a robot ID, or another program's name of the conversation
	Robot        device.ID // "" if no robot takes part
	Session      string
	Untrusted    bool       // whether the turn must not control devices of the home; an untrusted robot is a stranger
	Text         string     // what the person said; "" if Speech is set
	Now          time.Time  // the current time, in the configured time zone
	Language     string     // BCP 47 tag
	Name         string     // the robot's name in its home; may be ""
	Persona      *Persona   // the robot's persona; nil means the brain's default persona
	Brain        string     // kind of the brain to ask first, or "openai 2" for the second one of a kind; "" means the first in the list
	Body         Body       // the robot; nil if no robot takes part
	Music        Music      // the owner's music, played by the robot; nil if there is none, or the robot is untrusted
	History      []Exchange // past turns; the Mind replaces them if it has a history of the conversation

	// Speech is what the person says, perhaps while it is still being spoken, for a Hearer. It is nil in other turns.
	Speech *voice.Utterance

	// Publish publishes the events of the turn. If it is nil, the Mind publishes them for Robot and
	// Session.
	Publish func(event.Event)

	settled <-chan struct{} // see Settle; nil if the person has finished speaking
}

// Settle waits until it is certain that the person has finished speaking. It returns ctx's error if ctx ends first, as it
// does if the person goes on. Only turns of a Draft have to wait.
func (t Turn) Settle(ctx context.Context) error {
	if t.settled == nil {
		return nil
	}
	select {
	case <-t.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stranger reports whether the turn is with a robot that the owner has not adopted.
func (t Turn) Stranger() bool { return t.Untrusted && t.Robot != "" }

// Exchange is a past turn.
type Exchange struct {
	Heard string `json:"heard"`           // text of the person
	Said  string `json:"said"`            // text of the answer
	Emoji string `json:"emoji,omitempty"` // emoji of the face shown with the answer; "" means none
}

// Body gives a brain access to the robot in a turn.
type Body interface {
	// Tools returns the robot's tools that a brain may use.
	Tools() []device.Tool
	// Call runs a tool and returns its result.
	Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error)
	// Reboot restarts the robot after it has spoken the current speech.
	Reboot(ctx context.Context) error
}

// Music is the owner's music, played by the robot of a turn.
type Music interface {
	// Names returns the names of the stations, files and folders. There is at least one.
	Names() []string
	// Play plays the music with a name, or the first if name is "", once the robot has spoken. It returns an error
	// with its cure if the music cannot be played.
	Play(ctx context.Context, name string) error
	// Stop stops the music.
	Stop(ctx context.Context) error
}

// Reply is one part of an answer: Felt, Say, Cue, Note, Thought, Ask, ToolStatus or Done, and in the
// turn of a Hearer also Heard, Sound and Used. The parts of an answer are one sequence, which keeps text, face and gestures in order.
type Reply interface{ isReply() }

// Felt changes the face.
type Felt struct {
	Emotion   Emotion
	Intensity float64 // from 0 to 1; 0 means unknown and is treated as 1
	Tag       string  // the model's own word for the emotion; "" if the model has written none
	// Assumed marks the default face for text without a face. It does not replace a face
	// that was shown earlier in the turn, for instance by a tool.
	Assumed bool
}

// Say is one sentence to be spoken, without emoji.
type Say struct {
	Text string
	// Sounds is true if the brain speaks the sentence itself: its sound comes as Sound, perhaps before or
	// after the sounds of other sentences.
	Sounds bool
}

// Heard is what a Hearer has understood of Turn.Speech. It may come after the beginning of the answer. An empty text
// means that nobody has said anything.
type Heard struct{ Text string }

// Unwritten is the text of a Heard if the brain has understood the speech, but cannot tell its words.
const Unwritten = "…"

// Sound is a piece of the speech of a Hearer: 24 kHz PCM. It is only valid during the call that receives it.
type Sound struct{ PCM []int16 }

// Used reports tokens that the turn has used since the previous Used.
type Used struct{ Tokens int }

// Cue is a stage direction in the model's text. Robots perform the gesture of the kind
// "anim", and ignore other kinds.
type Cue struct {
	Kind  string // "anim" or "pause"
	Value string // as the model wrote it, for example "wave" or "1.5"
}

// Gesture returns the gesture of a cue of kind "anim". ok is false for other kinds and for
// a value that is not a valid gesture name.
func (c Cue) Gesture() (_ event.Gesture, ok bool) {
	name, ok := event.GestureName(c.Value)
	return event.Gesture{Name: name, By: event.ByModel}, ok && c.Kind == "anim"
}

// Note is a fact to remember. The Mind stores it in the memory and does not pass it on.
type Note struct {
	Text      string
	Type      string // one of MemoryTypes; "" means MemoryUser
	Tags      string // separated by spaces
	Important bool
}

// Thought is a thought of the brain, which is not spoken. The Mind publishes it, and does not pass
// it on.
type Thought struct{ Text string }

// Ask is a question. The brain waits for the answer before it continues. The function that
// receives the Ask must call Answer exactly once before it returns.
type Ask struct {
	ID     string
	Text   string        // the question, to be spoken and shown
	Within time.Duration // time until the question expires
	Answer func(Answer)
}

// Outcome tells how a question ended.
type Outcome string

// The outcomes. All but AnswerGiven, AnswerTouch and AnswerAllowed mean no.
const (
	AnswerGiven   Outcome = "answered" // the person has spoken an answer
	AnswerTouch   Outcome = "touched"  // the robot's head was touched, which means yes
	AnswerAllowed Outcome = "allowed"  // the robot's owner has answered yes on another device
	AnswerDenied  Outcome = "denied"   // the robot's owner has answered no on another device
	AnswerExpired Outcome = "expired"  // there was no answer in time
	AnswerClosed  Outcome = "closed"   // the channel was closed, or nobody can be asked
)

// Answer is the answer to a question.
type Answer struct {
	Outcome Outcome
	Text    string // the spoken answer, for AnswerGiven
}

// ToolStatus reports a running or finished tool.
type ToolStatus struct{ event.ToolStatus }

// Done ends the sequence of replies.
type Done struct{ End End }

// End tells what happens after a turn.
type End string

// The values of Done.End.
const (
	Continue End = event.EndDone   // the conversation continues
	HangUp   End = event.EndHangUp // the audio channel is closed after the speech
	Sleep    End = event.EndSleep  // good night: like HangUp, and the sleeping state is shown
)

func (Felt) isReply()       {}
func (Say) isReply()        {}
func (Heard) isReply()      {}
func (Sound) isReply()      {}
func (Used) isReply()       {}
func (Cue) isReply()        {}
func (Note) isReply()       {}
func (Thought) isReply()    {}
func (Ask) isReply()        {}
func (ToolStatus) isReply() {}
func (Done) isReply()       {}

// Brain answers turns.
type Brain interface {
	// Name returns the kind of the brain, as in the configuration.
	Name() string
	// Think answers a turn: it calls out for each reply, ending with Done. It returns the
	// error of out if out fails, the error of ctx if ctx ends, and an error that wraps
	// ErrAway if the brain cannot answer at the moment.
	Think(ctx context.Context, t Turn, out func(Reply) error) error
}

// Hearer is a Brain that may understand speech, and answer it with its own voice.
type Hearer interface {
	Brain
	// Hears reports whether Think can answer a turn that has Turn.Speech in place of Turn.Text.
	Hears() bool
}

// Silent is the brain of kind NoBrain, which never answers.
type Silent struct{}

// Name returns NoBrain.
func (Silent) Name() string { return NoBrain }

// Think replies with Done only.
func (Silent) Think(_ context.Context, _ Turn, out func(Reply) error) error {
	return out(Done{End: Continue})
}

// SilentDriver declares the brain of kind NoBrain. It has no options.
func SilentDriver() driver.Driver[struct{}, Brain] {
	return driver.Driver[struct{}, Brain]{Kind: NoBrain, Runs: []string{"nothing"},
		Summary: "Nobody answers. Robots still tell what is due, and do what you do on the page.",
		Sample:  `{kind: none}    # never answers; everything else works`,
		Options: func() any { return new(struct{}) },
		Check:   func(any, struct{}) error { return nil },
		New:     func(any, struct{}) (Brain, error) { return Silent{}, nil }}
}

// ErrAway is wrapped by the errors of a brain that cannot be reached. The Mind then asks
// the next brain, unless the brain that failed has already spoken in the turn.
var ErrAway = errors.New("the brain does not answer")

// ErrStranger is returned by a brain that can control devices of the home: for the turn of a stranger
// or, if the brain cannot refuse single actions, for any untrusted turn. It wraps ErrAway, although the
// brain can be reached, so that the Mind asks the next brain.
var ErrStranger = fmt.Errorf("%w: it acts on the home, or is paid for by the owner, and only robots that are adopted by name and programs with a key may do that; perch robot adopt ROBOT adopts a robot", ErrAway)

// ErrNoQuestion is returned for an answer to a question that was answered before, has
// expired, or was never asked.
var ErrNoQuestion = errors.New("no question waits for an answer under that id")

// Question is an open question of an agent, to be answered by yes or no.
type Question struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Robot   device.ID `json:"robot"`   // the robot that asks
	Session string    `json:"session"` // session of the turn that waits for the answer
	Asked   time.Time `json:"asked"`   // when it was asked
	Until   time.Time `json:"until"`   // when it expires, which means no
}
