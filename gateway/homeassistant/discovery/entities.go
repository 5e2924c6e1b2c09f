package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/homeassistant/topic"
)

// component is the JSON object of one entity.
type component map[string]any

// topicRef is a topic in an entity's list of availability topics.
type topicRef struct {
	Topic    string `json:"topic"`
	Template string `json:"value_template,omitempty"` // renders online or offline
}

// row is an entity in the tables below.
type row struct {
	platform, key, name string

	reads   string   // template of its state, with KEY for its key; if empty and there are options, it lets only these through
	sets    string   // topic of its commands, below the device's
	options []string // its possible values
	types   []string // of the events, which are published on the topic of its key

	class string // device class, which brings icon and wording with it
	icon  string
	place string // entity_category: where it stands on the device's page; empty is among the first
	more  component
}

// owner is the device that entities belong to.
type owner struct {
	identifier, topic string
	state             string // the topic that its entities read
}

// components returns the entities of a device by key.
func (o owner) components(rows []row) map[string]component {
	all := map[string]component{}
	for _, r := range rows {
		c := component{"platform": r.platform, "unique_id": o.identifier + "_" + r.key, "name": r.name}
		if r.options != nil {
			c["options"] = r.options
			r.reads = cmp.Or(r.reads, oneOf(r.options))
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
		all[r.key] = c
	}
	return all
}

// setText sets a key unless the value is empty.
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

// Templates. Get returns none for a missing key, where a plain attribute would be logged as an
// error. Unknown is null in a document and "None" here, which Home Assistant shows as unknown.
const (
	asItIs    = "{{ value_json.get('KEY') }}"
	orNothing = "{{ value_json.get('KEY') or '' }}"

	asBool = "{% set v = value_json.get('KEY') %}{{ none if v is none else 'ON' if v else 'OFF' }}"
)

// oneOf returns a template that lets only known values through.
func oneOf(options []string) string {
	quoted := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `', '`).Replace(strings.Join(options, "\n"))
	return "{% set v = value_json.get('KEY') %}{{ v if v in ['" + quoted + "'] else none }}"
}

// whileOnline makes an entity available whenever the appliance is.
func whileOnline(n topic.Names) component {
	return component{"availability": []topicRef{{Topic: n.Bridge("status")}}}
}

// robotComponents returns a robot's entities: the common ones, and more for its tools and sensors.
func robotComponents(n topic.Names, c Card) map[string]component {
	o := owner{robotIdentifier(n, c.ID), n.Robot(c.ID, ""), n.Robot(c.ID, "state")}
	sensed := slices.DeleteFunc(sensedRows(o), func(r row) bool { return !c.Senses[r.key] })
	return o.components(slices.Concat(commonRows(n), toolRows(o, c.Tools), sensed, choiceRows(c)))
}

// commonRows returns the entities of every robot.
func commonRows(n topic.Names) []row {
	return []row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asItIs, options: agentStates(), class: "enum", icon: "robot-happy"},
		{platform: "select", key: "emotion", name: "Emotion", sets: "emotion/set", options: emotions(), icon: "emoticon"},
		{platform: "event", key: "conversation", name: "Conversation", types: ConversationTypes(), icon: "forum"},
		{platform: "event", key: "notification", name: "Notification", types: NotificationTypes(), icon: "bell"},
		{platform: "event", key: "diary", name: "Diary", types: DiaryTypes(), icon: "notebook"},
		{platform: "notify", key: "say", name: "Say", sets: "say/set", icon: "bullhorn"},
		// For dashboards. A state has this limit; the notify entity above has none.
		{platform: "text", key: "say_text", name: "Say text", sets: "say/set", icon: "message-text", more: component{"min": 1, "max": MaxText}},
		// An empty text removes the name, and the device has its default one again.
		{platform: "text", key: "name", name: "Name", reads: orNothing, sets: "name/set", place: inConfig, icon: "rename",
			more: component{"min": 0, "max": 32}},
		// It takes effect with the robot's next boot.
		{platform: "select", key: "transport", name: "Transport", sets: "transport/set", place: inConfig, icon: "transit-connection-variant",
			options: []string{string(device.WebSocket), string(device.MQTT)}},
		{platform: "switch", key: "mute", name: "Mute", reads: asBool, sets: "mute/set", icon: "microphone-off"},
		{platform: "button", key: "stop", name: "Stop", sets: "stop/set", icon: "stop"},
		{platform: "button", key: "reboot", name: "Reboot", sets: "reboot/set", class: "restart", place: inConfig},
		{platform: "button", key: "identify", name: "Identify", sets: "identify/set", class: "identify", place: diagnostic},
		// With the robot's own availability it could never show that the robot is away.
		{platform: "binary_sensor", key: "connected", name: "Connected", reads: asBool, class: "connectivity", place: diagnostic,
			more: whileOnline(n)},
		{platform: "binary_sensor", key: "talking", name: "Talking", reads: asBool, place: diagnostic, icon: "account-voice"},
	}
}

