// Package topic builds and parses the MQTT topics of an appliance, which is a machine that runs Perch. In topics and
// requests, the appliance itself is called the bridge, as other MQTT gateways call themselves.
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

// Names holds the configured names that topics and identifiers of one appliance are made from.
type Names struct {
	Base      string // beginning of Perch's own topics, such as "perch"
	Prefix    string // beginning of Home Assistant's topics, such as "homeassistant"
	Appliance string // ID of the appliance, 8 hex digits; used in the identifiers of devices and not in topics
}

// AgentPrefix is the prefix of the topic level of an agent without a robot, and of its key in the table of
// announcements. No robot ID begins with it.
const AgentPrefix = "agent_"

// Robot returns a topic of a robot. For example, Robot(id, "say/set") returns "perch/a0b1c2d3e4f4/say/set".
func (n Names) Robot(id device.ID, thing string) string {
	return n.Base + "/" + string(id) + "/" + thing
}

// Agent returns a topic of an agent without a robot, for example Agent(id, "state").
func (n Names) Agent(id, thing string) string { return n.Base + "/" + AgentPrefix + id + "/" + thing }

// Bridge returns a topic of the appliance itself, for example Bridge("info").
func (n Names) Bridge(thing string) string { return n.Base + "/bridge/" + thing }

// Birth returns the topic on which Home Assistant publishes that it has started.
func (n Names) Birth() string { return n.Prefix + "/status" }

// Config returns the discovery topic of a device. The argument device is a robot ID, "bridge", or AgentPrefix
// and an agent ID. Home Assistant accepts only ASCII letters, digits, hyphens and underscores in a level of the topic,
// so Config replaces all other characters of the base topic with underscores.
func (n Names) Config(device string) string {
	base := strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return '_'
	}, n.Base)
	return n.Prefix + "/device/" + base + "_" + device + "/config"
}

// Commands returns the topic filters for commands to robots and agents, and for requests to the bridge.
func (n Names) Commands() []string { return []string{n.Base + "/+/+/set", n.Bridge("request/+")} }

// ParseSet splits "<base>/<device>/<thing>/set", the topic of a command. ok is false if topic does not have this form.
func (n Names) ParseSet(topic string) (device, thing string, ok bool) {
	rest, below := strings.CutPrefix(topic, n.Base+"/")
	rest, set := strings.CutSuffix(rest, "/set")
	device, thing, ok = strings.Cut(rest, "/")
	if !below || !set || !ok || strings.Contains(thing, "/") {
		return "", "", false
	}
	return device, thing, true
}

// ParseRequest splits "<base>/bridge/request/<verb>". ok is false if topic does not have this form.
func (n Names) ParseRequest(topic string) (verb string, ok bool) {
	verb, ok = strings.CutPrefix(topic, n.Bridge("request/"))
	return verb, ok && verb != "" && !strings.Contains(verb, "/")
}

// letters are the characters that Home Assistant accepts in one level of a discovery topic.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// IsLevel reports whether Home Assistant accepts an ID as one level of a discovery topic.
func IsLevel(id string) bool { return id != "" && strings.Trim(id, letters) == "" }

// HashPrefix is the prefix of agent IDs that are hashes of a session name.
const HashPrefix = "h-"

// AgentID returns the ID that topics use for the agent of a session. The ID is the name of the session. If the name is
// longer than 40 bytes, fails IsLevel, or begins with HashPrefix, the ID is HashPrefix and a hash of the name.
// Programs choose the names of their sessions, so a name can be any text.
func AgentID(session string) string {
	if IsLevel(session) && len(session) <= 40 && !strings.HasPrefix(session, HashPrefix) {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return HashPrefix + hex.EncodeToString(sum[:6])
}

// Check returns an error unless topic has at most 64 bytes and every level of it satisfies IsLevel. The error names
// key, the setting that contains the topic.
func Check(key, topic string) error {
	if len(topic) > 64 || slices.ContainsFunc(strings.Split(topic, "/"), func(level string) bool { return !IsLevel(level) }) {
		return language.OfKey(key, fmt.Errorf("%.80q has to be of 1 to 64 letters, digits, - and _, and / between them", topic))
	}
	return nil
}
