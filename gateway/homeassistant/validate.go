package homeassistant

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// errDiscovery is wrapped by what checkDiscovery returns.
var errDiscovery = errors.New("refused by the rules of Home Assistant")

// mostDiscovery bounds a payload, in bytes. A robot with everything has some
// ten thousand.
const mostDiscovery = 256 << 10

// checkDiscovery reports the first thing about a discovery message that Home
// Assistant would refuse, warn of in its log, or silently leave out. It knows
// the rules of homeassistant/components/mqtt for messages of one device each,
// and is stricter in this: a key it does not know is a mistake, where Home
// Assistant drops it from a component without a word.
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
	case !m.retained && len(m.payload) == 0:
		return errors.New("an empty payload removes the device only where it is retained; else the announcement stays")
	case !m.retained:
		return errors.New("it is not retained, and is lost when Home Assistant starts anew")
	case m.qos > 2:
		return fmt.Errorf("there is no QoS %d", m.qos)
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

// configTopics is Home Assistant's pattern of what follows the prefix.
var configTopics = regexp.MustCompile(`^(\w+)/(?:([a-zA-Z0-9_-]+)/)?([a-zA-Z0-9_-]+)/config$`)

func checkConfigTopic(prefix, topic string) error {
	if err := legalTopic(topic); err != nil {
		return err
	}
	rest, below := strings.CutPrefix(topic, prefix+"/")
	if !below {
		return fmt.Errorf("the topic is not below the discovery prefix %q", prefix)
	}
	parts := configTopics.FindStringSubmatch(rest)
	switch {
	case parts == nil:
		return errors.New("received message on illegal discovery topic: device/ID/config, the ID of letters, digits, _ and -, is what is taken")
	case parts[1] == "device":
		return nil
	case slices.Contains(platforms(), parts[1]):
		return fmt.Errorf("%s is announced by itself; a device's components belong into its one message", parts[1])
	}
	return fmt.Errorf("integration %s is not supported", parts[1])
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
	d := json.NewDecoder(bytes.NewReader(payload))
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("unable to parse JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unable to parse JSON: something follows the object")
	}
	if root == nil {
		return nil, errors.New("unable to parse JSON: null is no object")
	}
	return root, nil
}

// sharedKeys are those of a device's message that its components inherit
// where they do not have them.
func sharedKeys() []string {
	return []string{
		"availability", "availability_mode", "availability_template", "availability_topic", "command_topic", "encoding",
		"message_expiry_interval", "payload_available", "payload_not_available", "qos", "state_topic",
	}
}

