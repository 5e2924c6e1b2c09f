package homeassistant

import (
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
)

// Options are what a mirror needs.
type Options struct {
	connection.Options
	command.Services

	Version string
	URL     func() string // the appliance's page for its owner; may return ""
	// Host returns the appliance's name on the network, and the name that it was to have if another
	// machine has that. Each may be empty.
	Host      func() (host, taken string)
	Transport device.Transport // of robots whose owner has chosen none
	Away      time.Duration    // a robot not seen for so long is offline; 0 is never
	// ShareTranscripts publishes what was recognized and spoken, which Home Assistant stores in its
	// database.
	ShareTranscripts bool

	Characters characters
	Notices    noticeStore
	Questions  questions
	Restart    func()           // begins a restart of the appliance, and returns at once
	Announced  table[[]string]  // ids of every component that was ever announced, by robot, agent or "bridge"
	Kept       table[[]Waiting] // commands that wait for their robot's next hello, by robot
}

// characters are the appliance's characters.
type characters interface {
	// Names returns the ids of all but the household's.
	Names() []string
	// Who returns the id of a robot's character. It does not block.
	Who(robot device.ID, session string) string
}

// noticeStore holds the notifications that were accepted.
type noticeStore interface {
	Open(now time.Time) []notice.Notification
}

// questions are the questions of agents that wait for a person.
type questions interface {
	Questions() []agent.Question
	// Reply wraps agent.ErrNoQuestion if the question does not wait any more.
	Reply(id string, allow bool) error
}
