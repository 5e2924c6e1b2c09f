package discovery

import (
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
)

// MaxText is the longest state that Home Assistant stores, in characters.
const MaxText = 255

// Card is what a robot's discovery is made from.
type Card struct {
	ID         device.ID
	Name       string // given by its owner; may be empty
	Board      string
	Firmware   string
	Version    string // of the appliance
	BaseURL    string
	Tools      []device.Tool
	Senses     Senses
	Gestures   []string // that it can be asked for, by name
	Characters []string // that it can have, by id
}

// Senses holds what a robot is known to report, by the keys of the entities: "battery", "charging",
// "signal", "temperature", "face", "identity", "touch", "perception", "mood", "booted"; and
// "firmware", which the catalogue knows.
type Senses map[string]bool

// NewSenses returns the senses of a robot that has yet to report anything, given the ids that were
// announced for it before: otherwise its entities would vanish with each start of the appliance and
// come back later.
func NewSenses(announced []string) Senses {
	s := Senses{"booted": true, "firmware": true}
	for _, id := range announced {
		if _, key, ok := splitID(id); ok && slices.Contains(reportedSenses(), key) {
			s[key] = true
		}
	}
	return s
}

// reportedSenses returns the senses that a robot is known to have once it has reported them.
func reportedSenses() []string {
	return []string{"battery", "charging", "signal", "temperature", "face", "identity", "touch", "perception", "mood"}
}

// Add records a sense and reports whether it is new.
func (s Senses) Add(sense string) bool {
	known := s[sense]
	s[sense] = true
	return !known
}

// OneLine returns a text from outside as one printable line of at most limit.Word bytes.
func OneLine(text string) string { return strings.TrimSpace(plain.Clip(plain.Text(text), limit.Word)) }

// robotIdentifier identifies a robot's device at Home Assistant, which merges devices that have an
// identifier in common.
func robotIdentifier(n topic.Names, id device.ID) string { return n.Appliance + "_" + string(id) }

func bridgeIdentifier(n topic.Names) string { return n.Appliance + "_bridge" }

func agentIdentifier(n topic.Names, id string) string {
	return n.Appliance + "_" + topic.AgentPrefix + id
}

// componentID returns the id of an announced component, to be remembered. It has the platform, because
// even a version that no longer has the entity needs that to remove it.
func componentID(key, platform string) string { return platform + "/" + key }

func splitID(id string) (platform, key string, ok bool) {
	platform, key, ok = strings.Cut(id, "/")
	return platform, key, ok && slices.Contains(Platforms(), platform) && topic.IsLevel(key)
}

// Platforms returns the platforms of announced entities.
func Platforms() []string {
	return []string{"binary_sensor", "button", "event", "light", "notify", "number", "select", "sensor", "switch", "text", "update"}
}
