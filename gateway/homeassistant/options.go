package homeassistant

import (
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/voice"
)

// Options configures a Mirror.
type Options struct {
	connection.Options
	command.Services

	Version string
	URL     func() string // returns the URL of the owner's page; may return ""
	// Host returns the appliance's name on the network. If another machine on the network uses the configured
	// name, taken is the configured name. Either result may be empty.
	Host      func() (host, taken string)
	Transport device.Transport // used by robots unless the owner has chosen another
	Away      time.Duration    // a robot without a connection counts as offline this long after its latest event or check-in; 0 means never
	// ShareTranscripts tells whether recognized and spoken texts are published. Home Assistant stores them in
	// its database.
	ShareTranscripts bool

	Characters characters
	Brains     func() []string // returns the names of the brains that a robot can use
	// Voices returns the voices that a robot can use. known is false if the synthesizer could not be asked yet.
	Voices    func() (list []voice.Named, known bool)
	Notices   noticeStore
	Questions questions
	Restart   func()       // starts a restart of the appliance, and returns at once
	Startable func() error // returns an error if the appliance could not start again, because of its configuration
	// Announced holds the IDs of all components that were ever announced. The key is a robot ID, topic.AgentPrefix and an
	// agent ID, or "bridge".
	Announced       table[[]string]
	WaitingCommands table[[]Waiting] // commands that wait until their robot connects; key: robot ID
}

// characters provides the characters of the appliance.
type characters interface {
	// Names returns the IDs of all characters except the default one.
	Names() []string
	// Who returns the ID of the character that a robot uses. It does not block.
	Who(robot device.ID, session string) string
}

// noticeStore stores notifications.
type noticeStore interface {
	// Open returns the notifications that are neither acknowledged nor expired, oldest first.
	Open(now time.Time) []notice.Notification
}

// questions holds the questions of agents that wait for a person.
type questions interface {
	Questions() []agent.Question
	// Reply answers a question. Its error wraps agent.ErrNoQuestion if the question no longer waits.
	Reply(id string, allow bool) error
}
