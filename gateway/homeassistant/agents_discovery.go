package homeassistant

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// agentPrefix begins the topics, and the key among what was announced, of an
// agent. No robot's id begins so.
const agentPrefix = "agent_"

// agentTopic is a topic of an agent's: agentTopic(id, "state").
func (n names) agentTopic(id, thing string) string {
	return n.Base + "/" + agentPrefix + id + "/" + thing
}

func (n names) agentIdentifier(id string) string { return n.Appliance + "_" + agentPrefix + id }

// plainID holds for the names of sessions that are ids as they are. A client may
// choose its session's name, so any other is hashed; hashes begin with "h-".
var plainID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`) })

const hashed = "h-"

// agentID is how a session is called in topics: the same for the same session.
func agentID(session string) string {
	if plainID().MatchString(session) && !strings.HasPrefix(session, hashed) {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return hashed + hex.EncodeToString(sum[:6])
}

// agentName is what Home Assistant calls an agent, and makes the ids of its
// entities of: "Coding 1", "Chat desk".
func agentName(id string) string {
	if place, is := strings.CutPrefix(id, "coding-"); is {
		return "Coding " + place
	}
	if chat, is := strings.CutPrefix(id, agent.OfChat); is && chat != "" {
		return "Chat " + chat
	}
	return "Session " + id
}

// agentDiscovery announces an agent that has no robot. All of it follows from
// the id, so that one can be taken back of which nothing else is known any more.
func (n names) agentDiscovery(id, version string, before []string) (messages []message, ids []string) {
	components := n.agentComponents(id)
	d := map[string]any{
		"identifiers": []string{n.agentIdentifier(id)},
		"name":        deviceName(agentName(id), components),
		"model":       "Agent",
		"via_device":  n.bridgeIdentifier(),
	}
	return announce(n.configTopic(agentPrefix+id), announcement{
		Device: d, Origin: origin(version), Components: components, QoS: 1,
		Availability: []topicRef{{Topic: n.bridgeTopic("status")}}, AvailabilityMode: "all",
	}, before)
}

// toolDocument is a tool's status, of the shape that skins know (contract:
// docs/skins.md).
type toolDocument struct {
	Type    string `json:"type"`
	Session string `json:"session_id,omitempty"`
	ID      string `json:"tool_id"`
	Name    string `json:"tool_name"`
	Status  string `json:"status"` // running, completed or error
	Content string `json:"content,omitempty"`
}

func newToolDocument(session string, t event.ToolStatus) toolDocument {
	return toolDocument{"tool_status", session, plain.Clip(t.ID, limit.Name), plain.Clip(t.Name, limit.Name),
		t.SkinStatus(), plain.Clip(t.Detail, limit.Line)}
}
