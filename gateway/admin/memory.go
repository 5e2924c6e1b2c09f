package admin

import (
	"time"

	"perch/agent"
	"perch/gateway/door"
)

// memory is what its owner has the appliance remember. It publishes its changes
// itself.
type memory interface {
	Search(query string, now time.Time) []agent.Entry
	// Err is why Search may have missed some.
	Err() error
	Remember(e agent.Entry, now time.Time) (agent.Entry, error)
	Edit(id, text string, now time.Time) (agent.Entry, error)
	Forget(id string) error
}

// mostFact bounds a fact that an owner writes, in bytes, as it does for brains and
// the bridge.
const mostFact = 1000

// sourceOwner is the source of what the owner has written.
const sourceOwner = "owner"

// fact is the body of what is to be remembered.
type fact struct {
	Text string `json:"text"`
}

// check makes one line of the text, as brains are shown it.
func (f *fact) check() error {
	if f.Text = agent.Speakable(f.Text); f.Text == "" || len(f.Text) > mostFact {
		return door.BadBody("text is needed, of at most 1000 bytes")
	}
	return nil
}

// remember keeps a fact of the household's: it belongs to no robot.
func (d *Door) remember(f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return d.o.Memory.Remember(agent.Entry{Name: f.Text, Body: f.Text, Source: sourceOwner}, time.Now())
}

func (d *Door) edit(id string, f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return d.o.Memory.Edit(id, f.Text, time.Now())
}
