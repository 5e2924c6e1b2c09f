package appliance

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/feed"
	"perch/device"
	"perch/gateway/door"
	"perch/gateway/hooks"
	"perch/gateway/robot"
	"perch/gateway/skin"
	"perch/gateway/vccp"
)

// newSkins makes the doors of what shows the agent, or is one.
func (a *Appliance) newSkins() error {
	c := a.Config()
	words, err := agent.NewWords(c.Skins.Vocabularies)
	if err != nil {
		return err
	}
	a.words = words
	robots, err := c.DrivenRobots()
	if err != nil {
		return err
	}
	a.hooks = hooks.New(hooks.Options{
		Robots: robots, Trusts: a.Robots.Trusts, Talk: a.Talk, Asker: a.Talk,
		// In the quiet hours questions are not spoken; screens and the terminal show them.
		MayAnswer: func(id device.ID) bool { return a.Robots.Trusts(id) && !a.quiet(time.Now()) }, Board: a.board, Bus: a.Bus,
		Language: a.languageOf, Log: a.Log,
	})
	a.vccp = vccp.New(vccp.Options{
		Talk: a.control(), Robots: a.Robots, Find: a.Robots.Find, Senses: a.Senses.Board, Bus: a.Bus, Face: words.Face, UserTools: func() bool { return a.Config().Robots.UserTools },
		Skills: a.Skills, Log: a.Log,
	})
	a.feed = feed.New(feed.Options{Board: a.board, Bus: a.Bus, Notices: a.Notices, Words: words, Log: a.Log})
	a.skins = skin.New(skin.Options{
		Feed: a.feed, Bus: a.Bus, Notifier: a.notifier, Robots: a.Robots, Find: a.Robots.Find, Mind: a.Mind,
		Questions:  questions{a.hooks, a.Talk},
		Characters: a.Characters, System: c.Skins.System,
		Words: words, Vocabulary: c.Skins.Vocabulary, QueryToken: c.Skins.QueryToken,
		Language: a.languageOf, Zone: a.zone, Log: a.Log,
	})
	return nil
}

// skinRoutes mounts them behind a lock, or behind none for this machine.
func (a *Appliance) skinRoutes(r gin.IRouter, locks ...func(*http.Request) error) {
	a.skins.Routes(r, locks...)
	behind := r.Group("", door.Guard(locks...))
	a.hooks.Routes(behind)
	a.vccp.Routes(behind)
	upgrades := make([]func(*http.Request) error, 0, len(locks))
	for _, lock := range locks {
		upgrades = append(upgrades, door.InUpgrade(a.Config().Skins.QueryToken, lock))
	}
	opened := r.Group("", door.Guard(upgrades...))
	a.vccp.Characters(opened)
	a.llmvtuber.Routes(opened)
	a.aituber.Routes(opened)
}

// lendTools opens a place where a coding agent finds the tools of its turns.
func (a *Appliance) lendTools() acp.ToolEndpoint { return a.talks.Open(a.Doors.own() + "/mcp/talk") }

// questions are the questions that wait for people: a coding agent's, and those of
// robots' talks. One of the first that a robot puts is both.
type questions struct {
	hooks *hooks.Door
	talk  *robot.Server
}

func (q questions) Questions() []agent.Question {
	all := q.hooks.Questions()
	for _, one := range q.talk.Questions() {
		if !slices.ContainsFunc(all, func(known agent.Question) bool { return known.ID == one.ID }) {
			all = append(all, one)
		}
	}
	return all
}

func (q questions) Reply(id string, allow bool) error {
	err := q.hooks.Reply(id, allow)
	if errors.Is(err, agent.ErrNoQuestion) {
		return q.talk.Reply(id, allow)
	}
	return err
}
