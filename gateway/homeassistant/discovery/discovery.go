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

// Announcement is the discovery of one device: payloads to publish retained on one topic, in order.
type Announcement struct {
	Topic    string
	Payloads [][]byte
	// IDs are to be remembered, and passed to the device's next announcement. A removal has none.
	IDs []string
}

// payload is one discovery payload. Home Assistant rejects the whole of it for a single unknown key
// at this level.
type payload struct {
	Device           map[string]any       `json:"device"`
	Origin           map[string]string    `json:"origin"`
	Availability     []topicRef           `json:"availability,omitempty"`
	AvailabilityMode string               `json:"availability_mode,omitempty"`
	QoS              int                  `json:"qos"`
	Components       map[string]component `json:"components"`
}

// Robot announces a robot. Before are the ids of every component that was ever announced for it. A
// component that it no longer has is first reduced to its platform, which has Home Assistant remove
// it, and then left out. Both payloads are published each time, because Home Assistant or the broker
// may have been away the last time.
func Robot(n topic.Names, c Card, before []string) Announcement {
	components := robotComponents(n, c)
	d := map[string]any{
		"identifiers": []string{robotIdentifier(n, c.ID)},
		"connections": [][2]string{{"mac", c.ID.MAC()}},
		"name":        deviceName(cmp.Or(OneLine(c.Name), defaultName(c)), components),
		"via_device":  bridgeIdentifier(n),
	}
	setText(d, "model", OneLine(c.Board))
	setText(d, "sw_version", OneLine(c.Firmware))
	setText(d, "configuration_url", pageURL(c.BaseURL))
	return announce(n.Config(string(c.ID)), payload{
		Device: d, Origin: origin(c.Version), Components: components, QoS: 1,
		// Both topics are retained: with "all", one without a message would make everything
		// unavailable.
		Availability:     []topicRef{{Topic: n.Bridge("status")}, {Topic: n.Robot(c.ID, "status")}},
		AvailabilityMode: "all",
	}, before)
}

// Bridge announces the appliance. It has to be published before its robots, whose devices refer to
// it. url is the page for its owner; may be empty.
func Bridge(n topic.Names, version, url string, before []string) Announcement {
	components := bridgeComponents(n)
	d := map[string]any{
		"identifiers": []string{bridgeIdentifier(n)},
		"name":        "Perch",
		"model":       "Perch",
	}
	setText(d, "sw_version", OneLine(version))
	setText(d, "configuration_url", pageURL(url))
	return announce(n.Config("bridge"), payload{Device: d, Origin: origin(version), Components: components, QoS: 1}, before)
}

// Agent announces an agent without a robot. Everything follows from the id, so that an agent can
// be removed when nothing else is known of it any more.
func Agent(n topic.Names, id, version string, before []string) Announcement {
	components := agentComponents(n, id)
	d := map[string]any{
		"identifiers": []string{agentIdentifier(n, id)},
		"name":        deviceName(agentName(id), components),
		"model":       "Agent",
		"via_device":  bridgeIdentifier(n),
	}
	return announce(n.Config(topic.AgentPrefix+id), payload{
		Device: d, Origin: origin(version), Components: components, QoS: 1,
		Availability: []topicRef{{Topic: n.Bridge("status")}}, AvailabilityMode: "all",
	}, before)
}

// RemovedRobot removes a robot from Home Assistant with every entity it ever had.
func RemovedRobot(n topic.Names, id device.ID) Announcement {
	return Announcement{Topic: n.Config(string(id)), Payloads: [][]byte{nil}}
}

// RemovedAgent removes an agent. Home Assistant removes only devices that it has seen announced
// since its own start, so the announcement precedes the removal.
func RemovedAgent(n topic.Names, id, version string) Announcement {
	a := Agent(n, id, version, nil)
	return Announcement{Topic: a.Topic, Payloads: append(a.Payloads, nil)}
}

// origin describes the program that announces.
func origin(version string) map[string]string {
	o := map[string]string{"name": "Perch"}
	if version = OneLine(version); version != "" {
		o["sw_version"] = version
	}
	return o
}

// announce returns the payloads of one device.
func announce(topic string, p payload, before []string) Announcement {
	a := Announcement{Topic: topic}
	for key, c := range p.Components {
		platform, _ := c["platform"].(string)
		a.IDs = append(a.IDs, componentID(key, platform))
	}
	var gone []string
	for _, id := range before {
		if _, _, ok := splitID(id); ok && !slices.Contains(a.IDs, id) {
			gone = append(gone, id)
		}
	}
	a.IDs = append(a.IDs, gone...)
	for len(gone) > 0 {
		var step payload
		step, gone = p.without(gone)
		a.Payloads = append(a.Payloads, step.encode())
	}
	slices.Sort(a.IDs)
	a.IDs = slices.Compact(a.IDs)
	a.Payloads = append(a.Payloads, p.encode())
	return a
}

// without returns the payload with the components that are gone reduced to their platforms. One
// payload holds a key once, so the same key of a second platform is left for another step.
func (p payload) without(gone []string) (step payload, left []string) {
	step = p
	step.Components = maps.Clone(p.Components)
	reduced := map[string]bool{}
	for _, id := range gone {
		platform, key, _ := splitID(id)
		if reduced[key] {
			left = append(left, id)
			continue
		}
		reduced[key] = true
		step.Components[key] = component{"platform": platform}
	}
	return step, left
}

func (p payload) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts, numbers, and lists and maps of them
	}
	return b
}

// defaultName distinguishes robots of one kind by the end of their MAC address.
func defaultName(c Card) string {
	kind := "Robot"
	if board := strings.ToLower(c.Board); strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan") {
		kind = "Stack-chan"
	}
	return kind + " " + strings.ToUpper(string(c.ID[max(0, len(c.ID)-4):]))
}

// agentName returns the name of an agent's device: "Coding 1", "Chat desk". Home Assistant makes the
// ids of its entities from it.
func agentName(id string) string {
	if place, coding := strings.CutPrefix(id, "coding-"); coding {
		return "Coding " + place
	}
	if chat, ok := strings.CutPrefix(id, agent.OfChat); ok && chat != "" {
		return "Chat " + chat
	}
	return "Session " + id
}

// deviceName returns a name that no entity's name begins with: Home Assistant would log such a
// repetition and cut it off.
func deviceName(name string, components map[string]component) string {
	for _, c := range components {
		if entity, _ := c["name"].(string); strings.HasPrefix(entity, name) {
			return name + " robot"
		}
	}
	return name
}

// pageURL returns an address if Home Assistant accepts it as a device's configuration URL, or "".
func pageURL(address string) string {
	u, err := url.Parse(address)
	if err == nil && len(address) <= 1024 && u.Hostname() != "" && u.User == nil &&
		slices.Contains([]string{"http", "https", "homeassistant"}, u.Scheme) {
		return address
	}
	return ""
}
