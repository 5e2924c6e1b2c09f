package homeassistant

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/topic"
)

// reader checks messages as Home Assistant reads them. It gets announcements and states in the order in which they are
// published, and returns an error for each message about which Home Assistant would log a warning or an error. Its rules
// are the rules of homeassistant/components/mqtt. checkDiscovery checks the announcements.
type reader struct {
	prefix   string
	entities map[string]map[string]map[string]any // keys: topic of the announcement, key of the entity
	retained map[string]message                   // retained messages by topic, which a new subscriber gets
	held     map[string]int                       // number of states that each entity has read; key: unique ID
}

func newReader(prefix string) *reader {
	return &reader{prefix, map[string]map[string]map[string]any{}, map[string]message{}, map[string]int{}}
}

// take reads one message.
func (r *reader) take(m message) error {
	if m.Retained {
		r.retained[m.Topic] = m
	}
	if !strings.HasPrefix(m.Topic, r.prefix+"/") {
		for _, all := range r.entities {
			if err := r.show(all, m); err != nil {
				return err
			}
		}
		return nil
	}
	if err := checkDiscovery(r.prefix, m); err != nil {
		return err
	}
	delete(r.entities, m.Topic)
	if len(m.Payload) == 0 {
		return nil
	}
	root, err := parseObject(m.Payload)
	if err != nil {
		return err
	}
	all := map[string]map[string]any{}
	for key, c := range root["components"].(map[string]any) {
		if c := c.(map[string]any); len(c) > 1 {
			for _, shared := range sharedKeys() {
				if value, there := root[shared]; there && c[shared] == nil {
					c[shared] = value
				}
			}
			all[key] = c
		}
	}
	r.entities[m.Topic] = all
	for _, topic := range slices.Sorted(maps.Keys(r.retained)) { // a new subscriber gets these messages
		if err := r.show(all, r.retained[topic]); err != nil {
			return fmt.Errorf("as it is announced anew: %w", err)
		}
	}
	return nil
}

// show checks a message with every entity of a device that subscribes to its topic. It ignores the removal of a retained
// message.
func (r *reader) show(all map[string]map[string]any, m message) error {
	if len(m.Payload) == 0 && m.Retained {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		c := all[key]
		err := readAvailability(c, m)
		if err == nil && c["state_topic"] == m.Topic {
			r.held[c["unique_id"].(string)]++
			err = checkState(c["platform"].(string), c, m)
		}
		if err != nil {
			return fmt.Errorf("%s on %s: %w: %s", key, m.Topic, err, m.Payload)
		}
	}
	return nil
}

// whole returns an error if an entity can never become available, because no message is retained on one of its
// availability topics.
func (r *reader) whole() error {
	for _, all := range r.entities {
		for key, c := range all {
			for _, ref := range availabilityOf(c) {
				if m, there := r.retained[ref["topic"].(string)]; !there || len(m.Payload) == 0 {
					return fmt.Errorf("%s is unavailable for ever: nothing is retained on %s", key, ref["topic"])
				}
			}
		}
	}
	return nil
}

func availabilityOf(c map[string]any) (refs []map[string]any) {
	list, _ := c["availability"].([]any)
	for _, one := range list {
		refs = append(refs, one.(map[string]any))
	}
	return refs
}

