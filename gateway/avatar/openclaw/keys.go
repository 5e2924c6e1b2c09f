package openclaw

import (
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
)

// A session's key is "agent:", an agent and a name: "agent:main:desk" is the talk desk with
// the household's agent, "agent:leo:desk" with the character leo, and
// "agent:main:robot:a0b1c2d3e4f5" the talk of that robot.
const (
	ofAgent   = "agent:"
	household = "main" // the household's agent, and the talk of a key without a name
	mainKey   = ofAgent + household + ":" + household
)

// keyOf returns the key of a session, or of the robot's talk if robot is not empty.
func keyOf(session string, robot device.ID) string {
	if robot != "" {
		return ofAgent + household + ":" + feed.OfRobot + string(robot)
	}
	return ofAgent + household + ":" + strings.TrimPrefix(session, agent.ChatPrefix)
}

// talkOf returns the agent and the talk of a key. A key without an agent is the household's.
func talkOf(key string) (who, talk string) {
	who, talk = household, key
	if named, is := strings.CutPrefix(key, ofAgent); is {
		who, talk, _ = strings.Cut(named, ":")
	}
	switch {
	case talk == "":
		talk = agent.ChatPrefix + household
	case !strings.HasPrefix(talk, feed.OfRobot):
		talk = agent.ChatPrefix + talk
	}
	return who, talk
}
