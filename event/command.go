package event

// Conditions of a command to a robot.
const (
	CommandQueued   = "queued" // its channel is closed; it waits for the next hello
	CommandDone     = "done"
	CommandRejected = "command_rejected"
)

// Command is what became of something a robot was told to do while its channel
// was closed, or could not be told at all.
type Command struct {
	Thing  string `json:"thing"` // "say", "alert"
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // of a rejection
}

func (Command) kind() string { return "command" }