// toolRows returns the entities that need one of the robot's tools.
func toolRows(o owner, tools []device.Tool) (all []row) {
	level := func(key, name string) {
		if c, found := Level(tools, key); found {
			low, high, ok := c.Percent()
			all = append(all, sliderRow(row{key: key, name: name, place: inConfig}, low, high, ok)...)
		}
	}
	level("volume", "Volume")
	level("brightness", "Brightness")
	if head, found := Head(tools); found {
		axis := func(i int, key, name, icon string) {
			low, high, ok := head.Axis(i)
			r := row{key: key, name: name, icon: icon, more: component{"unit_of_measurement": "°"}}
			all = append(all, sliderRow(r, low, high, ok)...)
		}
		axis(0, "head_yaw", "Head yaw", "arrow-left-right")
		axis(1, "head_pitch", "Head pitch", "arrow-up-down")
	}
	if _, found := device.FindLights(tools); found {
		// Its state has its own topic: Home Assistant's JSON lights read a whole message and accept
		// no template that would find it in another.
		all = append(all, row{platform: "light", key: "led", name: "Lights", sets: "led/set", more: component{"schema": "json",
			"state_topic": o.topic + "led", "supported_color_modes": []string{"rgb"}, "brightness": true, "flash": false, "transition": false}})
	}
	return all
}

// sliderRow completes r as a slider from low to high. It returns no row unless ok.
func sliderRow(r row, low, high int, ok bool) []row {
	if !ok {
		return nil
	}
	slider := component{"min": low, "max": high, "step": 1, "mode": "slider"}
	if low == 0 && high == 100 {
		slider["unit_of_measurement"] = "%"
	}
	maps.Copy(slider, r.more)
	r.platform, r.reads, r.sets, r.more = "number", asItIs, r.key+"/set", slider
	return []row{r}
}

// sensedRows returns the entities that need one of the robot's senses.
func sensedRows(o owner) []row {
	measured := func(unit string) component {
		return component{"state_class": "measurement", "unit_of_measurement": unit}
	}
	return []row{
		// A robot reports when a face has gone, so no off_delay: every change of the document would
		// restart it.
		{platform: "binary_sensor", key: "face", name: "Face", reads: asBool, class: "occupancy"},
		{platform: "sensor", key: "identity", name: "Identity", reads: asItIs, icon: "account"},
		{platform: "sensor", key: "battery", name: "Battery", reads: asItIs, class: "battery", place: diagnostic, more: measured("%")},
		{platform: "binary_sensor", key: "charging", name: "Charging", reads: asBool, class: "battery_charging", place: diagnostic},
		{platform: "sensor", key: "signal", name: "Signal", options: signals(), class: "enum", place: diagnostic, icon: "wifi"},
		{platform: "sensor", key: "temperature", name: "Temperature", reads: asItIs, class: "temperature", place: diagnostic, more: measured("°C")},
		{platform: "sensor", key: "booted", name: "Last boot", reads: asItIs, class: "timestamp", place: diagnostic},
		{platform: "event", key: "touch", name: "Touch", types: touchTypes(), class: "button"},
		{platform: "event", key: "perception", name: "Perception", types: PerceptionTypes(), icon: "eye"},
		// Home Assistant fails on an update with a command topic and no payload_install.
		{platform: "update", key: "firmware", name: "Firmware", sets: "firmware/set", class: "firmware",
			more: component{"state_topic": o.topic + "firmware", "payload_install": "install"}},
		{platform: "sensor", key: "mood", name: "Mood", options: Moods(), class: "enum", icon: "heart-pulse",
			more: component{"state_topic": o.topic + "mood", "json_attributes_topic": o.topic + "mood"}},
	}
}