func readAvailability(c map[string]any, m message) error {
	for _, ref := range availabilityOf(c) {
		if ref["topic"] != m.Topic || len(m.Payload) == 0 {
			continue
		}
		template, _ := ref["value_template"].(string)
		word, err := render(template, m.Payload)
		if err == nil && word != "online" && word != "offline" {
			err = fmt.Errorf("is available is %q, not online or offline", word)
		}
		if err == nil && !m.Retained {
			err = errors.New("availability that is not retained is lost at the next start")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTextState returns an error if the length of a text is outside of the announced range.
func checkTextState(c map[string]any, value string) error {
	least, most := numberField(c, "min", 0), numberField(c, "max", discovery.MaxText)
	if n := float64(utf8.RuneCountInString(value)); n < least || n > most {
		return fmt.Errorf("a text of %g characters where %g to %g are announced", n, least, most)
	}
	return nil
}

// checkState returns an error for a state that Home Assistant would reject or log a warning about. The empty text and
// "None" mean an unknown state.
func checkState(platform string, c map[string]any, m message) error {
	if platform == "event" {
		return checkEventState(c, m)
	}
	if !m.Retained {
		return errors.New("a state that is not retained is lost at the next start")
	}
	switch platform {
	case "light":
		return checkLightState(c, m.Payload)
	case "update":
		return checkUpdateState(m.Payload)
	}
	template, _ := c["value_template"].(string)
	value, err := render(template, m.Payload)
	if err != nil || value == "None" {
		return err
	}
	switch platform {
	case "sensor":
		return checkSensorState(c, value)
	case "binary_sensor", "switch":
		if on, off := textField(c, "payload_on", "ON"), textField(c, "payload_off", "OFF"); value != on && value != off {
			return fmt.Errorf("no matching payload found for %q", value)
		}
		return nil
	case "number":
		return checkNumberState(c, value)
	case "select":
		return oneOfOptions(c, value)
	case "text":
		return checkTextState(c, value)
	}
	return fmt.Errorf("a %s shows no state", platform)
}

func oneOfOptions(c map[string]any, value string) error {
	options, err := textList(c, "options")
	if err == nil && !slices.Contains(options, value) {
		err = fmt.Errorf("invalid option %q", value)
	}
	return err
}

func checkSensorState(c map[string]any, value string) error {
	class, _ := c["device_class"].(string)
	switch {
	case utf8.RuneCountInString(value) > discovery.MaxText:
		return fmt.Errorf("a state of %d characters is too long", utf8.RuneCountInString(value))
	case class == "enum":
		return oneOfOptions(c, value)
	case class == "timestamp":
		_, err := time.Parse(time.RFC3339, value)
		return err
	case class == "battery":
		if n, err := strconv.ParseFloat(value, 64); err != nil || n < 0 || n > 100 {
			return fmt.Errorf("a battery has 0 to 100 %%, not %s", value)
		}
	case class != "" || c["state_class"] != nil || c["unit_of_measurement"] != nil:
		if n, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("a number is expected, and %q is none", value)
		}
	}
	return nil
}

func checkNumberState(c map[string]any, value string) error {
	least, most, step := numberField(c, "min", 1), numberField(c, "max", 100), numberField(c, "step", 1)
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return err
	case n < least || n > most:
		return fmt.Errorf("invalid value %v (range %v - %v)", n, least, most)
	case math.Abs(math.Remainder(n-least, step)) > 1e-9:
		return fmt.Errorf("%v is on no step of %v from %v", n, step, least)
	}
	return nil
}

func checkEventState(c map[string]any, m message) error {
	if m.Retained {
		return errors.New("an event that is retained is dropped")
	}
	e, err := parseObject(m.Payload)
	if err != nil {
		return fmt.Errorf("no valid JSON event Payload: %w", err)
	}
	types, err := textList(c, "event_types")
	if kind, _ := e["event_type"].(string); err == nil && !slices.Contains(types, kind) {
		err = fmt.Errorf("invalid event type %q", kind)
	}
	return err
}

func checkLightState(c map[string]any, payload []byte) error {
	var l struct {
		State      *string
		Mode       string `json:"color_mode"`
		Brightness *int
		Color      map[string]int
	}
	if err := json.Unmarshal(payload, &l); err != nil {
		return err
	}
	levels := slices.Collect(maps.Values(l.Color))
	if l.Brightness != nil {
		levels = append(levels, *l.Brightness)
	}
	switch {
	case l.State != nil && *l.State != "ON" && *l.State != "OFF":
		return fmt.Errorf("the state of a light is %s", *l.State)
	case slices.ContainsFunc(levels, func(n int) bool { return n < 0 || n > 255 }):
		return fmt.Errorf("invalid levels %v", levels)
	case (l.Mode != "") != (l.Color != nil) || l.Mode != "" && l.Mode != "rgb" || l.Color != nil && len(l.Color) != 3:
		return fmt.Errorf("invalid or incomplete colour %v of the mode %q", l.Color, l.Mode)
	}
	return nil
}

func checkUpdateState(payload []byte) error {
	var u struct {
		Installed, Latest string
		Progress          bool
		Percentage        *float64
	}
	fields := map[string]any{"installed_version": &u.Installed, "latest_version": &u.Latest, "in_progress": &u.Progress,
		"update_percentage": &u.Percentage}
	root, err := parseObject(payload)
	for key, value := range root {
		text, _ := json.Marshal(value)
		if fields[key] == nil || json.Unmarshal(text, fields[key]) != nil {
			return fmt.Errorf("an update has %s as %v", key, value)
		}
	}
	if p := u.Percentage; err == nil && (u.Installed == "" || u.Latest == "" || len(u.Installed+u.Latest) > discovery.MaxText || p != nil && (*p < 0 || *p > 100)) {
		err = fmt.Errorf("an update shows %+v", u)
	}
	return err
}

// templates are the forms of the announced templates, with functions that render a value. v is the value of the key in the
// document, and parts are the submatches. A template of another form has to be added here first.
var templates = []struct {
	form   *regexp.Regexp
	render func(v any, parts []string) string
}{
	{regexp.MustCompile(`^\{\{ value_json\.get\('(?P<key>\w+)'\) \}\}$`), func(v any, _ []string) string { return python(v) }},
	{regexp.MustCompile(`^\{\{ value_json\.get\('(?P<key>\w+)'\) or '' \}\}$`), func(v any, _ []string) string { return choose(v, python(v), "") }},
	{regexp.MustCompile(`^\{% set v = value_json\.get\('(?P<key>\w+)'\) %\}\{\{ none if v is none else '(\w+)' if v else '(\w+)' \}\}$`),
		func(v any, parts []string) string {
			if v == nil {
				return "None"
			}
			return choose(v, parts[2], parts[3])
		}},
	{regexp.MustCompile(`^\{% set v = value_json\.get\('(?P<key>\w+)'\) %\}\{\{ v if v in \['(.+)'\] else none \}\}$`),
		func(v any, parts []string) string {
			if s, _ := v.(string); slices.Contains(strings.Split(parts[2], "', '"), s) {
				return s
			}
			return "None"
		}},
	{regexp.MustCompile(`^\{% set v = value_json\.get\('(?P<key>\w+)'\) or '(\w+)' %\}\{\{ (\{.+\})\.get\(v\) \}\}$`),
		func(v any, parts []string) string {
			var titles map[string]string
			_ = json.Unmarshal([]byte(parts[3]), &titles)
			return cmp.Or(titles[choose(v, python(v), parts[2])], "None")
		}},
	{regexp.MustCompile(`^\{\{ '(\w+)' if value_json\.get\('(?P<key>\w+)'\) else '(\w+)' \}\}$`),
		func(v any, parts []string) string { return choose(v, parts[1], parts[3]) }},
}

// choose returns yes if v is true in a template, and no otherwise.
func choose(v any, yes, no string) string {
	if v != nil && v != false && v != "" && v != 0.0 {
		return yes
	}
	return no
}

// render returns the state that a template reads from a payload. It returns an error if the key of the template is
// missing from the payload, because Home Assistant would then always show the state as unknown.
func render(template string, payload []byte) (string, error) {
	if template == "" {
		return string(payload), nil
	}
	for _, t := range templates {
		parts := t.form.FindStringSubmatch(template)
		if parts == nil {
			continue
		}
		d, err := parseObject(payload)
		if err != nil {
			return "", err
		}
		v, there := d[parts[t.form.SubexpIndex("key")]]
		if !there {
			return "", fmt.Errorf("%q reads a key that is not there", template)
		}
		return t.render(v, parts), nil
	}
	return "", fmt.Errorf("the test does not know what to make of the template %q", template)
}

// python returns the text that a template renders for a value.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return strings.ToUpper(fmt.Sprint(v)[:1]) + fmt.Sprint(v)[1:]
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// payloadsOf returns payloads that Home Assistant may send for an entity.
func payloadsOf(platform string, c map[string]any) []string {
	switch platform {
	case "button":
		return []string{textField(c, "payload_press", "PRESS")}
	case "switch":
		return []string{textField(c, "payload_on", "ON"), textField(c, "payload_off", "OFF")}
	case "update":
		return []string{textField(c, "payload_install", "")}
	case "select":
		options, _ := textList(c, "options")
		if template := textField(c, "command_template", ""); template != "" {
			var names map[string]string
			_ = json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(template, "{{ "), ".get(value, value) }}")), &names)
			for i, title := range options {
				options[i] = cmp.Or(names[title], title)
			}
		}
		return options
	case "number":
		least, most, step := numberField(c, "min", 1), numberField(c, "max", 100), numberField(c, "step", 1)
		return []string{fmt.Sprintf("%.1f", least), fmt.Sprint(int(least)), fmt.Sprint(int(least + step)), fmt.Sprint(int(most)),
			fmt.Sprintf("%.1f", most)}
	case "light":
		return []string{`{"state": "ON"}`, `{"state": "OFF"}`, `{"state": "ON", "brightness": 255}`,
			`{"state": "ON", "color": {"r": 255, "g": 0, "b": 128}}`}
	case "text", "notify":
		all := []string{"x", strings.Repeat("ü", discovery.MaxText), "a line\nand \"another\""}
		if c["command_template"] != nil {
			for i, s := range all { // {"text": {{ value | to_json }}}
				quoted, _ := json.Marshal(s)
				all[i] = `{"text": ` + string(quoted) + `}`
			}
		}
		return all
	}
	return nil
}

