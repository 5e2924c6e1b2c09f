package event

// Conditions of a command to a robot.
const (
	CommandQueued   = "queued" // the robot's channel is closed; the command waits for the next hello
	CommandDone     = "done"
	CommandRejected = "command_rejected"
)

// Command is published when a command to a robot with a closed channel is queued
// or done, and when any command is rejected.
type Command struct {
	Thing  string `json:"thing"`            // the kind of command: "say", "alert", "notify", or as Home Assistant names it
	State  string `json:"state"`            // queued, done or command_rejected
	Reason string `json:"reason,omitempty"` // why it was rejected; text for people
}

func (Command) kind() string { return "command" }
