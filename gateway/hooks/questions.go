package hooks

import (
	"errors"
	"slices"

	"perch/agent"
)

// robotQuestions are the questions in the robots' conversations.
type robotQuestions interface {
	Questions() []agent.Question
	Reply(id string, allow bool) error
}

// Questions combines the questions of coding agents and of the robots' conversations that wait for an answer. If
// a robot asks the question of a coding agent, both api and robots list the question.
type Questions struct {
	api    *API
	robots robotQuestions
}

// NewQuestions returns the questions of api and of robots.
func NewQuestions(api *API, robots robotQuestions) Questions { return Questions{api, robots} }

// Questions returns the waiting questions, each once.
func (q Questions) Questions() []agent.Question {
	all := q.api.Questions()
	for _, question := range q.robots.Questions() {
		if !slices.ContainsFunc(all, func(other agent.Question) bool { return other.ID == question.ID }) {
			all = append(all, question)
		}
	}
	return all
}

// Reply answers the question with an ID. It returns agent.ErrNoQuestion if no such question waits.
func (q Questions) Reply(id string, allow bool) error {
	err := q.api.Reply(id, allow)
	if errors.Is(err, agent.ErrNoQuestion) {
		return q.robots.Reply(id, allow)
	}
	return err
}
