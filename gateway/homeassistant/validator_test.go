package homeassistant

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"perch/gateway/homeassistant/discovery"
)

// The functions below check announcements with the rules of homeassistant/components/mqtt that data from robots, owners
// and clients could break. testdata/discovery.json protects the fixed parts of the announcements.

// mostDiscovery is the maximum length of a payload, in bytes. A robot with every entity has about ten thousand.
const mostDiscovery = 256 << 10

const checkedTopic = "homeassistant/device/perch_a0b1c2d3e4f5/config"

// rule holds the keys and device classes that Home Assistant allows in a platform's components, separated by spaces. A
// device class may be followed by a colon and its required unit, which may be empty.
type rule struct{ required, optional, classes string }

func rules() map[string]rule {
	return map[string]rule{
		"binary_sensor": {"state_topic", "value_template payload_on payload_off", "battery_charging connectivity occupancy"},
		"button":        {"command_topic", "payload_press", "identify restart"},
		"event":         {"state_topic event_types", "", "button"},
		"light":         {"command_topic schema", "state_topic brightness supported_color_modes flash transition", ""},
		"notify":        {"command_topic", "command_template", ""},
		"number":        {"command_topic min max", "state_topic value_template step mode unit_of_measurement", ""},
		"select":        {"command_topic options", "state_topic value_template command_template", ""},
		"sensor": {"state_topic", "value_template options unit_of_measurement state_class json_attributes_topic",
			"battery:% enum: temperature:°C timestamp:"},
		"switch": {"command_topic", "state_topic value_template", ""},
		"text":   {"command_topic min max", "state_topic value_template", ""},
		"update": {"state_topic command_topic payload_install", "", "firmware"},
	}
}

// checkDiscovery returns an error for the first part of a discovery message that Home Assistant would reject, log a
// warning about, or silently ignore.
func checkDiscovery(prefix string, m message) error {
	rest, below := strings.CutPrefix(m.Topic, prefix+"/")
	switch {
	case !below || !configTopic().MatchString(rest):
		return fmt.Errorf("illegal discovery topic %q", m.Topic)
	case !m.Retained:
		return errors.New("it is not retained, and is lost when Home Assistant starts anew")
	case len(m.Payload) == 0:
		return nil // the device is removed
	case len(m.Payload) > mostDiscovery:
		return fmt.Errorf("the payload has %d bytes; the most is %d", len(m.Payload), mostDiscovery)
	}
	root, err := parseObject(m.Payload)
	if err == nil {
		err = onlyKeys("the message", root, append(sharedKeys(), "device", "origin", "components"))
	}
	device, _ := root["device"].(map[string]any)
	components, _ := root["components"].(map[string]any)
	for _, values := range []map[string]any{root, device} {
		for key, value := range values {
			err = errors.Join(err, checkValue(key, value))
		}
	}
	ids := map[string]bool{}
	for key, value := range components {
		if c, _ := value.(map[string]any); !topicLevel().MatchString(key) || len(c) == 0 {
			err = errors.Join(err, fmt.Errorf("component %q: %v", key, value))
		} else if each := checkComponent(device, root, c, ids); each != nil {
			err = errors.Join(err, fmt.Errorf("component %s: %w", key, each))
		}
	}
	if origin, _ := root["origin"].(map[string]any); len(device) == 0 || len(components) == 0 || origin["name"] == nil {
		err = errors.Join(err, errors.New("device, origin with a name, and components are required"))
	}
	return err
}

