package homeassistant

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perch/device"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
)

// names are what topics and ids are made of.
type names struct{ topic.Names }

// robotCard is what discovery needs to know of a robot.
type robotCard struct {
	ID       device.ID
	Name     string // as its owner calls it; empty is none
	Board    string
	Firmware string
	Version  string // of the appliance
	BaseURL  string
	Tools    []device.Tool
	// Senses it is known to have: "battery", "charging", "signal",
	// "temperature", "face", "identity", "touch", "perception", "mood", "booted"; and
	// "firmware" where there is a catalogue that can offer it an image.
	Senses map[string]bool
	// Gestures that it can be asked for, by name.
	Gestures []string
	// Characters that it can have, by id.
	Characters []string
}

// announcement is the payload of one device. Home Assistant refuses the whole
// of it for a single key at this level that it does not know.
type announcement struct {
	Device           map[string]any       `json:"device"`
	Origin           map[string]string    `json:"origin"`
	Availability     []topicRef           `json:"availability,omitempty"`
	AvailabilityMode string               `json:"availability_mode,omitempty"`
	QoS              int                  `json:"qos"`
	Components       map[string]component `json:"components"`
}

// component is what Home Assistant makes one entity of.
type component map[string]any

// topicRef is a topic in an entity's list of availability topics.
type topicRef struct {
	Topic    string `json:"topic"`
	Template string `json:"value_template,omitempty"` // of online or offline
}

// mostText is the longest state that Home Assistant stores, in characters.
const mostText = 255

// robotDiscovery announces a robot. Before are the ids of everything that was
// ever announced for it; ids are those to remember in their place. What is
// gone is first reduced to its platform, by which Home Assistant removes it, and
// then left out. Both are published anew each time, because Home Assistant or the
// broker may have been away the last time.
func (n names) robotDiscovery(c robotCard, before []string) (messages []connection.Message, ids []string) {
	components := n.robotComponents(c)
	d := map[string]any{
		"identifiers": []string{n.robotIdentifier(c.ID)},
		"connections": [][2]string{{"mac", c.ID.MAC()}},
		"name":        deviceName(cmp.Or(oneLine(c.Name), defaultName(c)), components),
		"via_device":  n.bridgeIdentifier(),
	}
	putText(d, "model", oneLine(c.Board))
	putText(d, "sw_version", oneLine(c.Firmware))
	putText(d, "configuration_url", pageOf(c.BaseURL))
	return announce(n.Config(string(c.ID)), announcement{
		Device: d, Origin: origin(c.Version), Components: components, QoS: 1,
		// Both are Retained: with "all", one that was never published would
		// leave everything unavailable.
		Availability:     []topicRef{{Topic: n.Bridge("status")}, {Topic: n.Robot(c.ID, "status")}},
		AvailabilityMode: "all",
	}, before)
}

// bridgeDiscovery announces the appliance, which robots are behind: it has to
// be announced before them. url is the page its owner can open; empty is none.
func (n names) bridgeDiscovery(version, url string, before []string) (messages []connection.Message, ids []string) {
	components := n.bridgeComponents()
	d := map[string]any{
		"identifiers": []string{n.bridgeIdentifier()},
		"name":        "Perch",
		"model":       "Perch",
	}
	putText(d, "sw_version", oneLine(version))
	putText(d, "configuration_url", pageOf(url))
	return announce(n.Config("bridge"), announcement{Device: d, Origin: origin(version), Components: components, QoS: 1}, before)
}

// origin is the program that announces.
func origin(version string) map[string]string {
	o := map[string]string{"name": "Perch"}
	if version = oneLine(version); version != "" {
		o["sw_version"] = version
	}
	return o
}

// forgetDiscovery makes a robot vanish from Home Assistant, with every entity
// it ever had. An empty retained payload does that for all of the device's
// components that Home Assistant knows of, so the ids are not needed.
func (n names) forgetDiscovery(robot device.ID) []connection.Message {
	return []connection.Message{{Topic: n.Config(string(robot)), Retained: true, QoS: 1}}
}

// announce is the messages for one device.
func announce(topic string, a announcement, before []string) (messages []connection.Message, ids []string) {
	for key, c := range a.Components {
		ids = append(ids, componentID(key, c))
	}
	var gone []string
	for _, id := range before {
		if _, _, ok := splitID(id); ok && !slices.Contains(ids, id) {
			gone = append(gone, id)
		}
	}
	ids = append(ids, gone...)
	for len(gone) > 0 {
		var step announcement
		step, gone = a.without(gone)
		messages = append(messages, step.message(topic))
	}
	slices.Sort(ids)
	return append(messages, a.message(topic)), slices.Compact(ids)
}

// without is the announcement with what is gone reduced to its platform. One
// payload holds a key once, so the same key under a second platform that is
// gone too is left for another step.
func (a announcement) without(gone []string) (step announcement, left []string) {
	step = a
	step.Components = maps.Clone(a.Components)
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

func (a announcement) message(topic string) connection.Message {
	return connection.Message{Topic: topic, Payload: encode(a), Retained: true, QoS: 1}
}

// componentID is how a component is remembered: with its platform, which has
// to be named to remove it, by a version too that no longer has the entity.
func componentID(key string, c component) string {
	platform, _ := c["platform"].(string)
	return platform + "/" + key
}

func splitID(id string) (platform, key string, ok bool) {
	platform, key, ok = strings.Cut(id, "/")
	return platform, key, ok && slices.Contains(platforms(), platform) && idOnly().MatchString(key)
}

// platforms are those that entities are announced on.
func platforms() []string {
	return []string{"binary_sensor", "button", "event", "light", "notify", "number", "select", "sensor", "switch", "text", "update"}
}

// idOnly holds for an id that can be a part of a discovery topic.
var idOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })

// robotIdentifier is a robot's device among Home Assistant's. Devices that
// share a single identifier would be merged into one.
func (n names) robotIdentifier(id device.ID) string { return n.Appliance + "_" + string(id) }

func (n names) bridgeIdentifier() string { return n.Appliance + "_bridge" }

// defaultName distinguishes robots of one kind by the end of their MAC.
func defaultName(c robotCard) string {
	kind := "Robot"
	if board := strings.ToLower(c.Board); strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan") {
		kind = "Stack-chan"
	}
	return kind + " " + strings.ToUpper(string(c.ID[max(0, len(c.ID)-4):]))
}

// deviceName is a name that no entity's begins with: Home Assistant would take
// it for a repetition, complain, and cut it off.
func deviceName(name string, components map[string]component) string {
	for _, c := range components {
		if entity, _ := c["name"].(string); strings.HasPrefix(entity, name) {
			return name + " robot"
		}
	}
	return name
}

// oneLine is a text from outside, fit for a line: printable and bounded.
func oneLine(text string) string { return strings.TrimSpace(plain.Clip(plain.Text(text), limit.Word)) }

// pageOf is an address Home Assistant takes as a device's page, or nothing.
func pageOf(address string) string {
	if !isPage(address) {
		return ""
	}
	return address
}

// isPage holds for what Home Assistant takes as a configuration URL.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= 1024 && u.Hostname() != "" && u.User == nil &&
		slices.Contains([]string{"http", "https", "homeassistant"}, u.Scheme)
}

// putText leaves an empty key out.
func putText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}
