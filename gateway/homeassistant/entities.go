package homeassistant

import (
	"maps"
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

// entity makes the components of one device.
type entity struct {
	names
	robot      device.ID
	agent      string // the id of one without a robot; without either it is the appliance
	components map[string]component
}

// add makes a component of a platform.
func (e entity) add(platform, key, name string, more ...component) {
	owner := e.bridgeIdentifier()
	switch {
	case e.robot != "":
		owner = e.robotIdentifier(e.robot)
	case e.agent != "":
		owner = e.agentIdentifier(e.agent)
	}
	c := component{"platform": platform, "unique_id": owner + "_" + key, "name": name}
	for _, m := range more {
		maps.Copy(c, m)
	}
	e.components[key] = c
}

// shows has a component read its key of the robot's state. Unknown is null
// there, and "None" here, which Home Assistant takes as unknown everywhere.
func (e entity) shows(key, template string) component {
	return component{"state_topic": e.robotTopic(e.robot, "state"), "value_template": strings.Replace(template, "KEY", key, 1)}
}

// eventEntity has an event entity read a thing's topic.
func (e entity) eventEntity(thing string, types []string) component {
	return component{"state_topic": e.robotTopic(e.robot, thing), "event_types": types}
}

// sets has a component set a thing of the robot's.
func (e entity) sets(thing string) component {
	return component{"command_topic": e.robotTopic(e.robot, thing+"/set")}
}

// class gives a component a device class, which brings icon and words with it.
func class(name string) component { return component{"device_class": name} }

func icon(name string) component { return component{"icon": "mdi:" + name} }

// Where a component stands on the device's page.
func inDiagnostic() component { return component{"entity_category": "diagnostic"} }
func inConfig() component     { return component{"entity_category": "config"} }

// Templates. Get returns none for a key that is not there, where a plain
// attribute would be an error in Home Assistant's log.
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
	e := entity{names: n, robot: c.ID, components: map[string]component{}}
	e.talk()
	e.body(c.Tools)
	e.senses(c.Senses)
	e.expresses(c)
	return e.components
}

// talk is what every robot has.
func (e entity) talk() {
	e.add("sensor", "agent_state", "Agent state", e.shows("agent_state", asItIs),
		class("enum"), component{"options": shownOptions()}, icon("robot-happy"))
	e.add("select", "emotion", "Emotion", e.shows("emotion", oneOf(emotionOptions())), e.sets("emotion"),
		component{"options": emotionOptions()}, icon("emoticon"))
	e.add("event", "conversation", "Conversation", e.eventEntity("conversation", conversationTypes()), icon("forum"))
	e.add("event", "notification", "Notification", e.eventEntity("notification", notificationTypes()), icon("bell"))
	e.add("notify", "say", "Say", e.sets("say"), icon("bullhorn"))
	// A dashboard's field. A state of Home Assistant's holds 255 characters;
	// what is sent with notify has no such limit.
	e.add("text", "say_text", "Say text", e.sets("say"), component{"min": 1, "max": mostText}, icon("message-text"))
	// What is empty takes the name away, and the device has again the one it came with.
	e.add("text", "name", "Name", e.shows("name", orNothing), e.sets("name"), component{"min": 0, "max": 32}, inConfig(), icon("rename"))
	// It holds from the robot's next boot on.
	e.add("select", "transport", "Transport", e.shows("transport", oneOf(transports())), e.sets("transport"),
		component{"options": transports()}, inConfig(), icon("transit-connection-variant"))
	e.add("switch", "mute", "Mute", e.shows("mute", asBool), e.sets("mute"), icon("microphone-off"))
	e.add("button", "stop", "Stop", e.sets("stop"), icon("stop"))
	e.add("button", "reboot", "Reboot", e.sets("reboot"), class("restart"), inConfig())
	e.add("button", "identify", "Identify", e.sets("identify"), class("identify"), inDiagnostic())
	// Of the appliance's availability alone: with the robot's own it could
	// never read off.
	e.add("binary_sensor", "connected", "Connected", e.shows("connected", asBool), class("connectivity"), inDiagnostic(),
		component{"availability": []topicRef{{Topic: e.bridgeTopic("status")}}})
	e.add("binary_sensor", "talking", "Talking", e.shows("talking", asBool), inDiagnostic(), icon("account-voice"))
}

// transports are those that a robot can have.
func transports() []string { return []string{string(device.WebSocket), string(device.MQTT)} }

// body is what needs one of the robot's tools.
func (e entity) body(tools []device.Tool) {
	for key, name := range map[string]string{"volume": "Volume", "brightness": "Brightness"} {
		if s, found := findLevel(tools, key); found {
			e.number(key, name, s, 0, 0, 100, inConfig())
		}
	}
	if head, found := findHead(tools); found {
		e.number("head_yaw", "Head yaw", head, 0, -mostYaw, mostYaw, icon("arrow-left-right"), component{"unit_of_measurement": "°"})
		e.number("head_pitch", "Head pitch", head, 1, leastPitch, mostPitch, icon("arrow-up-down"), component{"unit_of_measurement": "°"})
	}
	if _, found := device.FindLights(tools); found {
		// Its state is a topic of its own: Home Assistant's JSON lights read a
		// whole message, and take no template to find it in another.
		e.add("light", "led", "Lights", e.sets("led"), component{
			"schema": "json", "state_topic": e.robotTopic(e.robot, "led"),
			"supported_color_modes": []string{"rgb"}, "brightness": true, "flash": false, "transition": false,
		})
	}
}

