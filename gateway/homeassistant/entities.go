package homeassistant

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"perch/agent"
	"perch/device"
)

// The lists of what may come, as they are announced. Lists only grow: a
// value that is in none is logged there as a mistake and lost, and automations
// of households name those that are.

// shownOptions are the values of agent_state, the agent's whole vocabulary.
func shownOptions() []string {
	return []string{
		string(agent.Idle), string(agent.Listening), string(agent.Thinking), string(agent.Working), string(agent.Juggling),
		string(agent.Speaking), string(agent.Attention), string(agent.Notification), string(agent.Failed), string(agent.Sleeping),
	}
}

// emotionOptions are the faces that can be asked for.
func emotionOptions() []string {
	var options []string
	for _, e := range agent.Emotions() {
		options = append(options, e.Name)
	}
	return options
}

// otherType is the event type of events that the lists do not have yet.
const otherType = "other"

func conversationTypes() []string {
	return []string{
		"wake", "heard", "misheard", "replied", "asked", "answered", "tool_called", "turn_ended", "error",
		"queued", "done", "command_rejected", otherType,
	}
}

func notificationTypes() []string {
	return []string{"received", "shown", "spoken", "acknowledged", "expired", otherType}
}

// touchTypes are Home Assistant's words for what happens to a button, for
// which it offers triggers by itself.
func touchTypes() []string {
	return []string{"press_start", "press_end", "long_press_start", "long_press_end", "multi_press_ongoing", "multi_press_end", otherType}
}

// perceptionTypes are what the firmwares in use report, and what is made of it.
func perceptionTypes() []string {
	return []string{
		"face_detected", "face_lost", "face_recognized", "sound_event", "wake_word_detected", "state_changed",
		"dance_started", "dance_ended", "head_pet_started", "head_pet_ended", "head_turn", "audio_captioned",
		"scene_synthesised", "chat_status", "battery_low", "wake_word", "head_pet_hold", "idle_motion", otherType,
	}
}

// signalOptions are the firmware's words for the strength of its Wi-Fi.
func signalOptions() []string { return []string{"strong", "medium", "weak"} }

// row is an entity as the tables below have it.
type row struct {
	platform, key, name string

	reads   string   // the template of its state, in which KEY is its key; empty with options lets those through
	sets    string   // the topic of its commands, below the device's
	options []string // that it can have
	types   []string // of the events on the topic of its key

	class string // its device class, which brings icon and words with it
	icon  string
	place string // on the device's page, its entity_category; empty is among the first
	more  component
}

// owner is the device that entities belong to.
type owner struct {
	identifier, topic string
	state             string // the topic that its entities read
}

// components are the entities of a device.
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
		putText(c, "device_class", r.class)
		putText(c, "entity_category", r.place)
		maps.Copy(c, r.more)
		all[r.key] = c
	}
	return all
}

// Where an entity stands on the device's page.
const (
	diagnostic = "diagnostic"
	inConfig   = "config"
)

// Templates. Get returns none for a key that is not there, where a plain
// attribute would be an error in Home Assistant's log. Unknown is null in a
// document, and "None" here, which Home Assistant takes as unknown everywhere.
const (
	asItIs    = "{{ value_json.get('KEY') }}"
	orNothing = "{{ value_json.get('KEY') or '' }}"

	asBool = "{% set v = value_json.get('KEY') %}{{ none if v is none else 'ON' if v else 'OFF' }}"
)

// oneOf is a template that lets only known values through.
func oneOf(options []string) string {
	quoted := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `', '`).Replace(strings.Join(options, "\n"))
	return "{% set v = value_json.get('KEY') %}{{ v if v in ['" + quoted + "'] else none }}"
}

// robotComponents are a robot's entities: those every robot has, and those it
// has the tool or the sensor for.
func (n names) robotComponents(c robotCard) map[string]component {
	o := owner{n.robotIdentifier(c.ID), n.Robot(c.ID, ""), n.Robot(c.ID, "state")}
	sensed := slices.DeleteFunc(n.sensedRows(o), func(r row) bool { return !c.Senses[r.key] })
	return o.components(slices.Concat(n.talkRows(), toolRows(o, c.Tools), sensed, choiceRows(c)))
}

