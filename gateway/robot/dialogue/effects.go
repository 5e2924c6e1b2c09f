package dialogue

import (
	"net/http"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
)

// Effects; see Effect.
type (
	// Send sends the robot a message.
	Send struct{ Message xiaozhi.ToRobot }
	// Publish publishes an event.
	Publish struct{ Event event.Event }
	// ReportWakeText reports the text with which the robot woke, such as its wake word.
	ReportWakeText struct{ Text string }
	// ReportSensor reports a sensor event of the robot.
	ReportSensor struct{ Event xiaozhi.Event }

	// Welcome responds to a hello.
	Welcome struct {
		Hello xiaozhi.Hello
		First bool // it is the first hello on the channel
	}
	// Introduce initializes the robot's MCP server.
	Introduce struct {
		List bool // also ask for the list of tools
	}
	// CollectWaiting makes the session post the stored commands as inputs.
	CollectWaiting struct{}
	// DeliverMCP handles a response of the robot's MCP server.
	DeliverMCP struct{ Payload []byte }
	// ResetInput drops the buffered sound of the microphone.
	ResetInput struct{}
	// KeepTranscript records the words that the turn answers.
	KeepTranscript struct{ Text string }

	// BeginTurn starts a turn.
	BeginTurn struct{ TurnStart }
	// StartAnswer starts an utterance that answers the turn's question.
	StartAnswer struct{}
	// CutQuestion ends the speech of a question early, because somebody answers or the question has expired.
	CutQuestion struct{}
	// RestartSpeech sends the message "tts start" again, because the robot may have ignored it while
	// it was still connecting.
	RestartSpeech struct{}
	// FinishUtterance ends the utterance under way.
	FinishUtterance struct{}
	// ShowQuestion shows a question to people who may answer it elsewhere.
	ShowQuestion struct{ Question *agent.Question }
	// AnswerQuestion hands the turn the answer to its question.
	AnswerQuestion struct{ agent.Answer }
	// CancelTurn stops the turn and drops its speech. The session sends tts stop if the robot is
	// speaking, or if Abort is set. Abort is set if the robot has sent abort or must be silenced.
	CancelTurn struct{ Abort bool }
	// EndTurn publishes and records the end of a turn that was not cancelled. End is as for
	// TurnFinished.
	EndTurn struct{ End, Reason string }
	// CloseChannel closes the channel.
	CloseChannel struct{ Why string }
	// ForgetCommand deletes a stored command that was carried out or has expired.
	ForgetCommand struct{ ID string }
	// EndInquiry reports the ending of a Question to the part of the appliance that asks it.
	EndInquiry struct {
		Question *Question
		Ending
	}
	// AnswerPlay reports whether a sound is accepted. Err is nil if it is.
	AnswerPlay struct {
		Answer chan<- error
		Err    error
	}
)

// TurnStart is the beginning of a turn: an utterance, a text or an announcement.
type TurnStart struct {
	Text         string
	Announcement Announcement
	Aloud        bool // if the utterance is not understood and not silence, the robot says so
	Utterance    bool // the turn begins with an utterance
}

// Errors of inputs, and of other commands to a robot.
var (
	// ErrOffline is returned if the robot's channel is closed.
	ErrOffline error = &httpserver.Fault{Word: "robot_offline", HTTP: http.StatusConflict,
		Sentence: "the robot's channel is closed; it opens one when somebody talks to it, if it is on and in the network"}
	// ErrBusy is returned if too much waits to be spoken by a robot.
	ErrBusy error = &httpserver.Fault{Word: "robot_busy", HTTP: http.StatusConflict,
		Sentence: "the robot has too much to say already; try again when it has said some of it"}
	// ErrSpeaking is returned if a sound would disturb the speech of the robot or of a person.
	ErrSpeaking error = &httpserver.Fault{Word: "robot_speaking", HTTP: http.StatusConflict,
		Sentence: "the robot is speaking, or somebody is speaking to it; wait until that has ended, or abort it first"}
)
