package homeassistant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var idOnly = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// idPattern holds for what can be a part of a discovery topic.
func idPattern(id string) bool { return idOnly.MatchString(id) }

// objectField is a field that must be there and be an object.
func objectField(m map[string]any, key string) (map[string]any, error) {
	value, there := m[key]
	if !there {
		return nil, fmt.Errorf("required key not provided: %s", key)
	}
	o, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", key)
	}
	return o, nil
}

// textField is a field that must be there and be a text.
func textField(m map[string]any, key string) (string, error) {
	value, there := m[key]
	if !there {
		return "", fmt.Errorf("required key not provided: %s", key)
	}
	s, ok := value.(string)
	if !ok || s == "" {
		return "", fmt.Errorf("%s is %v, not a text", key, value)
	}
	return s, nil
}

// textList is a field that may be there, and be one text or a list of different
// ones. It is nil where the field is not there.
func textList(m map[string]any, key string) ([]string, error) {
	value, there := m[key]
	if !there {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	found := []string{}
	for _, v := range list {
		s, ok := v.(string)
		switch {
		case !ok || s == "":
			return nil, fmt.Errorf("%s has %v, which is no text", key, v)
		case slices.Contains(found, s):
			return nil, fmt.Errorf("%s has %q twice", key, s)
		}
		found = append(found, s)
	}
	return found, nil
}

// numberField is a field that may be there and be a number.
func numberField(m map[string]any, key string, otherwise float64) (float64, error) {
	value, there := m[key]
	if !there {
		return otherwise, nil
	}
	n, ok := value.(float64)
	if !ok {
		return 0, fmt.Errorf("%s is %v, not a number", key, value)
	}
	return n, nil
}

// onlyKeys refuses a key that is not known.
func onlyKeys(where string, m map[string]any, known []string) error {
	for key := range m {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%s: extra keys not allowed: %q", where, key)
		}
	}
	return nil
}

// expand replaces abbreviated keys by whole ones.
func expand(m map[string]any, abbreviations map[string]string) error {
	for short, whole := range abbreviations {
		value, there := m[short]
		if !there {
			continue
		}
		if _, twice := m[whole]; twice {
			return fmt.Errorf("%s is there twice, as %s too", whole, short)
		}
		delete(m, short)
		m[whole] = value
	}
	return nil
}

func rootAbbreviations() map[string]string {
	return map[string]string{
		"dev": "device", "o": "origin", "cmps": "components", "avty": "availability", "avty_mode": "availability_mode",
		"avty_t": "availability_topic", "avty_tpl": "availability_template", "stat_t": "state_topic", "cmd_t": "command_topic",
		"e": "encoding", "pl_avail": "payload_available", "pl_not_avail": "payload_not_available",
	}
}

func deviceAbbreviations() map[string]string {
	return map[string]string{
		"ids": "identifiers", "cns": "connections", "cu": "configuration_url", "mf": "manufacturer", "mdl": "model", "mdl_id": "model_id",
		"hw": "hw_version", "sw": "sw_version", "sa": "suggested_area", "sn": "serial_number",
	}
}

func componentAbbreviations() map[string]string {
	return map[string]string{
		"avty": "availability", "avty_mode": "availability_mode", "avty_t": "availability_topic", "avty_tpl": "availability_template",
		"bri": "brightness", "bri_scl": "brightness_scale", "cmd_t": "command_topic", "cmd_tpl": "command_template",
		"def_ent_id": "default_entity_id", "dev_cla": "device_class", "e": "encoding", "en": "enabled_by_default",
		"ent_cat": "entity_category", "evt_typ": "event_types", "exp_aft": "expire_after", "frc_upd": "force_update", "ic": "icon",
		"json_attr_t": "json_attributes_topic", "json_attr_tpl": "json_attributes_template", "obj_id": "object_id",
		"off_dly": "off_delay", "ops": "options", "opt": "optimistic", "p": "platform", "pl_avail": "payload_available",
		"pl_inst": "payload_install", "pl_not_avail": "payload_not_available", "pl_off": "payload_off", "pl_on": "payload_on",
		"pl_prs": "payload_press", "pl_rst": "payload_reset", "ret": "retain", "stat_cla": "state_class", "stat_off": "state_off",
		"stat_on": "state_on", "stat_t": "state_topic", "sug_dsp_prc": "suggested_display_precision",
		"sup_clrm": "supported_color_modes", "t": "topic", "uniq_id": "unique_id", "unit_of_meas": "unit_of_measurement",
		"val_tpl": "value_template",
	}
}

// checkTemplate wants a template's brackets to be in pairs, and one that reads
// a state to be proof against keys that are not there.
func checkTemplate(key, template string) error {
	for _, pair := range [][2]string{{"{{", "}}"}, {"{%", "%}"}} {
		rest := template
		for {
			_, after, opened := strings.Cut(rest, pair[0])
			if !opened {
				break
			}
			_, after, closed := strings.Cut(after, pair[1])
			if !closed {
				return fmt.Errorf("%s: %q is not closed in %q", key, pair[0], template)
			}
			rest = after
		}
	}
	if strings.Count(template, "value_json") != strings.Count(template, "value_json.get(") {
		return fmt.Errorf("%s: %q logs an error for a key that is not there; value_json.get('key') does not", key, template)
	}
	return nil
}
