package homeassistant

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// mostText is what a state of Home Assistant's can hold, in characters.
const mostText = 255

// checkOptions wants a list to choose from.
func checkOptions(c map[string]any) error {
	options, err := textList(c, "options")
	if err != nil {
		return err
	}
	if _, isList := c["options"].([]any); !isList || len(options) == 0 {
		return errors.New("an empty options list is not allowed")
	}
	return nil
}

// checkReadOnly is about the expiry of values.
func checkReadOnly(c map[string]any) error {
	for _, key := range []string{"expire_after", "off_delay", "suggested_display_precision"} {
		if n, err := numberField(c, key, 1); err != nil || n < 0 {
			return fmt.Errorf("%s is %v, not a number of at least 0", key, c[key])
		}
	}
	return nil
}

func checkSensor(c map[string]any) error {
	if err := checkReadOnly(c); err != nil {
		return err
	}
	class, stateClass, unit := c["device_class"], c["state_class"], c["unit_of_measurement"]
	if stateClass != nil && !slices.Contains([]any{"measurement", "measurement_angle", "total", "total_increasing"}, stateClass) {
		return fmt.Errorf("state_class is %v, which there is not", stateClass)
	}
	if _, isText := unit.(string); unit != nil && !isText {
		return fmt.Errorf("unit_of_measurement is %v, not a text", unit)
	}
	if _, there := c["options"]; there {
		switch {
		case class != "enum":
			return fmt.Errorf("the option options must be used together with device class enum, got %v", class)
		case stateClass != nil || unit != nil:
			return errors.New("specifying options is not allowed together with state_class or unit_of_measurement")
		}
		return checkOptions(c)
	}
	switch {
	case class == "enum":
		return errors.New("device class enum without options takes any value for a valid one")
	case stateClass != nil && (class == "timestamp" || class == "date"):
		return fmt.Errorf("state class %v is impossible with device class %v", stateClass, class)
	case stateClass == "total" && class == "temperature", stateClass == "total_increasing" && class == "temperature":
		return fmt.Errorf("state class %v is impossible with device class temperature", stateClass)
	}
	return nil
}

func checkEvent(c map[string]any) error {
	types, err := textList(c, "event_types")
	switch {
	case err != nil:
		return err
	case len(types) == 0:
		return errors.New("event_types is empty: every event would be an invalid event type")
	case c["device_class"] == "doorbell" && !slices.Contains(types, "ring"):
		return errors.New("a doorbell needs the event type ring")
	}
	return nil
}

func checkNumber(c map[string]any) error {
	// Without limits Home Assistant has them from 1 to 100.
	least, err := numberField(c, "min", 1)
	if err != nil {
		return err
	}
	most, err := numberField(c, "max", 100)
	if err != nil {
		return err
	}
	step, err := numberField(c, "step", 1)
	switch {
	case err != nil:
		return err
	case least >= most:
		return fmt.Errorf("max must be greater than min, and %v is not greater than %v", most, least)
	case step < 1e-3:
		return fmt.Errorf("step is %v; the least is 0.001", step)
	}
	if mode, there := c["mode"]; there && !slices.Contains([]any{"auto", "box", "slider"}, mode) {
		return fmt.Errorf("mode is %v, not auto, box or slider", mode)
	}
	if unit, there := c["unit_of_measurement"]; there && unit != nil {
		if _, ok := unit.(string); !ok {
			return fmt.Errorf("unit_of_measurement is %v, not a text", unit)
		}
	}
	return nil
}

func checkText(c map[string]any) error {
	least, err := numberField(c, "min", 0)
	if err != nil {
		return err
	}
	most, err := numberField(c, "max", mostText)
	switch {
	case err != nil:
		return err
	case least < 0 || least >= most:
		return fmt.Errorf("text length max must be greater than min, and %v is not greater than %v", most, least)
	case most > mostText:
		return fmt.Errorf("max text length must be at most %d, not %v", mostText, most)
	}
	if mode, there := c["mode"]; there && mode != "text" && mode != "password" {
		return fmt.Errorf("mode is %v, not text or password", mode)
	}
	if pattern, there := c["pattern"]; there {
		if s, _ := pattern.(string); s == "" {
			return errors.New("pattern is no text")
		} else if _, err := regexp.Compile(s); err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
	}
	return nil
}

func checkLight(c map[string]any) error {
	if c["schema"] != "json" {
		return fmt.Errorf("schema is %v; the lights here speak json", c["schema"])
	}
	modes, err := textList(c, "supported_color_modes")
	if err != nil {
		return err
	}
	for _, m := range modes {
		if !slices.Contains([]string{"onoff", "brightness", "color_temp", "hs", "rgb", "rgbw", "rgbww", "white", "xy"}, m) {
			return fmt.Errorf("supported_color_modes has %q, which there is not", m)
		}
		if (m == "onoff" || m == "brightness") && len(modes) > 1 {
			return fmt.Errorf("supported_color_modes: %s cannot stand beside others", m)
		}
	}
	if scale, err := numberField(c, "brightness_scale", 255); err != nil || scale < 1 {
		return fmt.Errorf("brightness_scale is %v, not a number of at least 1", c["brightness_scale"])
	}
	_, err = textList(c, "effect_list")
	return err
}

func checkUpdate(c map[string]any) error {
	_, install := c["command_topic"]
	if payload, _ := c["payload_install"].(string); install && payload == "" {
		return errors.New("payload_install is needed where there is a command_topic: Home Assistant fails at the first installation without it")
	}
	return nil
}