// talkRows are what every robot has.
func (n names) talkRows() []row {
	return []row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asItIs, options: shownOptions(), class: "enum", icon: "robot-happy"},
		{platform: "select", key: "emotion", name: "Emotion", sets: "emotion/set", options: emotionOptions(), icon: "emoticon"},
		{platform: "event", key: "conversation", name: "Conversation", types: conversationTypes(), icon: "forum"},
		{platform: "event", key: "notification", name: "Notification", types: notificationTypes(), icon: "bell"},
		{platform: "event", key: "diary", name: "Diary", types: diaryTypes(), icon: "notebook"},
		{platform: "notify", key: "say", name: "Say", sets: "say/set", icon: "bullhorn"},
		// A dashboard's field. A state of Home Assistant's holds 255 characters;
		// what is sent with notify has no such limit.
		{platform: "text", key: "say_text", name: "Say text", sets: "say/set", icon: "message-text", more: component{"min": 1, "max": mostText}},
		// What is empty takes the name away, and the device has again the one it came with.
		{platform: "text", key: "name", name: "Name", reads: orNothing, sets: "name/set", place: inConfig, icon: "rename",
			more: component{"min": 0, "max": 32}},
		// It holds from the robot's next boot on.
		{platform: "select", key: "transport", name: "Transport", sets: "transport/set", place: inConfig, icon: "transit-connection-variant",
			options: []string{string(device.WebSocket), string(device.MQTT)}},
		{platform: "switch", key: "mute", name: "Mute", reads: asBool, sets: "mute/set", icon: "microphone-off"},
		{platform: "button", key: "stop", name: "Stop", sets: "stop/set", icon: "stop"},
		{platform: "button", key: "reboot", name: "Reboot", sets: "reboot/set", class: "restart", place: inConfig},
		{platform: "button", key: "identify", name: "Identify", sets: "identify/set", class: "identify", place: diagnostic},
		// Of the appliance's availability alone: with the robot's own it could
		// never read off.
		{platform: "binary_sensor", key: "connected", name: "Connected", reads: asBool, class: "connectivity", place: diagnostic, more: n.here()},
		{platform: "binary_sensor", key: "talking", name: "Talking", reads: asBool, place: diagnostic, icon: "account-voice"},
	}
}

// here has an entity be available while the appliance is.
func (n names) here() component {
	return component{"availability": []topicRef{{Topic: n.Bridge("status")}}}
}

// toolRows are what needs one of the robot's tools.
func toolRows(o owner, tools []device.Tool) (all []row) {
	level := func(key, name string) {
		if s, found := findLevel(tools, key); found {
			all = append(all, s.slider(row{key: key, name: name, place: inConfig}, 0, 0, 100)...)
		}
	}
	level("volume", "Volume")
	level("brightness", "Brightness")
	if head, found := findHead(tools); found {
		unit := component{"unit_of_measurement": "°"}
		all = append(all, head.slider(row{key: "head_yaw", name: "Head yaw", icon: "arrow-left-right", more: unit}, 0, -mostYaw, mostYaw)...)
		all = append(all, head.slider(row{key: "head_pitch", name: "Head pitch", icon: "arrow-up-down", more: unit}, 1, leastPitch, mostPitch)...)
	}
	if _, found := device.FindLights(tools); found {
		// Its state is a topic of its own: Home Assistant's JSON lights read a
		// whole message, and take no template to find it in another.
		all = append(all, row{platform: "light", key: "led", name: "Lights", sets: "led/set", more: component{"schema": "json",
			"state_topic": o.topic + "led", "supported_color_modes": []string{"rgb"}, "brightness": true, "flash": false, "transition": false}})
	}
	return all
}