// number is a slider for the i-th argument of a tool, with the tool's own
// range.
func (e entity) number(key, name string, s setting, i, low, high int, more ...component) {
	low, high, ok := s.span(i, low, high)
	if !ok {
		return
	}
	slider := component{"min": low, "max": high, "step": 1, "mode": "slider"}
	if low == 0 && high == 100 {
		slider["unit_of_measurement"] = "%"
	}
	e.add("number", key, name, append(more, e.shows(key, asItIs), e.sets(key), slider)...)
}

// senses are the entities that need a sensor or an event.
func (e entity) senses(has map[string]bool) {
	add := func(platform, key, name, template string, more ...component) {
		if has[key] {
			e.add(platform, key, name, append(more, e.shows(key, template))...)
		}
	}
	measured := component{"state_class": "measurement"}
	// A face that has gone is reported, so there is no delay after which it is
	// taken to have gone: every change of the state would begin it anew.
	add("binary_sensor", "face", "Face", asBool, class("occupancy"))
	add("sensor", "identity", "Identity", asItIs, icon("account"))
	add("sensor", "battery", "Battery", asItIs, class("battery"), inDiagnostic(), measured, component{"unit_of_measurement": "%"})
	add("binary_sensor", "charging", "Charging", asBool, class("battery_charging"), inDiagnostic())
	add("sensor", "signal", "Signal", oneOf(signalOptions()), class("enum"), inDiagnostic(), component{"options": signalOptions()}, icon("wifi"))
	add("sensor", "temperature", "Temperature", asItIs, class("temperature"), inDiagnostic(), measured, component{"unit_of_measurement": "°C"})
	add("sensor", "booted", "Last boot", asItIs, class("timestamp"), inDiagnostic())
	if has["touch"] {
		e.add("event", "touch", "Touch", e.eventEntity("touch", touchTypes()), class("button"))
	}
	if has["perception"] {
		e.add("event", "perception", "Perception", e.eventEntity("perception", perceptionTypes()), icon("eye"))
	}
	if has["firmware"] {
		// Home Assistant looks for payload_install where there is a topic to
		// send it to, and fails where there is none.
		e.add("update", "firmware", "Firmware", e.sets("firmware"), class("firmware"),
			component{"state_topic": e.robotTopic(e.robot, "firmware"), "payload_install": "install"})
	}
}

// bridgeComponents are the appliance's own entities. Each names its
// availability, because one of them is what shows it.
func (n names) bridgeComponents() map[string]component {
	e := entity{names: n, components: map[string]component{}}
	here := component{"availability": []topicRef{{Topic: n.bridgeTopic("status")}}}
	info := func(key string) component {
		return component{"state_topic": n.bridgeTopic("info"), "value_template": strings.ReplaceAll(asItIs, "KEY", key)}
	}
	ask := func(verb string) component { return component{"command_topic": n.bridgeTopic("request/" + verb)} }

	e.add("binary_sensor", "connection", "Connection", class("connectivity"), inDiagnostic(),
		component{"state_topic": n.bridgeTopic("status"), "payload_on": "online", "payload_off": "offline"})
	e.add("sensor", "robots", "Robots connected", here, info("robots"), component{"state_class": "measurement"}, icon("robot"))
	e.add("sensor", "strangers", "Robots not adopted", here, info("strangers"), component{"state_class": "measurement"},
		inDiagnostic(), icon("robot-confused"))
	e.add("sensor", "waiting", "Agents waiting", here, info("waiting"), component{"state_class": "measurement"}, icon("account-question"))
	e.add("event", "robot", "New robot", here, icon("robot-confused"),
		component{"state_topic": n.bridgeTopic("robot"), "event_types": []string{strangerCame, strangerWaits, otherType}})
	e.add("sensor", "version", "Version", here, info("version"), inDiagnostic(), icon("tag"))
	e.add("event", "notification", "Notification", here, icon("bell"),
		component{"state_topic": n.bridgeTopic("notification"), "event_types": notificationTypes()})
	// A message becomes a notification for every robot.
	e.add("notify", "announce", "Announce", here, ask("notify"), icon("bullhorn"),
		component{"command_template": `{"text": {{ value | to_json }}}`})
	e.add("button", "test_notification", "Test notification", here, ask("notify"), inDiagnostic(), icon("bell-check"),
		component{"payload_press": `{"text": "This is a test."}`})
	e.add("button", "restart", "Restart", here, ask("restart"), class("restart"), inConfig(), component{"payload_press": "{}"})
	return e.components
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
