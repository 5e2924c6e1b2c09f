package homeassistant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rule is what Home Assistant wants of a platform's components.
type rule struct {
	required []string
	optional []string
	classes  map[string][]string // device classes, and the units each may have; none is any
	check    func(c map[string]any) error
}

// keys are all that a component of the platform may have.
func (r rule) keys() []string {
	return slices.Concat(commonKeys(), r.required, r.optional)
}

func commonKeys() []string {
	return []string{"platform", "unique_id", "name", "icon", "entity_category", "device_class", "availability", "availability_mode",
		"json_attributes_topic", "qos"}
}

// rules of the platforms that robots are shown with, for the keys and the device
// classes that we announce. Home Assistant has more.
func rules() map[string]rule {
	reads := []string{"state_topic"}
	sets := []string{"command_topic"}
	shows := []string{"state_topic", "value_template"}
	return map[string]rule{
		"binary_sensor": {required: reads, optional: []string{"value_template", "payload_on", "payload_off"},
			classes: map[string][]string{"battery_charging": nil, "connectivity": nil, "occupancy": nil}},
		"button": {required: sets, optional: []string{"payload_press"}, classes: map[string][]string{"identify": nil, "restart": nil}},
		"event":  {required: append(reads, "event_types"), classes: map[string][]string{"button": nil}, check: checkEvent},
		"light": {required: append(sets, "schema"), optional: []string{"state_topic", "brightness", "supported_color_modes", "flash", "transition"},
			check: checkLight},
		"notify": {required: sets, optional: []string{"command_template"}},
		"number": {required: sets, optional: append(shows, "min", "max", "step", "mode", "unit_of_measurement"), check: checkNumber},
		"select": {required: append(sets, "options"), optional: shows, check: checkOptions},
		"sensor": {required: reads, optional: []string{"value_template", "options", "unit_of_measurement", "state_class"},
			classes: map[string][]string{"battery": {"%"}, "enum": {""}, "temperature": {"°C"}, "timestamp": {""}}, check: checkSensor},
		"switch": {required: sets, optional: shows},
		"text":   {required: sets, optional: append(shows, "min", "max"), check: checkText},
		"update": {required: reads, optional: []string{"command_topic", "payload_install"}, classes: map[string][]string{"firmware": nil},
			check: checkUpdate},
	}
}

// checkEntity holds a component, whole, against its platform's rules and those
// for all.
func checkEntity(platform string, r rule, c, device map[string]any) error {
	if err := onlyKeys(platform, c, r.keys()); err != nil {
		return err
	}
	for _, key := range append([]string{"unique_id"}, r.required...) {
		if _, there := c[key]; !there {
			return fmt.Errorf("required key not provided: %s", key)
		}
	}
	err := cmp.Or(checkID(c, device), checkName(c, device), checkPlace(platform, c), checkWords(c))
	if err = cmp.Or(err, checkAvailability(c), checkQoS(c), checkClass(r, c)); err != nil {
		return err
	}
	if r.check == nil {
		return nil
	}
	return r.check(c)
}

// checkID wants the id to be made of the device's own. An identifier that is
// in no id of the device's entities is likely the same for all devices, and
// Home Assistant would merge them.
func checkID(c, device map[string]any) error {
	id, err := textField(c, "unique_id")
	if err != nil {
		return err
	}
	ids, _ := textList(device, "identifiers") // checkDevice has found no fault in them
	for _, own := range ids {
		if !strings.HasPrefix(id, own+"_") {
			return fmt.Errorf("unique_id %q is not made of the device's identifier %q; one that several devices share merges them", id, own)
		}
	}
	return nil
}

func checkName(c, device map[string]any) error {
	name, err := textField(c, "name")
	if err != nil {
		return err
	}
	if owner, _ := device["name"].(string); owner != "" && strings.HasPrefix(name, owner) {
		return fmt.Errorf("entity name %q starts with the device name %q", name, owner)
	}
	return nil
}

// checkPlace is about where the entity is shown.
func checkPlace(platform string, c map[string]any) error {
	switch category := c["entity_category"]; category {
	case nil, "diagnostic":
	case "config":
		if platform == "sensor" || platform == "binary_sensor" {
			return fmt.Errorf("entity category config is not for a %s, which sets nothing", platform)
		}
	default:
		return fmt.Errorf("entity_category is %v, not config or diagnostic", category)
	}
	if icon, there := c["icon"]; there {
		if name, _ := icon.(string); !strings.Contains(name, ":") {
			return fmt.Errorf("icon %v is not of the form prefix:name", icon)
		}
	}
	return nil
}

// checkWords is about topics, templates, payloads and booleans, found by their keys.
func checkWords(c map[string]any) error {
	for key, value := range c {
		word, isText := value.(string)
		switch {
		case strings.HasSuffix(key, "topic"):
			if !isText {
				return fmt.Errorf("%s is no text", key)
			}
			if err := legalTopic(word); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		case strings.HasSuffix(key, "template"):
			if !isText {
				return fmt.Errorf("%s is no text", key)
			}
			if err := checkTemplate(key, word); err != nil {
				return err
			}
		case strings.HasPrefix(key, "payload_"):
			if !isText {
				return fmt.Errorf("%s is %v, not a text", key, value)
			}
		case key == "brightness" || key == "flash" || key == "transition":
			if _, ok := value.(bool); !ok {
				return fmt.Errorf("%s is %v, not true or false", key, value)
			}
		}
	}
	return nil
}

// checkClass is about device classes and the units that go with them.
func checkClass(r rule, c map[string]any) error {
	value, there := c["device_class"]
	if !there || value == nil {
		return nil
	}
	class, _ := value.(string)
	units, known := r.classes[class]
	if !known {
		return fmt.Errorf("expected a device class of its platform, got %v", value)
	}
	if units == nil {
		return nil
	}
	unit, _ := c["unit_of_measurement"].(string)
	if !slices.Contains(units, unit) {
		return fmt.Errorf("the unit of measurement %q is not valid together with device class %s", unit, class)
	}
	return nil
}
