package discovery

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/homeassistant/topic"
	"perch/voice"
)

// component is the JSON object that announces one entity.
type component map[string]any

// topicRef is a topic in an entity's list of availability topics.
type topicRef struct {
	Topic    string `json:"topic"`
	Template string `json:"value_template,omitempty"` // renders "online" or "offline"
}

// row describes an entity in the tables below.
type row struct {
	platform, key, name string

	reads   string   // template that reads the state from the document, with KEY for the entity's key; for options, the default is oneOf
	sets    string   // command topic, relative to the topic of the device; for a select it is always the key and "/set"
	options []string // possible values
	types   []string // event types; the last level of the topic of the events is the key

	class string    // device class, which selects the icon and the wording in Home Assistant
	icon  string    // icon name of Material Design Icons
	place string    // entity_category: the section on the device's page; empty is the first section
	more  component // additional keys
}

// owner describes the device that entities belong to.
type owner struct {
	identifier string
	topic      string // prefix of the device's topics, with a slash at the end
	state      string // topic of the document that the entities read their states from
}

// components returns the JSON objects for the entities of a device, by the keys of the entities.
func (o owner) components(rows []row) map[string]component {
	components := map[string]component{}
	for _, r := range rows {
		c := component{"platform": r.platform, "unique_id": o.identifier + "_" + r.key, "name": r.name}
		if r.options != nil {
			c["options"] = r.options
			r.reads = cmp.Or(r.reads, oneOf(r.options))
		}
		if r.platform == "select" {
			r.sets = r.key + "/set"
		}
		if r.reads != "" {
			c["state_topic"], c["value_template"] = o.state, strings.Replace(r.reads, "KEY", r.key, 1)
		}
		if r.types != nil {
			c["state_topic"], c["event_types"] = o.topic+r.key, r.types
		}
		if r.sets != "" {
			c["command_topic"] = o.topic + r.sets
		}
		if r.icon != "" {
			c["icon"] = "mdi:" + r.icon
		}
		setText(c, "device_class", r.class)
		setText(c, "entity_category", r.place)
		maps.Copy(c, r.more)
		components[r.key] = c
	}
	return components
}

// setText sets a key if the value is not empty.
func setText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

// Values of entity_category.
const (
	diagnostic = "diagnostic"
	inConfig   = "config"
)

// Templates that read a state from a JSON document. They call get, which returns none for a missing key; for
// value_json.KEY, Home Assistant would log an error instead. With asValue and asBool, null renders as "None", which Home
// Assistant shows as unknown. With asText, null renders as the empty text.
const (
	asValue = "{{ value_json.get('KEY') }}"
	asText  = "{{ value_json.get('KEY') or '' }}"

	asBool = "{% set v = value_json.get('KEY') %}{{ none if v is none else 'ON' if v else 'OFF' }}"
)

// oneOf returns a template that renders the value if it is one of the options, and "None" otherwise.
func oneOf(options []string) string {
	quoted := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `', '`).Replace(strings.Join(options, "\n"))
	return "{% set v = value_json.get('KEY') %}{{ v if v in ['" + quoted + "'] else none }}"
}

// whileOnline returns the part of an entity's JSON that makes the entity available while the appliance is online.
func whileOnline(n topic.Names) component {
	return component{"availability": []topicRef{{Topic: n.Bridge("status")}}}
}

// robotComponents returns the entities of a robot: the ones that every robot has, and the ones for this robot's
// tools, senses and choices.
func robotComponents(n topic.Names, c Card) map[string]component {
	o := owner{robotIdentifier(n, c.ID), n.Robot(c.ID, ""), n.Robot(c.ID, "state")}
	sensed := slices.DeleteFunc(sensedRows(o), func(r row) bool { return !c.Senses[r.key] })
	return o.components(slices.Concat(commonRows(n), toolRows(o, c.Tools), sensed, choiceRows(c), []row{voiceRow(c.Voices)}))
}

