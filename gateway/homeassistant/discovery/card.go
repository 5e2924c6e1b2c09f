package discovery

import (
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
	"perch/voice"
)

// MaxText is the maximum length of a state in Home Assistant, in characters.
const MaxText = 255

// Card holds the data that the discovery of a robot is made from.
type Card struct {
	ID         device.ID
	Name       string // chosen by the owner; may be empty
	Board      string
	Firmware   string
	Version    string // version of Perch
	BaseURL    string // address at which the robot reaches the appliance
	Tools      []device.Tool
	Senses     Senses
	Gestures   []string      // names of the gestures to choose from
	Music      []string      // MusicOff and the names of the owner's music; empty if there is none
	Characters []string      // IDs of the characters to choose from
	Brains     []string      // names of the brains to choose from
	Languages  []string      // BCP 47 tags of the languages to choose from
	Voices     []voice.Named // the voices to choose from; see Voices
}

// MusicOff is the option of the music select that stops the music.
const MusicOff = "off"

// Voices returns the voices that a robot can choose from: the default (DefaultOption), the voices in list, and present, the
// robot's present voice. It returns nil if the synthesizer lists no voices; the entity is then a text instead of a
// select. If the list is not known yet, Voices returns nil only if the select is missing from announced, the IDs of the
// announced components. So the entity keeps its kind.
func Voices(present string, list []voice.Named, known bool, announced []string) []voice.Named {
	if len(list) == 0 && (known || !slices.Contains(announced, componentID("voice", "select"))) {
		return nil
	}
	choices := append([]voice.Named{{Name: DefaultOption}}, list...)
	if present != "" && !slices.ContainsFunc(choices, func(v voice.Named) bool { return v.Name == present }) {
		choices = append(choices, voice.Named{Name: present})
	}
	return choices
}

// Senses is the set of values and events that a robot is known to report. A sense has the key of the entity that
// shows it: one of reportedSenses, or "booted". A robot has the sense "firmware" while the firmware catalogue has images
// and data about the robot.
type Senses map[string]bool

// NewSenses returns the senses of a robot that has not reported anything since the appliance started. It includes the
// senses among the component IDs that were announced before. Otherwise each start of the appliance would remove the
// entities until the robot reports again.
func NewSenses(announced []string) Senses {
	s := Senses{"booted": true}
	for _, id := range announced {
		if _, key, ok := splitID(id); ok && slices.Contains(reportedSenses(), key) {
			s[key] = true
		}
	}
	return s
}

// reportedSenses returns the senses that a new robot does not have.
func reportedSenses() []string {
	return []string{"battery", "charging", "signal", "temperature", "face", "identity", "touch", "perception", "mood", "firmware"}
}

// Add records a sense and reports whether it is new.
func (s Senses) Add(sense string) bool {
	known := s[sense]
	s[sense] = true
	return !known
}

// OneLine returns an untrusted text as one printable line of at most limit.Word bytes.
func OneLine(text string) string { return strings.TrimSpace(plain.Clip(plain.Text(text), limit.Word)) }

// robotIdentifier returns the identifier of a robot's device. Home Assistant merges devices that have the
// same identifier.
func robotIdentifier(n topic.Names, id device.ID) string { return n.Appliance + "_" + string(id) }

func bridgeIdentifier(n topic.Names) string { return n.Appliance + "_bridge" }

func agentIdentifier(n topic.Names, id string) string {
	return n.Appliance + "_" + topic.AgentPrefix + id
}

// componentID returns the ID under which an announced component is remembered. It contains the platform,
// which a later version of Perch needs to remove the entity.
func componentID(key, platform string) string { return platform + "/" + key }

// splitID splits a component ID. ok is false if the ID is invalid.
func splitID(id string) (platform, key string, ok bool) {
	platform, key, ok = strings.Cut(id, "/")
	return platform, key, ok && slices.Contains(Platforms(), platform) && topic.IsLevel(key)
}

// Platforms returns the entity platforms of Home Assistant that announcements use.
func Platforms() []string {
	return []string{"binary_sensor", "button", "event", "light", "notify", "number", "select", "sensor", "switch", "text", "update"}
}
