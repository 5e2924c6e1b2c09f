package openclaw

import (
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
)

// The key of a session consists of "agent:", an agent and a conversation: "agent:main:desk" is
// the conversation desk with the household's agent, "agent:leo:desk" the one with the character
// leo, and "agent:main:robot:a0b1c2d3e4f5" the conversation of that robot.
const (
	ofAgent   = "agent:"
	household = "main" // the household's agent; also the conversation of a key that has none
	mainKey   = ofAgent + household + ":" + household
)

// sessionKey returns the key of a session, or of a robot's conversation if robot is not
// empty.
func sessionKey(session string, robot device.ID) string {
	if robot != "" {
		return ofAgent + household + ":" + feed.OfRobot + string(robot)
	}
	return ofAgent + household + ":" + strings.TrimPrefix(session, agent.ChatPrefix)
}

// parseKey returns the agent in a key, and the conversation's name for avatar.Chat. In a key
// without "agent:", the agent is the household's.
func parseKey(key string) (agentID, conversation string) {
	agentID, conversation = household, key
	if rest, ok := strings.CutPrefix(key, ofAgent); ok {
		agentID, conversation, _ = strings.Cut(rest, ":")
	}
	switch {
	case conversation == "":
		conversation = agent.ChatPrefix + household
	case !strings.HasPrefix(conversation, feed.OfRobot):
		conversation = agent.ChatPrefix + conversation
	}
	return agentID, conversation
}