// voiceRow returns the entity for the voice of a robot: a select with the titles of the voices. If there are no voices to
// choose from, the entity is a text, which is empty for the default voice.
func voiceRow(voices []voice.Named) row {
	r := row{platform: "text", key: "voice", name: "Voice", reads: asText, sets: "voice/set", place: inConfig, icon: "account-voice",
		more: component{"min": 0, "max": 100}}
	if len(voices) == 0 {
		return r
	}
	r.platform, r.more = "select", component{}
	titles, names := map[string]string{}, map[string]string{} // titles by name, and names by title
	for _, v := range voices {
		title := cmp.Or(v.Title, v.Name)
		r.options = append(r.options, title)
		titles[v.Name], names[title] = title, v.Name
	}
	r.reads = "{% set v = value_json.get('KEY') or '" + DefaultOption + "' %}{{ " + dict(titles) + ".get(v) }}"
	if !maps.Equal(titles, names) {
		r.more["command_template"] = "{{ " + dict(names) + ".get(value, value) }}"
	}
	return r
}

// dict returns a map as a literal for a template. Such a literal has the syntax of JSON.
func dict(m map[string]string) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // cannot happen: strings can be encoded
	}
	return string(b)
}

// commonRows returns the entities that every robot has.
func commonRows(n topic.Names) []row {
	return []row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asValue, options: agentStates(), class: "enum", icon: "robot-happy"},
		{platform: "select", key: "emotion", name: "Emotion", options: emotions(), icon: "emoticon"},
		{platform: "event", key: "conversation", name: "Conversation", types: ConversationTypes(), icon: "forum"},
		{platform: "event", key: "notification", name: "Notification", types: NotificationTypes(), icon: "bell"},
		{platform: "event", key: "diary", name: "Diary", types: DiaryTypes(), icon: "notebook"},
		{platform: "notify", key: "say", name: "Say", sets: "say/set", icon: "bullhorn"},
		{platform: "notify", key: "ask", name: "Ask", sets: "ask/set", icon: "chat-question"},
		{platform: "event", key: "answer", name: "Answer", types: AnswerTypes(), icon: "chat-processing"},
		// This entity is for dashboards. Its text has at most MaxText characters, while the notify entity above has no limit.
		{platform: "text", key: "say_text", name: "Say text", sets: "say/set", icon: "message-text", more: component{"min": 1, "max": MaxText}},
		// An empty text removes the owner's name for the robot, so that the device gets its default name again.
		{platform: "text", key: "name", name: "Name", reads: asText, sets: "name/set", place: inConfig, icon: "rename",
			more: component{"min": 0, "max": 32}},
		// A change takes effect when the robot boots next.
		{platform: "select", key: "transport", name: "Transport", place: inConfig, icon: "transit-connection-variant",
			options: []string{string(device.WebSocket), string(device.MQTT)}},
		{platform: "switch", key: "mute", name: "Mute", reads: asBool, sets: "mute/set", icon: "microphone-off"},
		{platform: "button", key: "stop", name: "Stop", sets: "stop/set", icon: "stop"},
		{platform: "button", key: "reboot", name: "Reboot", sets: "reboot/set", class: "restart", place: inConfig},
		{platform: "button", key: "identify", name: "Identify", sets: "identify/set", class: "identify", place: diagnostic},
		// This entity stays available while the robot is offline, because it has to show exactly that.
		{platform: "binary_sensor", key: "connected", name: "Connected", reads: asBool, class: "connectivity", place: diagnostic,
			more: whileOnline(n)},
		{platform: "binary_sensor", key: "talking", name: "Talking", reads: asBool, place: diagnostic, icon: "account-voice"},
	}
}