// obeyed returns an error if package command rejects a payload that Home Assistant may send for an announced entity.
func obeyed(n topic.Names, c map[string]any) error {
	topic, settable := c["command_topic"].(string)
	if !settable {
		return nil
	}
	platform, _ := c["platform"].(string)
	payloads := payloadsOf(platform, c)
	if len(payloads) == 0 {
		return fmt.Errorf("the test does not know what is sent for a %s", platform)
	}
	for _, p := range payloads {
		if err := understood(n, topic, []byte(p)); err != nil {
			return fmt.Errorf("%.60q on %s: %w", p, topic, err)
		}
	}
	return nil
}

func understood(n topic.Names, on string, payload []byte) error {
	if verb, is := n.ParseRequest(on); is {
		_, err := command.ParseRequest(verb, payload, device.ParseID)
		return err
	}
	robot, thing, is := n.ParseSet(on)
	if !is {
		return errors.New("nobody listens there")
	}
	if _, agents := strings.CutPrefix(robot, topic.AgentPrefix); agents {
		_, _, err := command.ParseAnswer(payload)
		if err == nil && thing != "answer" {
			err = errors.New("there is no such thing to set")
		}
		return err
	}
	_, err := command.Parse(discovered, thing, payload, device.ParseID)
	if err == nil && robot != string(discovered) {
		err = fmt.Errorf("it is a command to %s", robot)
	}
	return err
}

// hold returns a reader that has read all messages, or an error for the first one that makes Home Assistant log an error.
func hold(prefix string, all []message) (*reader, error) {
	r := newReader(prefix)
	for _, m := range all {
		if err := r.take(m); err != nil {
			return r, err
		}
	}
	return r, nil
}
