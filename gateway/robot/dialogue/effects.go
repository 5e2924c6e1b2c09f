package dialogue

import (
	"net/http"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
)

type (
	// Send sends the robot a message.
	Send struct{ Message xiaozhi.ToRobot }
	// Publish publishes an event.
	Publish struct{ Event event.Event }
	// ReportWakeText reports the text that woke a robot.
	ReportWakeText struct{ Text string }
	// ReportSensor reports a sensor event.
	ReportSensor struct{ Event xiaozhi.Event }

	// Welcome answers a hello.
	Welcome struct {
		Hello xiaozhi.Hello
		First bool
	}
	// Introduce gives the robot's tools our name, and asks for their list.
	Introduce struct{ List bool }
	// CollectWaiting reads what has waited for the robot while its channel was closed.
	CollectWaiting struct{}
	// DeliverMCP is a response of the robot's tools.
	DeliverMCP struct{ Payload []byte }
	// ResetInput forgets sound and speech so far.
	ResetInput struct{}
	// KeepTranscript records the words that the turn answers.
	KeepTranscript struct{ Text string }

	// BeginTurn starts a turn.
	BeginTurn struct{ TurnStart }
	// StartAnswer starts an utterance for the turn that asks.
	StartAnswer struct{}
	// CutQuestion ends a question's speech because somebody answers already.
	CutQuestion struct{}
	// RestartSpeech makes a robot speak that may have gone on listening.
	RestartSpeech struct{}
	// FinishUtterance ends the sound of the utterance.
	FinishUtterance struct{}
	// ShowQuestion shows a question to those who may answer elsewhere.
	ShowQuestion struct{ Question *agent.Question }
	// AnswerQuestion gives the turn that asks its answer.
	AnswerQuestion struct{ agent.Answer }
	// CancelTurn stops a turn and drops its speech. A tts stop follows if the robot was made to
	// speak, and always if it answers an abort.
	CancelTurn struct{ Abort bool }
	// EndTurn publishes and records that a turn has ended by itself. End is empty if nothing
	// came of it, as with a noise.
	EndTurn struct{ End, Reason string }
	// CloseChannel hangs up.
	CloseChannel struct{ Why string }
	// ForgetCommand deletes a stored command that was carried out, or never will be.
	ForgetCommand struct{ ID string }
	// EndInquiry returns the end of a Question to whom has asked.
	EndInquiry struct {
		About *Question
		Ending
	}
	// AnswerPlay returns whether a sound is played.
	AnswerPlay struct {
		Answer chan<- error
		Err    error
	}
)

// TurnStart is what a turn begins with: an utterance, a text or an announcement.
type TurnStart struct {
	Text         string
	Announcement Announcement
	Aloud        bool // a refused utterance is answered aloud
	Utterance    bool
}

// Errors of Ask and PlaySound.
var (
	// ErrOffline is returned if the robot's channel is closed.
	ErrOffline error = &httpserver.Fault{Word: "robot_offline", HTTP: http.StatusConflict,
		Sentence: "the robot's channel is closed; it opens one when somebody talks to it"}
	// ErrBusy is returned if too much waits to be spoken by a robot.
	ErrBusy error = &httpserver.Fault{Word: "robot_busy", HTTP: http.StatusConflict,
		Sentence: "too much waits to be said by the robot; ask again when it has said some of it"}
	// ErrSpeaking is returned if a sound would disturb the robot or a person.
	ErrSpeaking error = &httpserver.Fault{Word: "robot_speaking", HTTP: http.StatusConflict,
		Sentence: "the robot speaks, or is spoken to; wait for the end of it, or abort it first"}
)
