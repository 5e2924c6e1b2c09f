// Package discovery makes the MQTT discovery payloads for Home Assistant. They describe the entities of a
// robot, of the appliance (called the bridge) and of an agent. The package does no I/O and has no state.
package discovery

import (
	"slices"

	"perch/agent"
	"perch/language"
)

// The functions below return the announced lists of values and event types. Never remove a value from a list,
// because the automations of owners use them. If Perch publishes a value that it has not announced, Home
// Assistant logs an error and drops the value.

// agentStates returns the possible values of agent_state.
func agentStates() []string {
	return []string{
		string(agent.Idle), string(agent.Listening), string(agent.Thinking), string(agent.Working), string(agent.Juggling),
		string(agent.Speaking), string(agent.Attention), string(agent.Notification), string(agent.Failed), string(agent.Sleeping),
	}
}

// emotions returns the names of the faces that a robot can be asked to show.
func emotions() []string {
	var names []string
	for _, e := range agent.Emotions() {
		names = append(names, e.Name)
	}
	return names
}

// DefaultOption is the option of a select with which a robot uses the appliance's default setting.
const DefaultOption = "default"

// Languages returns the BCP 47 tags of the languages that Perch itself speaks.
func Languages() (tags []string) {
	for _, tag := range language.All() {
		tags = append(tags, string(tag))
	}
	return tags
}

// Other is the event type that replaces a type that was not announced.
const Other = "other"

// ListedOrOther returns name if it is one of the announced types, and Other if it is not.
func ListedOrOther(name string, types []string) string {
	if slices.Contains(types, name) {
		return name
	}
	return Other
}

// ConversationTypes returns the types of conversation events.
func ConversationTypes() []string {
	return []string{
		"wake", "heard", "misheard", "replied", "asked", "answered", "tool_called", "turn_ended", "error",
		"queued", "done", "command_rejected", Other,
	}
}

// AnswerTypes returns the types of answers to questions that were asked over MQTT. The type "words" is a spoken answer
// that means neither yes nor no, and "none" means that there is no answer.
func AnswerTypes() []string { return []string{"yes", "no", "words", "none", Other} }

// NotificationTypes returns the types of notification events.
func NotificationTypes() []string {
	return []string{"received", "shown", "spoken", "acknowledged", "expired", Other}
}

// RequestVerbs returns the verbs of the requests to the bridge.
func RequestVerbs() []string {
	return []string{"devices", "notify", "adopt", "forget", "firmware", "restart"}
}

// touchTypes returns the event types that Home Assistant defines for buttons and suggests as triggers of
// automations.
func touchTypes() []string {
	return []string{"press_start", "press_end", "long_press_start", "long_press_end", "multi_press_ongoing", "multi_press_end", Other}
}

// PerceptionTypes returns the types of the perception events that the common firmwares report or that Perch derives.
func PerceptionTypes() []string {
	return []string{
		"face_detected", "face_lost", "face_recognized", "sound_event", "wake_word_detected", "state_changed",
		"dance_started", "dance_ended", "head_pet_started", "head_pet_ended", "head_turn", "audio_captioned",
		"scene_synthesised", "chat_status", "battery_low", "wake_word", "head_pet_hold", "idle_motion", Other,
	}
}

// Moods returns the possible values of mood.
func Moods() []string {
	return []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}
}

// DiaryTypes returns the types of diary entries.
func DiaryTypes() []string {
	return []string{"speak", "remember", "sign", "skill-done", "validate", "load-end", Other}
}

// signals returns the possible values of signal, the strength of the Wi-Fi signal as the firmware reports it.
func signals() []string { return []string{"strong", "medium", "weak"} }
