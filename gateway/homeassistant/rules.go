package homeassistant

import (
	"errors"
	"fmt"
	"regexp"
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
	return []string{
		"platform", "unique_id", "name", "icon", "entity_category", "enabled_by_default", "visible_by_default", "device_class",
		"availability", "availability_mode", "availability_topic", "availability_template", "payload_available", "payload_not_available",
		"json_attributes_topic", "json_attributes_template", "qos", "encoding", "default_entity_id", "message_expiry_interval",
	}
}

// platforms are those robots are shown with. Home Assistant has more.
func platforms() []string {
	return []string{"binary_sensor", "button", "event", "light", "notify", "number", "select", "sensor", "switch", "text", "update"}
}

// rules of the platforms. Device classes are those a robot can have a use for.
func rules() map[string]rule {
	reads := []string{"state_topic"}
	sets := []string{"command_topic"}
	settable := []string{"state_topic", "value_template", "command_template", "optimistic", "retain"}
	units := map[string][]string{
		"battery": {"%"}, "duration": {"d", "h", "min", "s", "ms"}, "humidity": {"%"}, "illuminance": {"lx"},
		"signal_strength": {"dB", "dBm"}, "temperature": {"°C", "°F", "K"}, "voltage": {"V", "mV"},
	}
	sensors := map[string][]string{"enum": {""}, "timestamp": {""}, "date": {""}}
	for class, list := range units {
		sensors[class] = list
	}
	return map[string]rule{
		"binary_sensor": {required: reads, optional: []string{"value_template", "payload_on", "payload_off", "off_delay", "expire_after",
			"force_update"},
			classes: classes("battery", "battery_charging", "connectivity", "motion", "occupancy", "presence", "problem", "running", "sound",
				"update"),
			check: checkReadOnly},
		"button": {required: sets, optional: []string{"command_template", "payload_press", "retain"},
			classes: classes("identify", "restart", "update")},
		"event": {required: append(reads, "event_types"), optional: []string{"value_template"},
			classes: classes("button", "doorbell", "motion"), check: checkEvent},
		"light": {required: append(sets, "schema"), optional: []string{"state_topic", "optimistic", "retain", "brightness", "brightness_scale",
			"supported_color_modes", "effect", "effect_list", "flash", "flash_time_long", "flash_time_short", "transition"}, check: checkLight},
		"notify": {required: sets, optional: []string{"command_template", "retain"}},
		"number": {required: sets, optional: append(settable, "min", "max", "step", "mode", "unit_of_measurement", "payload_reset"),
			classes: units, check: checkNumber},
		"select": {required: append(sets, "options"), optional: settable, check: checkOptions},
		"sensor": {required: reads, optional: []string{"value_template", "options", "unit_of_measurement", "state_class", "expire_after",
			"force_update", "suggested_display_precision"}, classes: sensors, check: checkSensor},
		"switch": {required: sets, optional: append(settable, "payload_on", "payload_off", "state_on", "state_off"),
			classes: classes("outlet", "switch")},
		"text": {required: sets, optional: append(settable, "min", "max", "mode", "pattern"), check: checkText},
		"update": {required: reads, optional: []string{"command_topic", "payload_install", "value_template", "retain", "title", "release_summary",
			"release_url", "entity_picture", "latest_version_topic", "latest_version_template"}, classes: classes("firmware"), check: checkUpdate},
	}
}

// classes are device classes that have nothing to do with units.
func classes(names ...string) map[string][]string {
	all := map[string][]string{}
	for _, name := range names {
		all[name] = nil
	}
	return all
}

var entityID = regexp.MustCompile(`^([a-z_]+)\.[a-z0-9_]+$`)

// checkEntity holds a component, whole, against its platform's rules and those
// for all.
func checkEntity(platform string, r rule, c, device map[string]any) error {
	if _, old := c["object_id"]; old {
		return errors.New("object_id is no longer supported; default_entity_id took its place")
	}
	if err := onlyKeys(platform, c, r.keys()); err != nil {
		return err
	}
	for _, key := range append([]string{"unique_id"}, r.required...) {
		if _, there := c[key]; !there {
			return fmt.Errorf("required key not provided: %s", key)
		}
	}
	for _, check := range []func() error{
		func() error { return checkID(c, device) },
		func() error { return checkName(c, device) },
		func() error { return checkPlace(platform, c) },
		func() error { return checkWords(c) },
		func() error { return checkAvailability(c) },
		func() error { return checkQoS(c) },
		func() error { return checkClass(r, c) },
	} {
		if err := check(); err != nil {
			return err
		}
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
	ids, err := textList(device, "identifiers")
	if err != nil {
		return err
	}
	for _, own := range ids {
		if !strings.HasPrefix(id, own+"_") {
			return fmt.Errorf("unique_id %q is not made of the device's identifier %q; one that several devices share merges them", id, own)
		}
	}
	return nil
}

func checkName(c, device map[string]any) error {
	value, there := c["name"]
	if !there {
		return errors.New("without a name the entity is called after its platform")
	}
	if value == nil {
		return nil // it is called as the device is
	}
	name, err := textField(c, "name")
	if err != nil {
		return err
	}
	if owner, _ := device["name"].(string); owner != "" && strings.HasPrefix(name, owner) {
		return fmt.Errorf("entity name %q starts with the device name %q", name, owner)
	}
	return nil
}

// checkPlace is about the entity's id and where it is shown.
func checkPlace(platform string, c map[string]any) error {
	if value, there := c["default_entity_id"]; there {
		id, _ := value.(string)
		parts := entityID.FindStringSubmatch(id)
		switch {
		case parts == nil:
			return fmt.Errorf("default_entity_id %v is no entity id", value)
		case parts[1] != platform:
			return fmt.Errorf("default_entity_id %q is of another domain than %s", id, platform)
		}
	}
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

// checkWords is about topics, templates and switches, by the ends of their
// keys.
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
		case strings.HasPrefix(key, "payload_") || strings.HasPrefix(key, "state_on") || strings.HasPrefix(key, "state_off") || key == "encoding":
			if !isText {
				return fmt.Errorf("%s is %v, not a text", key, value)
			}
		case slices.Contains([]string{"retain", "optimistic", "enabled_by_default", "visible_by_default", "force_update", "brightness",
			"effect", "flash", "transition"}, key):
			if _, ok := value.(bool); !ok {
				return fmt.Errorf("%s is %v, not true or false", key, value)
			}
		}
	}
	if c["retain"] == true {
		return errors.New("a retained command would be carried out again at each start; it is never obeyed")
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