// configTopic returns the pattern of a discovery topic without the prefix.
var configTopic = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^device/[a-zA-Z0-9_-]+/config$`) })

// topicLevel returns the pattern of one level of a discovery topic.
var topicLevel = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })

// isPage reports whether Home Assistant accepts an address as a configuration URL.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= 1024 && u.Hostname() != "" && u.User == nil && slices.Contains([]string{"http", "https", "homeassistant"}, u.Scheme)
}

// sharedKeys returns the keys of a device's payload that are the defaults for its components.
func sharedKeys() []string { return []string{"availability", "availability_mode", "qos"} }

// checkComponent checks a component with the rules of its platform and the rules for all platforms.
func checkComponent(device, shared, c map[string]any, ids map[string]bool) error {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	platform, id, class := text(c, "platform"), text(c, "unique_id"), text(c, "device_class")
	r, supported := rules()[platform]
	if !supported || len(c) == 1 { // a component of only a platform is a removal
		if supported {
			return nil
		}
		return fmt.Errorf("integration %v is not supported", c["platform"])
	}
	required := append(strings.Fields(r.required), "platform", "unique_id", "name")
	optional := append(strings.Fields(r.optional), "icon", "entity_category", "device_class", "availability", "json_attributes_topic")
	err := onlyKeys(platform, c, append(required, optional...))
	for _, key := range required {
		if c[key] == nil {
			err = errors.Join(err, fmt.Errorf("required key not provided: %s", key))
		}
	}
	for key, value := range c {
		err = errors.Join(err, checkValue(key, value))
	}
	refs := availabilityOf(c)
	if refs == nil {
		refs = availabilityOf(shared)
	}
	owners, _ := textList(device, "identifiers")
	classes := " " + r.classes + " "
	_, sets := c["options"]
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(owners, func(own string) bool { return strings.HasPrefix(id, own+"_") }):
		return fmt.Errorf("unique_id %q is not made of the device's identifiers %q; one that several devices share merges them", id, owners)
	case ids[platform+id]:
		return fmt.Errorf("the platform does not generate unique IDs: %q", id)
	case strings.HasPrefix(text(c, "name"), text(device, "name")):
		return fmt.Errorf("entity name %q starts with the device name %q", c["name"], device["name"])
	case class != "" && !strings.Contains(classes, " "+class+" ") && !strings.Contains(classes, " "+class+":"+text(c, "unit_of_measurement")+" "):
		return fmt.Errorf("device class %s with the unit %v is none of its platform", class, c["unit_of_measurement"])
	case platform == "sensor" && sets != (class == "enum"):
		return errors.New("options and the device class enum go together")
	case numberField(c, "min", 0) >= numberField(c, "max", 1):
		return fmt.Errorf("max must be greater than min, of %v and %v", c["min"], c["max"])
	case len(refs) > 1 && c["availability_mode"] == nil && shared["availability_mode"] == nil:
		return errors.New("availability of several topics needs the mode all")
	}
	ids[platform+id] = true
	return nil
}

// checkValue checks one value: the texts of a list must differ, and topics and templates must be valid.
func checkValue(key string, value any) error {
	text, isText := value.(string)
	switch {
	case isText && text == "":
		return fmt.Errorf("%s is empty", key)
	case strings.HasSuffix(key, "topic"):
		return legalTopic(text)
	case strings.HasSuffix(key, "template"):
		for _, pair := range [][2]string{{"{{", "}}"}, {"{%", "%}"}} {
			if strings.Count(text, pair[0]) != strings.Count(text, pair[1]) {
				return fmt.Errorf("%s: %q is not closed in %q", key, pair[0], text)
			}
		}
	case key == "configuration_url" && !isPage(text):
		return fmt.Errorf("configuration_url %q is no http, https or homeassistant URL", text)
	case key == "options", key == "event_types", key == "identifiers":
		list, err := textList(map[string]any{key: value}, key)
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("%s is empty", key)
		}
		return err
	case key == "availability":
		for _, ref := range availabilityOf(map[string]any{key: value}) {
			topic, _ := ref["topic"].(string)
			if err := errors.Join(legalTopic(topic), onlyKeys(key, ref, []string{"topic", "value_template"})); err != nil {
				return err
			}
		}
	}
	return nil
}

// legalTopic returns an error if a topic is not valid for publishing.
func legalTopic(topic string) error {
	control := func(r rune) bool {
		return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
	}
	if topic == "" || len(topic) > 65535 || !utf8.ValidString(topic) || strings.ContainsAny(topic, "+#") || strings.ContainsFunc(topic, control) {
		return fmt.Errorf("%q is no topic", topic)
	}
	return nil
}

// parseObject parses a JSON object. It returns an error if anything follows the object.
func parseObject(payload []byte) (root map[string]any, err error) {
	if !utf8.Valid(payload) {
		return nil, errors.New("unable to parse JSON: it is not UTF-8")
	}
	if !strings.HasPrefix(string(payload), "{") {
		return nil, errors.New("unable to parse JSON: it is no object")
	}
	return root, json.Unmarshal(payload, &root)
}

// textList returns an optional field, which must be a list of different texts. It returns nil if the field is missing.
func textList(m map[string]any, key string) (texts []string, err error) {
	list, ok := m[key].([]any)
	if !ok && m[key] != nil {
		return nil, fmt.Errorf("%s is %v, not a list of texts", key, m[key])
	}
	for _, v := range list {
		s, _ := v.(string)
		if s == "" || slices.Contains(texts, s) {
			return nil, fmt.Errorf("%s has %v, which is no text, or twice", key, v)
		}
		texts = append(texts, s)
	}
	return texts, nil
}

// numberField returns an optional number. It returns the argument otherwise if the field is missing.
func numberField(m map[string]any, key string, otherwise float64) float64 {
	if n, there := m[key].(float64); there {
		return n
	}
	return otherwise
}

// textField returns an optional text. It returns the argument otherwise if the field is missing.
func textField(m map[string]any, key, otherwise string) string {
	if s, there := m[key].(string); there {
		return s
	}
	return otherwise
}

// onlyKeys returns an error if m has a key that is not in known.
func onlyKeys(where string, m map[string]any, known []string) error {
	for key := range m {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%s: extra keys not allowed: %q", where, key)
		}
	}
	return nil
}

// TestValidatorSeesMistakes tests that checkDiscovery returns errors for invalid payloads.
func TestValidatorSeesMistakes(t *testing.T) {
	good := messagesOf(discovery.Robot(discoveryNames(), stackChan(), nil))[0]
	for old, bad := range map[string]string{
		`"qos":1`: `"retain":true`, `"name":"Mute"`: `"name":"Kitchen Chan mute"`, `_mute"`: `_stop_"`, `"platform":"switch"`: `"platform":"lock"`,
		`"platform":"number"`: `"platform":"text"`, `"min":5`: `"min":85`, `"options":["`: `"options":["","`, `"diagnostic"`: `""`, `}}"`: `}"`,
		`perch/bridge/status`: `perch/+/status`, `"device_class":"restart"`: `"device_class":"mood"`, `12ab34cd_a0b1c2d3e4f5"]`: `perch"]`,
		`"unit_of_measurement":"%"`: `"unit_of_measurement":"V"`, `"availability_mode":"all",`: ``,
	} {
		payload := strings.Replace(string(good.Payload), old, bad, -1)
		if payload == string(good.Payload) || old != `_mute"` && checkDiscovery("homeassistant", message{Topic: good.Topic, Payload: []byte(payload),
			Retained: true}) == nil {
			t.Errorf("%s in place of %s passes", bad, old)
		}
	}
	if checkDiscovery("homeassistant", message{Topic: good.Topic, Payload: good.Payload}) == nil ||
		checkDiscovery("homeassistent", good) == nil || checkDiscovery("homeassistant", message{Topic: "homeassistant/sensor/x/config",
		Payload: good.Payload, Retained: true}) == nil {
		t.Error("a message that is not retained, or on another topic, passes")
	}
	if !slices.Equal(slices.Sorted(maps.Keys(rules())), slices.Sorted(slices.Values(discovery.Platforms()))) {
		t.Error("a platform is without rules, or its entities cannot be removed again")
	}
}

// FuzzCheckDiscovery tests that no message makes checkDiscovery panic, and that each message that it accepts is a complete
// announcement or a removal.
func FuzzCheckDiscovery(f *testing.F) {
	f.Add(checkedTopic, discovery.Robot(discoveryNames(), stackChan(), nil).Payloads[0], true)
	f.Add(checkedTopic, []byte(`{"device":null,"origin":1,"components":[]}`), true)
	f.Add("homeassistant/device//config", []byte{}, false)
	f.Fuzz(func(t *testing.T, topic string, payload []byte, retained bool) {
		if checkDiscovery("homeassistant", message{Topic: topic, Payload: payload, Retained: retained}) != nil {
			return
		}
		if !retained || !strings.HasPrefix(topic, "homeassistant/device/") || len(payload) > 0 && !json.Valid(payload) {
			t.Fatalf("%q is taken on %q", payload, topic)
		}
	})
}