func checkDevicePayload(root map[string]any) error {
	if err := expand(root, rootAbbreviations()); err != nil {
		return err
	}
	if err := onlyKeys("the message", root, append(sharedKeys(), "device", "origin", "components")); err != nil {
		return err
	}
	device, err := objectField(root, "device")
	if err != nil {
		return err
	}
	origin, err := objectField(root, "origin")
	if err != nil {
		return err
	}
	components, err := objectField(root, "components")
	if err != nil {
		return err
	}
	for _, err := range []error{checkDevice(device), checkOrigin(origin), checkAvailability(root), checkQoS(root)} {
		if err != nil {
			return err
		}
	}
	if len(components) == 0 {
		return errors.New("there is not one component")
	}
	shared := map[string]any{}
	for _, key := range sharedKeys() {
		if value, there := root[key]; there {
			shared[key] = value
		}
	}
	return checkComponents(device, components, shared)
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
		if err := expand(c, componentAbbreviations()); err != nil {
			return fmt.Errorf("component %s: %w", key, err)
		}
		platform, err := textField(c, "platform")
		if err != nil {
			return fmt.Errorf("component %s: %w", key, err)
		}
		if !slices.Contains(platforms(), platform) {
			return fmt.Errorf("component %s: integration %s is not supported", key, platform)
		}
		if len(c) == 1 {
			continue // reduced to its platform, it is removed
		}
		known := all[platform].keys()
		for name, value := range shared {
			if _, own := c[name]; !own && slices.Contains(known, name) {
				c[name] = value
			}
		}
		if err := checkEntity(platform, all[platform], c, device); err != nil {
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
	known := []string{
		"identifiers", "connections", "manufacturer", "model", "model_id", "name", "hw_version", "serial_number", "sw_version",
		"via_device", "suggested_area", "configuration_url",
	}
	if err := expand(d, deviceAbbreviations()); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if err := onlyKeys("device", d, known); err != nil {
		return err
	}
	ids, err := textList(d, "identifiers")
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if err := checkConnections(d); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if len(ids) == 0 && d["connections"] == nil {
		return errors.New("device must have at least one identifying value in identifiers or connections")
	}
	for _, key := range known[2:] {
		if _, there := d[key]; there {
			if _, err := textField(d, key); err != nil {
				return fmt.Errorf("device: %w", err)
			}
		}
	}
	if page, there := d["configuration_url"].(string); there && !isPage(page) {
		return fmt.Errorf("device: configuration_url %q is no http, https or homeassistant URL", page)
	}
	if via, there := d["via_device"].(string); there && slices.Contains(ids, via) {
		return fmt.Errorf("device: it is behind itself: via_device %q is one of its identifiers", via)
	}
	return nil
}

var macPattern = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

// checkConnections wants pairs of a kind and a value.
func checkConnections(d map[string]any) error {
	value, there := d["connections"]
	if !there {
		return nil
	}
	pairs, _ := value.([]any)
	if len(pairs) == 0 {
		return errors.New("connections is no list of pairs")
	}
	for _, p := range pairs {
		pair, _ := p.([]any)
		if len(pair) != 2 {
			return fmt.Errorf("connections has %v, which is no pair", p)
		}
		kind, isText := pair[0].(string)
		name, both := pair[1].(string)
		if !isText || !both {
			return fmt.Errorf("connections has %v, which is no pair of texts", p)
		}
		if kind == "mac" && !macPattern.MatchString(name) {
			return fmt.Errorf("connections has %q, which is no MAC address in small letters with colons", name)
		}
	}
	return nil
}

func checkOrigin(o map[string]any) error {
	if err := expand(o, map[string]string{"sw": "sw_version", "url": "support_url"}); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	if err := onlyKeys("origin", o, []string{"name", "sw_version", "support_url"}); err != nil {
		return err
	}
	if _, err := textField(o, "name"); err != nil {
		return fmt.Errorf("unable to parse origin information: %w", err)
	}
	for _, key := range []string{"sw_version", "support_url"} {
		if _, there := o[key]; !there {
			continue
		}
		if value, err := textField(o, key); err != nil || key == "support_url" && !isPage(value) {
			return fmt.Errorf("unable to parse origin information: %s is %v", key, o[key])
		}
	}
	return nil
}

// checkAvailability holds for a message and for a component with what it
// inherits.
func checkAvailability(c map[string]any) error {
	list, hasList := c["availability"]
	single, hasTopic := c["availability_topic"]
	if hasList && hasTopic {
		return errors.New("availability and availability_topic exclude each other")
	}
	if mode, there := c["availability_mode"]; there && !slices.Contains([]any{"all", "any", "latest"}, mode) {
		return fmt.Errorf("availability_mode is %v, not all, any or latest", mode)
	}
	if hasTopic {
		topic, ok := single.(string)
		if !ok {
			return errors.New("availability_topic is no text")
		}
		return legalTopic(topic)
	}
	if !hasList {
		return nil
	}
	refs, ok := list.([]any)
	if !ok {
		refs = []any{list}
	}
	for _, r := range refs {
		ref, ok := r.(map[string]any)
		if !ok {
			return fmt.Errorf("availability has %v, which is no object", r)
		}
		if err := expand(ref, componentAbbreviations()); err != nil {
			return fmt.Errorf("availability: %w", err)
		}
		if err := onlyKeys("availability", ref, []string{"topic", "payload_available", "payload_not_available", "value_template"}); err != nil {
			return err
		}
		topic, err := textField(ref, "topic")
		if err != nil {
			return fmt.Errorf("availability: %w", err)
		}
		if err := legalTopic(topic); err != nil {
			return fmt.Errorf("availability: %w", err)
		}
		if template, there := ref["value_template"]; there {
			text, _ := template.(string)
			if err := checkTemplate("availability", text); text == "" || err != nil {
				return fmt.Errorf("availability: value_template %q: %w", template, cmp.Or(err, errors.New("it is no text")))
			}
		}
	}
	// With the default, latest, a second topic would undo the first's message.
	if mode := c["availability_mode"]; len(refs) > 1 && mode != "all" && mode != "any" {
		return errors.New("availability of several topics needs the mode all or any")
	}
	return nil
}

func checkQoS(c map[string]any) error {
	if qos, there := c["qos"]; there && !slices.Contains([]any{0.0, 1.0, 2.0}, qos) {
		return fmt.Errorf("qos is %v, not 0, 1 or 2", qos)
	}
	return nil
}
