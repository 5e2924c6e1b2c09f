// Package topic builds and parses the MQTT topics of an appliance.
package topic

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"perch/device"
	"perch/language"
)

// Names are what the topics of one appliance are built from.
type Names struct {
	Base      string // the first level of every topic but discovery's: "perch"
	Prefix    string // the first level of Home Assistant's topics: "homeassistant"
	Appliance string // the appliance's id, 8 hex digits
}

// AgentPrefix begins the topic level, and the key in the table of announcements, of an agent
// without a robot. No robot's id begins with it.
const AgentPrefix = "agent_"

// Robot returns a robot's topic: Robot(id, "say/set").
func (n Names) Robot(id device.ID, thing string) string {
	return n.Base + "/" + string(id) + "/" + thing
}

// Agent returns the topic of an agent without a robot: Agent(id, "state").
func (n Names) Agent(id, thing string) string { return n.Base + "/" + AgentPrefix + id + "/" + thing }

// Bridge returns a topic of the appliance itself: Bridge("info").
func (n Names) Bridge(thing string) string { return n.Base + "/bridge/" + thing }

// Birth returns the topic on which Home Assistant publishes that it has started.
func (n Names) Birth() string { return n.Prefix + "/status" }

// Config returns the discovery topic of a device: a robot's id, "bridge", or an agent's id after
// AgentPrefix. Home Assistant accepts only letters, digits, hyphens and underscores there, so
// other characters of the base topic become underscores.
func (n Names) Config(device string) string {
	base := strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return '_'
	}, n.Base)
	return n.Prefix + "/device/" + base + "_" + device + "/config"
}

// Commands returns the filters of commands for robots and agents, and of requests to the bridge.
func (n Names) Commands() []string { return []string{n.Base + "/+/+/set", n.Bridge("request/+")} }

// ParseSet splits "<base>/<device>/<thing>/set", the topic of a command.
func (n Names) ParseSet(topic string) (device, thing string, ok bool) {
	rest, below := strings.CutPrefix(topic, n.Base+"/")
	rest, set := strings.CutSuffix(rest, "/set")
	device, thing, ok = strings.Cut(rest, "/")
	if !below || !set || !ok || strings.Contains(thing, "/") {
		return "", "", false
	}
	return device, thing, true
}

// ParseRequest splits "<base>/bridge/request/<verb>".
func (n Names) ParseRequest(topic string) (verb string, ok bool) {
	verb, ok = strings.CutPrefix(topic, n.Bridge("request/"))
	return verb, ok && verb != "" && !strings.Contains(verb, "/")
}

// letters are what Home Assistant accepts in one level of a discovery topic.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// IsLevel reports whether Home Assistant accepts an id as one level of a discovery topic.
func IsLevel(id string) bool { return id != "" && strings.Trim(id, letters) == "" }

// Hashed begins the ids of agents whose session's name is unfit for a topic.
const Hashed = "h-"

// AgentID returns the id of a session's agent in topics: always the same for one session. A client
// chooses its session's name, so a name with other characters, or a long one, is hashed.
func AgentID(session string) string {
	if IsLevel(session) && len(session) <= 40 && !strings.HasPrefix(session, Hashed) {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return Hashed + hex.EncodeToString(sum[:6])
}

// Check returns an error for a topic that other topics cannot begin with. The error names key, the
// setting that holds the topic.
func Check(key, topic string) error {
	if len(topic) > 64 || slices.ContainsFunc(strings.Split(topic, "/"), func(level string) bool { return !IsLevel(level) }) {
		return language.OfKey(key, fmt.Errorf("%.80q has to be of 1 to 64 letters, digits, - and _, and / between them", topic))
	}
	return nil
}
