package admin

import (
	"encoding/json"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// questions are requests for a permission that wait for a yes or no.
type questions interface {
	// Questions lists the waiting questions, the oldest first.
	Questions() []agent.Question
	// Reply returns agent.ErrNoQuestion if no question with that id waits.
	Reply(id string, allow bool) error
}

func (a *API) questions() []agent.Question {
	return append([]agent.Question{}, a.o.Questions.Questions()...) // never null in JSON
}

// permit answers a question. A body without a plain yes or no leaves it waiting.
func (a *API) permit(id string, body []byte) error {
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
	return a.o.Questions.Reply(id, *b.Allow)
}
