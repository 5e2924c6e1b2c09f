package discovery

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/topic"
)

// Announcement is the discovery of one device.
type Announcement struct {
	Topic    string
	Payloads [][]byte // to be published on Topic in this order, retained
	// IDs are the component IDs to store and to pass to the next announcement of the device. A component is
	// the part of a payload that announces one entity. IDs is nil for a removal.
	IDs []string
}

// payload is a discovery payload. Home Assistant rejects a payload that has an unknown key at this level.
type payload struct {
	Device           map[string]any       `json:"device"`
	Origin           map[string]string    `json:"origin"`
	Availability     []topicRef           `json:"availability,omitempty"`
	AvailabilityMode string               `json:"availability_mode,omitempty"`
	QoS              int                  `json:"qos"`
	Components       map[string]component `json:"components"`
}

// Robot returns the announcement of a robot. The argument announced holds the IDs of all components that were
// ever announced for the robot. The last payload omits the components that no longer exist. Before it, there are
// payloads that reduce such a component to its platform, which makes Home Assistant remove the entity. All
// payloads are published every time, because Home Assistant or the broker may have been offline the last time.
func Robot(n topic.Names, c Card, announced []string) Announcement {
	components := robotComponents(n, c)
	d := map[string]any{
		"identifiers": []string{robotIdentifier(n, c.ID)},
		"connections": [][2]string{{"mac", c.ID.MAC()}},
		"name":        deviceName(cmp.Or(OneLine(c.Name), defaultName(c)), components),
		"via_device":  bridgeIdentifier(n),
	}
	maker, model := product(OneLine(c.Board))
	setText(d, "manufacturer", maker)
	setText(d, "model", model)
	setText(d, "model_id", OneLine(c.Board))
	setText(d, "sw_version", OneLine(c.Firmware))
	setText(d, "configuration_url", pageURL(c.BaseURL))
	return announce(n.Config(string(c.ID)), payload{
		Device: d, Origin: origin(c.Version), Components: components, QoS: 1,
		// With "all", the entities are available while both topics say "online". Both messages are retained,
		// because a topic without a message would make every entity unavailable.
		Availability:     []topicRef{{Topic: n.Bridge("status")}, {Topic: n.Robot(c.ID, "status")}},
		AvailabilityMode: "all",
	}, announced)
}

// Bridge returns the announcement of the appliance. It has to be published before the announcements of robots
// and agents, which refer to the appliance's device. url is the address of the owner's page and may be empty.
func Bridge(n topic.Names, version, url string, announced []string) Announcement {
	components := bridgeComponents(n)
	d := map[string]any{
		"identifiers":  []string{bridgeIdentifier(n)},
		"name":         "Perch",
		"manufacturer": "Perch",
		"model":        "Voice server",
	}
	setText(d, "sw_version", OneLine(version))
	setText(d, "configuration_url", pageURL(url))
	return announce(n.Config("bridge"), payload{Device: d, Origin: origin(version), Components: components, QoS: 1}, announced)
}

// Agent returns the announcement of an agent without a robot. It needs only the ID of the agent, so that an agent can be
// announced once more and removed even if only its ID is stored; see RemovedAgent.
func Agent(n topic.Names, id, version string, announced []string) Announcement {
	components := agentComponents(n, id)
	d := map[string]any{
		"identifiers":  []string{agentIdentifier(n, id)},
		"name":         deviceName(agentName(id), components),
		"manufacturer": "Perch",
		"model":        "Agent",
		"via_device":   bridgeIdentifier(n),
	}
	return announce(n.Config(topic.AgentPrefix+id), payload{
		Device: d, Origin: origin(version), Components: components, QoS: 1,
		Availability: []topicRef{{Topic: n.Bridge("status")}}, AvailabilityMode: "all",
	}, announced)
}

// RemovedRobot returns the announcement that removes a robot and all its entities from Home Assistant.
func RemovedRobot(n topic.Names, id device.ID) Announcement {
	return Announcement{Topic: n.Config(string(id)), Payloads: [][]byte{nil}}
}

