package hooks

import (
	"errors"
	"slices"

	"perch/agent"
)

// robotQuestions are the questions of robots' talks.
type robotQuestions interface {
	Questions() []agent.Question
	Reply(id string, allow bool) error
}

// Questions are all questions that wait for people: those of coding agents, and those of robots'
// talks. A coding agent's question that a robot asks is both.
type Questions struct {
	door   *API
	robots robotQuestions
}

// NewQuestions returns the questions of the door and of the robots.
func NewQuestions(d *API, robots robotQuestions) Questions { return Questions{d, robots} }

// Questions returns those that wait, each once.
func (q Questions) Questions() []agent.Question {
	all := q.door.Questions()
	for _, one := range q.robots.Questions() {
		if !slices.ContainsFunc(all, func(known agent.Question) bool { return known.ID == one.ID }) {
			all = append(all, one)
		}
	}
	return all
}

// Reply answers a question by its id. It returns agent.ErrNoQuestion where it does not wait.
func (q Questions) Reply(id string, allow bool) error {
	err := q.door.Reply(id, allow)
	if errors.Is(err, agent.ErrNoQuestion) {
		return q.robots.Reply(id, allow)
	}
	return err
}
