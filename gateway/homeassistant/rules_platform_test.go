package homeassistant

import (
	"errors"
	"fmt"
	"slices"
)

// What checkFields has seen is right here: the lists are lists of texts, and the
// limits are numbers.

// checkOptions wants a list to choose from.
func checkOptions(c map[string]any) error {
	if options, _ := textList(c, "options"); len(options) == 0 {
		return errors.New("an empty options list is not allowed")
	}
	return nil
}

func checkSensor(c map[string]any) error {
	class, stateClass := c["device_class"], c["state_class"]
	_, options := c["options"]
	switch {
	case stateClass != nil && stateClass != "measurement":
		return fmt.Errorf("state_class is %v, which there is not", stateClass)
	case stateClass != nil && class == "timestamp":
		return fmt.Errorf("state class %v is impossible with device class %v", stateClass, class)
	case !options && class == "enum":
		return errors.New("device class enum without options takes any value for a valid one")
	case !options:
		return nil
	case class != "enum":
		return fmt.Errorf("the option options must be used together with device class enum, got %v", class)
	case stateClass != nil || c["unit_of_measurement"] != nil:
		return errors.New("specifying options is not allowed together with state_class or unit_of_measurement")
	}
	return checkOptions(c)
}

func checkEvent(c map[string]any) error {
	if types, _ := textList(c, "event_types"); len(types) == 0 {
		return errors.New("event_types is empty: every event would be an invalid event type")
	}
	return nil
}

func checkNumber(c map[string]any) error {
	// Without limits Home Assistant has them from 1 to 100.
	least, _ := numberField(c, "min", 1)
	most, _ := numberField(c, "max", 100)
	step, _ := numberField(c, "step", 1)
	switch {
	case least >= most:
		return fmt.Errorf("max must be greater than min, and %v is not greater than %v", most, least)
	case step < 1e-3:
		return fmt.Errorf("step is %v; the least is 0.001", step)
	}
	return nil
}

func checkText(c map[string]any) error {
	least, _ := numberField(c, "min", 0)
	most, _ := numberField(c, "max", mostText)
	switch {
	case least < 0 || least >= most:
		return fmt.Errorf("text length max must be greater than min, and %v is not greater than %v", most, least)
	case most > mostText:
		return fmt.Errorf("max text length must be at most %d, not %v", mostText, most)
	}
	return nil
}

func checkLight(c map[string]any) error {
	if c["schema"] != "json" {
		return fmt.Errorf("schema is %v; the lights here speak json", c["schema"])
	}
	modes, _ := textList(c, "supported_color_modes")
	if slices.ContainsFunc(modes, func(m string) bool { return m != "rgb" }) {
		return fmt.Errorf("supported_color_modes is %v; the lights here have rgb", modes)
	}
	return nil
}

func checkUpdate(c map[string]any) error {
	_, install := c["command_topic"]
	if payload, _ := c["payload_install"].(string); install && payload == "" {
		return errors.New("payload_install is needed where there is a command_topic: Home Assistant fails at the first installation without it")
	}
	return nil
}
