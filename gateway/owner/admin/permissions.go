package admin

import (
	"encoding/json"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// questions wait for somebody's yes or no.
type questions interface {
	// Questions are those that wait, the oldest first.
	Questions() []agent.Question
	// Reply fails with agent.ErrNoQuestion where none waits under that id.
	Reply(id string, allow bool) error
}

func (d *API) questions() []agent.Question {
	return append([]agent.Question{}, d.o.Questions.Questions()...) // none are a list too
}

// permit answers a question. What does not say yes or no in so many words is
// no answer, and the question waits on.
func (d *API) permit(id string, body []byte) error {
	var b struct {
		Allow *bool `json:"allow"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return unreadable(err)
	}
	if b.Allow == nil {
		return httpserver.BadBody("allow is needed: true or false")
	}
	if id == "" || len(id) > limit.ID {
		return agent.ErrNoQuestion
	}
	return d.o.Questions.Reply(id, *b.Allow)
}
