package homeassistant

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// This validator is a helper of the tests. Every announcement that a test makes or
// a mirror under test publishes is held against it; at run time nothing is, for
// what announcements are made of is cleaned where it comes in.

// errDiscovery is wrapped by what checkDiscovery returns.
var errDiscovery = errors.New("refused by the rules of Home Assistant")

// mostDiscovery bounds a payload, in bytes. A robot with everything has some
// ten thousand.
const mostDiscovery = 256 << 10

// checkDiscovery reports the first thing about a discovery message that Home
// Assistant would refuse, warn of in its log, or silently leave out. It knows
// the rules of homeassistant/components/mqtt for what is announced here. Any other
// key is a mistake, also where Home Assistant takes it.
func checkDiscovery(prefix string, m message) error {
	if err := checkMessage(prefix, m); err != nil {
		return fmt.Errorf("%w: %s: %w", errDiscovery, m.topic, err)
	}
	return nil
}

func checkMessage(prefix string, m message) error {
	if err := checkConfigTopic(prefix, m.topic); err != nil {
		return err
	}
	switch {
	case !m.retained:
		return errors.New("it is not retained, and is lost when Home Assistant starts anew")
	case len(m.payload) == 0:
		return nil // the device is removed
	case len(m.payload) > mostDiscovery:
		return fmt.Errorf("the payload has %d bytes; the most is %d", len(m.payload), mostDiscovery)
	}
	root, err := parseObject(m.payload)
	if err != nil {
		return err
	}
	return checkDevicePayload(root)
}

// configTopic is the pattern of what follows the prefix.
var configTopic = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^device/[a-zA-Z0-9_-]+/config$`) })

func checkConfigTopic(prefix, topic string) error {
	if err := legalTopic(topic); err != nil {
		return err
	}
	if rest, below := strings.CutPrefix(topic, prefix+"/"); !below || !configTopic().MatchString(rest) {
		return fmt.Errorf("received message on illegal discovery topic: %s/device/ID/config, the ID of letters, digits, _ and -, is what is taken", prefix)
	}
	return nil
}

// legalTopic holds for topics to publish to and to subscribe to. A filter
// could be subscribed to, but nothing here has more than one source.
func legalTopic(topic string) error {
	switch {
	case topic == "":
		return errors.New("a topic must not be empty")
	case len(topic) > 65535:
		return errors.New("a topic must not be longer than 65535 bytes")
	case !utf8.ValidString(topic):
		return errors.New("a topic must be valid UTF-8")
	case strings.ContainsAny(topic, "+#"):
		return fmt.Errorf("wildcards cannot be used in topic %q", topic)
	}
	for _, r := range topic {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return fmt.Errorf("topic %q must not contain control characters or noncharacters", topic)
		}
	}
	return nil
}

// parseObject reads one JSON object and nothing after it.
func parseObject(payload []byte) (map[string]any, error) {
	if !utf8.Valid(payload) {
		return nil, errors.New("unable to parse JSON: it is not UTF-8")
	}
	var root map[string]any
	if err := object(string(payload), &root, false); err != nil {
		return nil, fmt.Errorf("unable to parse JSON: %w", err)
	}
	return root, nil
}

// sharedKeys are those of a device's message that its components inherit
// where they do not have them.
func sharedKeys() []string { return []string{"availability", "availability_mode", "qos"} }

func checkDevicePayload(root map[string]any) error {
	if err := checkFields("the message", root, []string{"device", "origin", "components"}, sharedKeys()); err != nil {
		return err
	}
	device, components := root["device"].(map[string]any), root["components"].(map[string]any)
	err := checkFields("origin", root["origin"].(map[string]any), []string{"name"}, []string{"sw_version"})
	if err = cmp.Or(err, checkDevice(device), checkMode(root)); err != nil {
		return err
	}
	if len(components) == 0 {
		return errors.New("there is not one component")
	}
	maps.DeleteFunc(root, func(key string, _ any) bool { return !slices.Contains(sharedKeys(), key) })
	return checkComponents(device, components, root)
}

func checkComponents(device, components, shared map[string]any) error {
	all, ids := rules(), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(components)) {
		c, ok := components[key].(map[string]any)
		if !ok {
			return fmt.Errorf("component %s is no object", key)
		}
		if !idPattern(key) {
			return fmt.Errorf("component %q: the key may have letters, digits, _ and -", key)
		}
		platform, there := c["platform"].(string)
		if !there {
			return fmt.Errorf("component %s: required key not provided: platform", key)
		}
		rule, supported := all[platform]
		if !supported {
			return fmt.Errorf("component %s: integration %s is not supported", key, platform)
		}
		if len(c) == 1 {
			continue // reduced to its platform, it is removed
		}
		for name, value := range shared {
			if _, own := c[name]; !own {
				c[name] = value
			}
		}
		if err := checkEntity(platform, rule, c, device); err != nil {
			return fmt.Errorf("component %s: %w", key, err)
		}
		id := platform + " " + c["unique_id"].(string)
		if first, twice := ids[id]; twice {
			return fmt.Errorf("component %s: the platform does not generate unique IDs: %s has %q too", key, first, c["unique_id"])
		}
		ids[id] = key
	}
	return nil
}

func checkDevice(d map[string]any) error {
	known := []string{"identifiers", "connections", "model", "name", "sw_version", "via_device", "configuration_url"}
	if err := checkFields("device", d, nil, known); err != nil {
		return err
	}
	ids, _ := textList(d, "identifiers")
	if len(ids) == 0 && d["connections"] == nil {
		return errors.New("device must have at least one identifying value in identifiers or connections")
	}
	if via, there := d["via_device"].(string); there && slices.Contains(ids, via) {
		return fmt.Errorf("device: it is behind itself: via_device %q is one of its identifiers", via)
	}
	return nil
}

// checkMode holds for a message and for a component with what it inherits. With
// the default, latest, a second topic would undo the first's message.
func checkMode(c map[string]any) error {
	if refs, _ := c["availability"].([]any); len(refs) > 1 && c["availability_mode"] == nil {
		return errors.New("availability of several topics needs the mode all")
	}
	return nil
}
