package admin

import (
	"encoding/json"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// questions holds the requests for permissions that wait for a yes or no.
type questions interface {
	// Questions returns the waiting questions, the oldest first.
	Questions() []agent.Question
	// Reply answers a question. It returns agent.ErrNoQuestion if no question with this ID is waiting.
	Reply(id string, allow bool) error
}

// questions returns the waiting questions, the oldest first.
func (a *API) questions() []agent.Question {
	return append([]agent.Question{}, a.o.Questions.Questions()...) // never null in JSON
}

// answerQuestion answers a question. An invalid body leaves the question waiting.
func (a *API) answerQuestion(id string, body []byte) error {
	var b struct {
		Allow *bool `json:"allow"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return badBodyError(err)
	}
	if b.Allow == nil {
		return httpserver.BadBody("allow is needed: true or false")
	}
	if id == "" || len(id) > limit.ID {
		return agent.ErrNoQuestion
	}
	return a.o.Questions.Reply(id, *b.Allow)
}