// slider makes a row a slider for the i-th argument of a tool, with the tool's own range. It
// is none where there is nothing to slide.
func (s setting) slider(r row, i, low, high int) []row {
	low, high, ok := s.span(i, low, high)
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

// sensedRows are the entities that need a sensor or an event, all there are.
func (n names) sensedRows(o owner) []row {
	measured := func(unit string) component {
		return component{"state_class": "measurement", "unit_of_measurement": unit}
	}
	return []row{
		// A face that has gone is reported, so there is no delay after which it is
		// taken to have gone: every change of the state would begin it anew.
		{platform: "binary_sensor", key: "face", name: "Face", reads: asBool, class: "occupancy"},
		{platform: "sensor", key: "identity", name: "Identity", reads: asItIs, icon: "account"},
		{platform: "sensor", key: "battery", name: "Battery", reads: asItIs, class: "battery", place: diagnostic, more: measured("%")},
		{platform: "binary_sensor", key: "charging", name: "Charging", reads: asBool, class: "battery_charging", place: diagnostic},
		{platform: "sensor", key: "signal", name: "Signal", options: signalOptions(), class: "enum", place: diagnostic, icon: "wifi"},
		{platform: "sensor", key: "temperature", name: "Temperature", reads: asItIs, class: "temperature", place: diagnostic, more: measured("°C")},
		{platform: "sensor", key: "booted", name: "Last boot", reads: asItIs, class: "timestamp", place: diagnostic},
		{platform: "event", key: "touch", name: "Touch", types: touchTypes(), class: "button"},
		{platform: "event", key: "perception", name: "Perception", types: perceptionTypes(), icon: "eye"},
		// Home Assistant looks for payload_install where there is a topic to
		// send it to, and fails where there is none.
		{platform: "update", key: "firmware", name: "Firmware", sets: "firmware/set", class: "firmware",
			more: component{"state_topic": o.topic + "firmware", "payload_install": "install"}},
		{platform: "sensor", key: "mood", name: "Mood", options: moodOptions(), class: "enum", icon: "heart-pulse",
			more: component{"state_topic": o.topic + "mood", "json_attributes_topic": o.topic + "mood"}},
	}
}

// choiceRows are what there has to be something to choose from for.
func choiceRows(c robotCard) (all []row) {
	if len(c.Characters) > 0 {
		all = append(all, row{platform: "select", key: "character", name: "Character", sets: "character/set", options: c.Characters, place: inConfig,
			icon: "account-switch"})
	}
	if len(c.Gestures) > 0 {
		all = append(all, row{platform: "select", key: "gesture", name: "Gesture", sets: "gesture/set", options: c.Gestures, icon: "hand-wave"})
	}
	return all
}

// bridgeComponents are the appliance's own entities. Each names its
// availability, because one of them is what shows it.
func (n names) bridgeComponents() map[string]component {
	measured := component{"state_class": "measurement"}
	all := owner{n.bridgeIdentifier(), n.Bridge(""), n.Bridge("info")}.components([]row{
		{platform: "sensor", key: "robots", name: "Robots connected", reads: asItIs, icon: "robot", more: measured},
		{platform: "sensor", key: "strangers", name: "Robots not adopted", reads: asItIs, place: diagnostic, icon: "robot-confused", more: measured},
		{platform: "sensor", key: "waiting", name: "Agents waiting", reads: asItIs, icon: "account-question", more: measured},
		{platform: "event", key: "robot", name: "New robot", types: []string{strangerCame, strangerWaits, otherType}, icon: "robot-confused"},
		{platform: "sensor", key: "version", name: "Version", reads: asItIs, place: diagnostic, icon: "tag"},
		{platform: "event", key: "notification", name: "Notification", types: notificationTypes(), icon: "bell"},
		// A message becomes a notification for every robot.
		{platform: "notify", key: "announce", name: "Announce", sets: "request/notify", icon: "bullhorn",
			more: component{"command_template": `{"text": {{ value | to_json }}}`}},
		{platform: "button", key: "test_notification", name: "Test notification", sets: "request/notify", place: diagnostic, icon: "bell-check",
			more: component{"payload_press": `{"text": "This is a test."}`}},
		{platform: "button", key: "restart", name: "Restart", sets: "request/restart", class: "restart", place: inConfig,
			more: component{"payload_press": "{}"}},
	})
	for _, c := range all {
		maps.Copy(c, n.here())
	}
	all["connection"] = component{"platform": "binary_sensor", "unique_id": n.bridgeIdentifier() + "_connection", "name": "Connection",
		"device_class": "connectivity", "entity_category": diagnostic, "state_topic": n.Bridge("status"),
		"payload_on": "online", "payload_off": "offline"}
	return all
}

// agentComponents are what every agent without a robot has.
func (n names) agentComponents(id string) map[string]component {
	state := n.Agent(id, "state")
	// A button is there while its press would answer something.
	answer := func(payload string) component {
		return component{"payload_press": payload, "availability": []topicRef{
			{Topic: n.Bridge("status")}, {Topic: state, Template: "{{ 'online' if value_json.get('answerable') else 'offline' }}"},
		}}
	}
	return owner{n.agentIdentifier(id), n.Agent(id, ""), state}.components([]row{
		{platform: "sensor", key: "agent_state", name: "Agent state", reads: asItIs, options: shownOptions(), class: "enum", icon: "robot-happy"},
		{platform: "sensor", key: "tool", name: "Tool", reads: "{{ value_json.get('tool_name') }}", icon: "tools"},
		{platform: "sensor", key: "question", name: "Question", reads: asItIs, icon: "help-circle",
			more: component{"json_attributes_topic": state}}, // an automation answers by the question's id
		{platform: "button", key: "allow", name: "Allow", sets: "answer/set", icon: "check", more: answer(answerAllow)},
		{platform: "button", key: "deny", name: "Deny", sets: "answer/set", icon: "close", more: answer(answerDeny)},
	})
}

// setting is one of the robot's controls, as a slider shows it.
type setting struct{ device.Control }

// findLevel is the tool that sets the volume or the brightness.
func findLevel(tools []device.Tool, what string) (setting, bool) {
	c, found := device.FindControl(tools, "set "+what, []string{what, "level", "value"})
	return setting{c}, found
}

func findHead(tools []device.Tool) (setting, bool) {
	c, found := device.FindHead(tools)
	return setting{c}, found
}

// How far a head may tilt, in degrees: the makers advise to stay off both
// ends, and device.Tool.Fit keeps to it.
const (
	mostYaw    = device.AssumedHeadYaw
	leastPitch = device.MinHeadPitch
	mostPitch  = device.MaxHeadPitch
)

// keepAxis is the least value that Stack-chan's head lists for its axes. It means
// "leave it as it is", and is no angle.
const keepAxis = device.KeepHeadAxis

// axis is how far a head turns, 0, or tilts, 1, in degrees.
func (s setting) axis(i int) (least, most int, ok bool) {
	return s.span(i, []int{-mostYaw, leastPitch}[i], []int{mostYaw, mostPitch}[i])
}

// span is the range of an argument as a slider shows it, where the tool's
// schema has none from low to high. It is false for an argument that is not
// there and for one that can be set to a single value.
func (s setting) span(i, low, high int) (least, most int, ok bool) {
	if s.Arguments[i] == "" {
		return 0, 0, false
	}
	a := s.Schema.Properties[s.Arguments[i]]
	least, most = low, high
	if a.Maximum != nil {
		most = *a.Maximum
	}
	switch {
	case a.Minimum != nil && *a.Minimum == keepAxis:
		least = -most // it turns as far to either side
	case a.Minimum != nil:
		least = *a.Minimum
	}
	if low == leastPitch {
		least, most = max(least, leastPitch), min(most, mostPitch)
	}
	least, most = max(least, -mostNumber), min(most, mostNumber)
	return least, most, least < most
}