// toolRows returns the entities that need one of the robot's tools.
func toolRows(o owner, tools []device.Tool) (rows []row) {
	level := func(key, name string) {
		if c, found := LevelControl(tools, key); found {
			low, high, ok := c.Percent()
			rows = append(rows, sliderRow(row{key: key, name: name, place: inConfig}, low, high, ok)...)
		}
	}
	level("volume", "Volume")
	level("brightness", "Brightness")
	if head, found := HeadControl(tools); found {
		axis := func(i int, key, name, icon string) {
			low, high, ok := head.Axis(i)
			r := row{key: key, name: name, icon: icon, more: component{"unit_of_measurement": "°"}}
			rows = append(rows, sliderRow(r, low, high, ok)...)
		}
		axis(0, "head_yaw", "Head yaw", "arrow-left-right")
		axis(1, "head_pitch", "Head pitch", "arrow-up-down")
	}
	if _, found := device.FindLights(tools); found {
		// The light has its own state topic: a JSON light of Home Assistant uses the whole message as its
		// state, and accepts no template that would extract the state from another document.
		rows = append(rows, row{platform: "light", key: "led", name: "Lights", sets: "led/set", more: component{"schema": "json",
			"state_topic": o.topic + "led", "supported_color_modes": []string{"rgb"}, "brightness": true, "flash": false, "transition": false}})
	}
	return rows
}

// sliderRow returns r completed as a slider from low to high. It returns no rows if ok is false.
func sliderRow(r row, low, high int, ok bool) []row {
	if !ok {
		return nil
	}
	slider := component{"min": low, "max": high, "step": 1, "mode": "slider"}
	if low == 0 && high == 100 {
		slider["unit_of_measurement"] = "%"
	}
	maps.Copy(slider, r.more)
	r.platform, r.reads, r.sets, r.more = "number", asValue, r.key+"/set", slider
	return []row{r}
}

// sensedRows returns the entities that need a sense: the sense whose name is the key of the entity.
func sensedRows(o owner) []row {
	measured := func(unit string) component {
		return component{"state_class": "measurement", "unit_of_measurement": unit}
	}
	return []row{
		// The sensor has no off_delay (a time after which Home Assistant turns it off), because every change of the
		// document would restart that time. A robot reports when it no longer sees a face.
		{platform: "binary_sensor", key: "face", name: "Face", reads: asBool, class: "occupancy"},
		{platform: "sensor", key: "identity", name: "Identity", reads: asValue, icon: "account"},
		{platform: "sensor", key: "battery", name: "Battery", reads: asValue, class: "battery", place: diagnostic, more: measured("%")},
		{platform: "binary_sensor", key: "charging", name: "Charging", reads: asBool, class: "battery_charging", place: diagnostic},
		{platform: "sensor", key: "signal", name: "Signal", options: signals(), class: "enum", place: diagnostic, icon: "wifi"},
		{platform: "sensor", key: "temperature", name: "Temperature", reads: asValue, class: "temperature", place: diagnostic, more: measured("°C")},
		{platform: "sensor", key: "booted", name: "Last boot", reads: asValue, class: "timestamp", place: diagnostic},
		{platform: "event", key: "touch", name: "Touch", types: touchTypes(), class: "button"},
		{platform: "event", key: "perception", name: "Perception", types: PerceptionTypes(), icon: "eye"},
		// Home Assistant fails on an update entity that has a command topic but no payload_install.
		{platform: "update", key: "firmware", name: "Firmware", sets: "firmware/set", class: "firmware",
			more: component{"state_topic": o.topic + "firmware", "payload_install": "install"}},
		{platform: "sensor", key: "mood", name: "Mood", options: Moods(), class: "enum", icon: "heart-pulse",
			more: component{"state_topic": o.topic + "mood", "json_attributes_topic": o.topic + "mood"}},
	}
}

// choiceRows returns the selects of a robot that have at least one option.
func choiceRows(c Card) []row {
	return slices.DeleteFunc([]row{
		{platform: "select", key: "character", name: "Character", options: c.Characters, place: inConfig, icon: "account-switch"},
		{platform: "select", key: "brain", name: "Brain", options: c.Brains, place: inConfig, icon: "brain"},
		{platform: "select", key: "language", name: "Language", options: c.Languages, place: inConfig, icon: "translate"},
		{platform: "select", key: "gesture", name: "Gesture", options: c.Gestures, icon: "hand-wave"},
		{platform: "select", key: "music", name: "Music", options: c.Music, icon: "radio"},
	}, func(r row) bool { return len(r.options) == 0 })
}

