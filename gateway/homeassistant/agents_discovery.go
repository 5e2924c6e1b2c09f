package homeassistant

import (
	"strings"

	"perch/agent"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
)

func (n names) agentIdentifier(id string) string { return n.Appliance + "_" + topic.AgentPrefix + id }

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
func (n names) agentDiscovery(id, version string, before []string) (messages []connection.Message, ids []string) {
	components := n.agentComponents(id)
	d := map[string]any{
		"identifiers": []string{n.agentIdentifier(id)},
		"name":        deviceName(agentName(id), components),
		"model":       "Agent",
		"via_device":  n.bridgeIdentifier(),
	}
	return announce(n.Config(topic.AgentPrefix+id), announcement{
		Device: d, Origin: origin(version), Components: components, QoS: 1,
		Availability: []topicRef{{Topic: n.Bridge("status")}}, AvailabilityMode: "all",
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
