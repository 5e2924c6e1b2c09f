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
	required := append([]string{"platform", "unique_id", "name"}, r.required...)
	optional := append([]string{"icon", "entity_category", "device_class", "availability", "availability_mode", "json_attributes_topic", "qos"},
		r.optional...)
	if err := checkFields(platform, c, required, optional); err != nil {
		return err
	}
	if err := cmp.Or(checkID(c, device), checkName(c, device), checkPlace(platform, c), checkMode(c), checkClass(r, c)); err != nil {
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
	id := c["unique_id"].(string)
	ids, _ := textList(device, "identifiers") // checkDevice has found no fault in them
	for _, own := range ids {
		if !strings.HasPrefix(id, own+"_") {
			return fmt.Errorf("unique_id %q is not made of the device's identifier %q; one that several devices share merges them", id, own)
		}
	}
	return nil
}

func checkName(c, device map[string]any) error {
	name := c["name"].(string)
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
	return nil
}

// checkClass is about device classes and the units that go with them.
func checkClass(r rule, c map[string]any) error {
	class, there := c["device_class"].(string)
	units, known := r.classes[class]
	if there && !known {
		return fmt.Errorf("expected a device class of its platform, got %s", class)
	}
	unit, _ := c["unit_of_measurement"].(string)
	if units != nil && !slices.Contains(units, unit) {
		return fmt.Errorf("the unit of measurement %q is not valid together with device class %s", unit, class)
	}
	return nil
}