// bridgeComponents returns the appliance's own entities. Each entity has its own availability, because the
// entity "connection", which shows whether the appliance is online, must always be available.
func bridgeComponents(n topic.Names) map[string]component {
	measured := component{"state_class": "measurement"}
	components := owner{bridgeIdentifier(n), n.Bridge(""), n.Bridge("info")}.components([]row{
		{platform: "sensor", key: "robots", name: "Robots connected", reads: asValue, icon: "robot", more: measured},
		{platform: "sensor", key: "strangers", name: "Robots not adopted", reads: asValue, place: diagnostic, icon: "robot-confused", more: measured},
		{platform: "sensor", key: "waiting", name: "Agents waiting", reads: asValue, icon: "account-question", more: measured},
		{platform: "event", key: "robot", name: "New robot", types: []string{"came", "waits", Other}, icon: "robot-confused"},
		{platform: "event", key: "refused", name: "Refused", types: append(RequestVerbs(), Other), place: diagnostic, icon: "close-circle"},
		{platform: "button", key: "adopt_new", name: "Adopt new robots", sets: "request/adopt", icon: "robot-happy",
			more: component{"payload_press": `{"new": true}`}},
		// The text is a robot's MAC address or name, or the code that the robot shows.
		{platform: "text", key: "adopt", name: "Adopt by code", sets: "request/adopt", place: inConfig, icon: "numeric",
			more: component{"min": 1, "max": 32}},
		{platform: "sensor", key: "version", name: "Version", reads: asValue, place: diagnostic, icon: "tag"},
		{platform: "event", key: "notification", name: "Notification", types: NotificationTypes(), icon: "bell"},
		// A message to this entity becomes a notification for every robot.
		{platform: "notify", key: "announce", name: "Announce", sets: "request/notify", icon: "bullhorn",
			more: component{"command_template": `{"text": {{ value | to_json }}}`}},
		{platform: "button", key: "test_notification", name: "Test notification", sets: "request/notify", place: diagnostic, icon: "bell-check",
			more: component{"payload_press": `{"text": "This is a test."}`}},
		{platform: "button", key: "restart", name: "Restart", sets: "request/restart", class: "restart", place: inConfig,
			more: component{"payload_press": "{}"}},
	})
	for _, c := range components {
		maps.Copy(c, whileOnline(n))
	}
	components["connection"] = component{"platform": "binary_sensor", "unique_id": bridgeIdentifier(n) + "_connection", "name": "Connection",
		"device_class": "connectivity", "entity_category": diagnostic, "state_topic": n.Bridge("status"),
		"payload_on": "online", "payload_off": "offline"}
	return components
}

// Payloads that answer an agent's question. The two buttons of the agent's device send them.
const (
	Allow = "allow"
	Deny  = "deny"
)

// agentComponents returns the entities of an agent without a robot.
func agentComponents(n topic.Names, id string) map[string]component {
	state := n.Agent(id, "state")
	// A button is available while an answerable question is shown.
	button := func(payload string) component {
		return component{"payload_press": payload, "availability": []topicRef{
			{Topic: n.Bridge("status")}, {Topic: state, Template: "{{ 'online' if value_json.get('answerable') else 'offline' }}"},
		}}
	}
	return owner{agentIdentifier(n, id), n.Agent(id, ""), state}.components([]row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asValue, options: agentStates(), class: "enum", icon: "robot-happy"},
		{platform: "sensor", key: "tool", name: "Tool", reads: "{{ value_json.get('tool_name') }}", icon: "tools"},
		{platform: "sensor", key: "question", name: "Question", reads: asValue, icon: "help-circle",
			more: component{"json_attributes_topic": state}}, // with the ID of the question, which an automation needs to answer
		{platform: "button", key: "allow", name: "Allow", sets: "answer/set", icon: "check", more: button(Allow)},
		{platform: "button", key: "deny", name: "Deny", sets: "answer/set", icon: "close", more: button(Deny)},
	})
}