// choiceRows returns the entities that need something to choose from.
func choiceRows(c Card) (all []row) {
	if len(c.Characters) > 0 {
		all = append(all, row{platform: "select", key: "character", name: "Character", sets: "character/set", options: c.Characters, place: inConfig,
			icon: "account-switch"})
	}
	if len(c.Gestures) > 0 {
		all = append(all, row{platform: "select", key: "gesture", name: "Gesture", sets: "gesture/set", options: c.Gestures, icon: "hand-wave"})
	}
	return all
}

// bridgeComponents returns the appliance's own entities. Each names its availability, because the
// one named "connection" is what shows it.
func bridgeComponents(n topic.Names) map[string]component {
	measured := component{"state_class": "measurement"}
	all := owner{bridgeIdentifier(n), n.Bridge(""), n.Bridge("info")}.components([]row{
		{platform: "sensor", key: "robots", name: "Robots connected", reads: asItIs, icon: "robot", more: measured},
		{platform: "sensor", key: "strangers", name: "Robots not adopted", reads: asItIs, place: diagnostic, icon: "robot-confused", more: measured},
		{platform: "sensor", key: "waiting", name: "Agents waiting", reads: asItIs, icon: "account-question", more: measured},
		{platform: "event", key: "robot", name: "New robot", types: []string{"came", "waits", Other}, icon: "robot-confused"},
		{platform: "sensor", key: "version", name: "Version", reads: asItIs, place: diagnostic, icon: "tag"},
		{platform: "event", key: "notification", name: "Notification", types: NotificationTypes(), icon: "bell"},
		// A message becomes a notification for every robot.
		{platform: "notify", key: "announce", name: "Announce", sets: "request/notify", icon: "bullhorn",
			more: component{"command_template": `{"text": {{ value | to_json }}}`}},
		{platform: "button", key: "test_notification", name: "Test notification", sets: "request/notify", place: diagnostic, icon: "bell-check",
			more: component{"payload_press": `{"text": "This is a test."}`}},
		{platform: "button", key: "restart", name: "Restart", sets: "request/restart", class: "restart", place: inConfig,
			more: component{"payload_press": "{}"}},
	})
	for _, c := range all {
		maps.Copy(c, whileOnline(n))
	}
	all["connection"] = component{"platform": "binary_sensor", "unique_id": bridgeIdentifier(n) + "_connection", "name": "Connection",
		"device_class": "connectivity", "entity_category": diagnostic, "state_topic": n.Bridge("status"),
		"payload_on": "online", "payload_off": "offline"}
	return all
}

// The payloads of an agent's two buttons.
const (
	Allow = "allow"
	Deny  = "deny"
)

// agentComponents returns the entities of an agent without a robot.
func agentComponents(n topic.Names, id string) map[string]component {
	state := n.Agent(id, "state")
	// A button is available while pressing it would answer a question.
	answer := func(payload string) component {
		return component{"payload_press": payload, "availability": []topicRef{
			{Topic: n.Bridge("status")}, {Topic: state, Template: "{{ 'online' if value_json.get('answerable') else 'offline' }}"},
		}}
	}
	return owner{agentIdentifier(n, id), n.Agent(id, ""), state}.components([]row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asItIs, options: agentStates(), class: "enum", icon: "robot-happy"},
		{platform: "sensor", key: "tool", name: "Tool", reads: "{{ value_json.get('tool_name') }}", icon: "tools"},
		{platform: "sensor", key: "question", name: "Question", reads: asItIs, icon: "help-circle",
			more: component{"json_attributes_topic": state}}, // an automation answers by the question's id
		{platform: "button", key: "allow", name: "Allow", sets: "answer/set", icon: "check", more: answer(Allow)},
		{platform: "button", key: "deny", name: "Deny", sets: "answer/set", icon: "close", more: answer(Deny)},
	})
}