// RemovedAgent returns the announcement that removes an agent. Home Assistant removes only devices that were
// announced since Home Assistant started, so the agent is announced once more before its removal.
func RemovedAgent(n topic.Names, id, version string) Announcement {
	a := Agent(n, id, version, nil)
	return Announcement{Topic: a.Topic, Payloads: append(a.Payloads, nil)}
}

// origin describes Perch, the program that makes the announcement.
func origin(version string) map[string]string {
	o := map[string]string{"name": "Perch"}
	if version = OneLine(version); version != "" {
		o["sw_version"] = version
	}
	return o
}

// announce returns the announcement of a device, including the steps that remove its former components.
func announce(topic string, p payload, announced []string) Announcement {
	a := Announcement{Topic: topic}
	for key, c := range p.Components {
		platform, _ := c["platform"].(string)
		a.IDs = append(a.IDs, componentID(key, platform))
	}
	var removed []string
	for _, id := range announced {
		if _, _, ok := splitID(id); ok && !slices.Contains(a.IDs, id) {
			removed = append(removed, id)
		}
	}
	a.IDs = append(a.IDs, removed...)
	for len(removed) > 0 {
		var step payload
		step, removed = p.without(removed)
		a.Payloads = append(a.Payloads, step.encode())
	}
	slices.Sort(a.IDs)
	a.IDs = slices.Compact(a.IDs)
	a.Payloads = append(a.Payloads, p.encode())
	return a
}

// without returns the payload with the removed components reduced to their platforms. A payload can contain a
// key only once, so components with the same key and other platforms remain for a later step.
func (p payload) without(removed []string) (step payload, remaining []string) {
	step = p
	step.Components = maps.Clone(p.Components)
	reduced := map[string]bool{}
	for _, id := range removed {
		platform, key, _ := splitID(id)
		if reduced[key] {
			remaining = append(remaining, id)
			continue
		}
		reduced[key] = true
		step.Components[key] = component{"platform": platform}
	}
	return step, remaining
}

func (p payload) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: the payload has only texts, numbers, lists and maps
	}
	return b
}

// product returns the maker and the model of a robot by the name of its board, such as "m5stack-stack-chan". If the
// name is not a known maker, a hyphen and a model, maker is empty and model is the whole name.
func product(board string) (maker, model string) {
	prefix, rest, _ := strings.Cut(board, "-")
	maker = map[string]string{"m5stack": "M5Stack", "esp": "Espressif", "waveshare": "Waveshare", "lilygo": "LILYGO", "atk": "ALIENTEK"}[prefix]
	if maker == "" || rest == "" {
		return "", board
	}
	return maker, strings.ToUpper(rest[:1]) + rest[1:]
}

// defaultName returns the name of a robot that its owner has not named: its kind, and the last four hex digits of
// its MAC address.
func defaultName(c Card) string {
	kind := "Robot"
	if board := strings.ToLower(c.Board); strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan") {
		kind = "Stack-chan"
	}
	return kind + " " + strings.ToUpper(string(c.ID[max(0, len(c.ID)-4):]))
}

// agentName returns the name of an agent's device, such as "Coding 1" or "Chat desk". Home Assistant derives
// the IDs of its entities from this name.
func agentName(id string) string {
	if place, coding := strings.CutPrefix(id, "coding-"); coding {
		return "Coding " + place
	}
	if chat, ok := strings.CutPrefix(id, agent.ChatPrefix); ok && chat != "" {
		return "Chat " + chat
	}
	return "Session " + id
}

// deviceName returns name, or name and " robot" if the name of an entity begins with name. Otherwise Home Assistant
// would log a warning about the repetition and shorten the entity's name.
func deviceName(name string, components map[string]component) string {
	for _, c := range components {
		if entity, _ := c["name"].(string); strings.HasPrefix(entity, name) {
			return name + " robot"
		}
	}
	return name
}

// pageURL returns the address if Home Assistant accepts it as the configuration URL of a device, and "" if not.
func pageURL(address string) string {
	u, err := url.Parse(address)
	if err == nil && len(address) <= 1024 && u.Hostname() != "" && u.User == nil &&
		slices.Contains([]string{"http", "https", "homeassistant"}, u.Scheme) {
		return address
	}
	return ""
}
