package openclaw

import (
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
)

// The key of a session consists of "agent:", an agent and a conversation. "agent:main:desk" is
// the conversation desk with the default character, and "agent:leo:desk" is the conversation desk with
// the character leo. "agent:main:robot:a0b1c2d3e4f5" is the conversation of the robot with that ID.
const (
	agentPrefix = "agent:"
	mainName    = "main" // the default character as an agent; also the conversation in a key that names no conversation
	mainKey     = agentPrefix + mainName + ":" + mainName
)

// sessionKey returns the key of a session with the agent main, or of a robot's conversation if robot is
// not empty.
func sessionKey(session string, robot device.ID) string {
	if robot != "" {
		return agentPrefix + mainName + ":" + feed.RobotPrefix + string(robot)
	}
	return agentPrefix + mainName + ":" + strings.TrimPrefix(session, agent.ChatPrefix)
}

// parseKey returns the agent in a key, and the conversation's name for avatar.Chat. A key that does not
// begin with "agent:" is the name of a conversation with the agent main.
func parseKey(key string) (agentID, conversation string) {
	agentID, conversation = mainName, key
	if rest, ok := strings.CutPrefix(key, agentPrefix); ok {
		agentID, conversation, _ = strings.Cut(rest, ":")
	}
	switch {
	case conversation == "":
		conversation = agent.ChatPrefix + mainName
	case !strings.HasPrefix(conversation, feed.RobotPrefix):
		conversation = agent.ChatPrefix + conversation
	}
	return agentID, conversation
}
