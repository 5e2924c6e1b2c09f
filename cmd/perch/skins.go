package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/acp"
	"perch/device"
	"perch/gateway/door"
	"perch/gateway/hooks"
	"perch/gateway/robot"
	"perch/gateway/skin"
	"perch/gateway/vccp"
)

// skinsConfig is who may show what the agent is doing, and talk with it.
type skinsConfig struct {
	Key          string                       `yaml:"key"`
	KeyFile      string                       `yaml:"key_file"`
	QueryToken   bool                         `yaml:"query_token"`
	Vocabulary   string                       `yaml:"vocabulary"`
	Vocabularies map[string]map[string]string `yaml:"vocabularies"` // more, or other words of those there are
	Hooks        struct {
		Robots []string `yaml:"robots"`
	} `yaml:"hooks"`
}

// words is the table of faces, with the owner's own.
func (s skinsConfig) words() (*agent.Words, error) {
	added := map[agent.Vocabulary]map[string]string{}
	for name, words := range s.Vocabularies {
		added[agent.Vocabulary(name)] = words
	}
	return agent.NewWords(added)
}

// robots are those that coding agents drive.
func (s skinsConfig) robots(find func(string) (device.ID, error)) (all []device.ID, err error) {
	for i, name := range s.Hooks.Robots {
		id, e := find(name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("robot %d: %w", i+1, e))
		}
		all = append(all, id)
	}
	return all, err
}

func (k *checker) skins(s skinsConfig, find func(string) (device.ID, error)) {
	k.key("skins", s.Key, s.KeyFile)
	words, err := s.words()
	switch {
	case err != nil:
		k.fault("skins.vocabularies", "%s", err)
	case !words.Knows(agent.Vocabulary(s.Vocabulary)):
		k.fault("skins.vocabulary", "there is no vocabulary %q; there are %v", s.Vocabulary, words.Vocabularies())
	}
	if _, err := s.robots(find); err != nil {
		k.fault("skins.hooks.robots", "%s", err)
	}
}

// newSkins makes the doors of what shows the agent, or is one.
func (a *app) newSkins(zone *time.Location) error {
	c := a.config
	words, err := c.Skins.words()
	if err != nil {
		return err
	}
	robots, err := c.Skins.robots(c.find)
	if err != nil {
		return err
	}
	quiet := c.Behaviours.Quiet.Hours
	a.hooks = hooks.New(hooks.Options{
		Robots: robots, Trusts: a.robots.Trusts, Talk: a.talk, Asker: a.talk,
		// In the quiet hours nobody is asked aloud; screens and the terminal ask.
		MayAnswer: func(id device.ID) bool { return a.robots.Trusts(id) && !quiet.Contains(time.Now().In(zone)) }, Board: a.board, Bus: a.bus, Language: c.Language, Log: a.log,
	})
	a.vccp = vccp.New(vccp.Options{
		Talk: a.movers(), Robots: a.robots, Find: a.robots.Find, Senses: a.senses.board, Bus: a.bus, Face: words.Face, UserTools: c.Robots.UserTools, Log: a.log,
	})
	a.skins, err = skin.New(skin.Options{
		Board: a.board, Bus: a.bus, Notifier: a.herald, Notices: a.notices, Robots: a.robots, Find: a.robots.Find, Mind: a.mind, Questions: asked{a.hooks, a.talk},
		Words: words, Vocabulary: agent.Vocabulary(c.Skins.Vocabulary), QueryToken: c.Skins.QueryToken,
		Language: c.Language, Zone: zone, Log: a.log,
	})
	return err
}

// skinRoutes mounts them behind a lock, or behind none for this machine.
func (a *app) skinRoutes(r gin.IRouter, locks ...func(*http.Request) error) {
	a.skins.Routes(r, locks...)
	behind := r.Group("", door.Guard(locks...))
	a.hooks.Routes(behind)
	a.vccp.Routes(behind)
	upgrades := make([]func(*http.Request) error, 0, len(locks))
	for _, lock := range locks {
		upgrades = append(upgrades, door.InUpgrade(a.config.Skins.QueryToken, lock))
	}
	a.vccp.Characters(r.Group("", door.Guard(upgrades...)))
}

// lend opens a place where a coding agent finds the tools of its turns.
func (a *app) lend() acp.Place { return a.talks.Open(a.doors.own() + "/mcp/talk") }

// asked are the questions that wait for people: a coding agent's, and those of
// robots' talks. One of the first that a robot puts is both.
type asked struct {
	hooks *hooks.Door
	talk  *robot.Server
}

func (q asked) Questions() []agent.Question {
	all := q.hooks.Questions()
	known := map[string]bool{}
	for _, one := range all {
		known[one.ID] = true
	}
	for _, one := range q.talk.Questions() {
		if !known[one.ID] {
			all = append(all, one)
		}
	}
	return all
}

func (q asked) Reply(id string, allow bool) error {
	err := q.hooks.Reply(id, allow)
	if errors.Is(err, agent.ErrNoQuestion) {
		return q.talk.Reply(id, allow)
	}
	return err
}
