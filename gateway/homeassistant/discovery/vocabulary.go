// Package discovery makes the MQTT discovery payloads of Home Assistant: which entities a robot, the
// appliance or an agent has, and what each accepts and shows. It is pure.
package discovery

import (
	"slices"

	"perch/agent"
)

// The lists of values and event types, as they are announced. They only grow: Home Assistant logs a
// value that is in none as an error and loses it, and automations of households name those here.

// agentStates returns the values of agent_state.
func agentStates() []string {
	return []string{
		string(agent.Idle), string(agent.Listening), string(agent.Thinking), string(agent.Working), string(agent.Juggling),
		string(agent.Speaking), string(agent.Attention), string(agent.Notification), string(agent.Failed), string(agent.Sleeping),
	}
}

// emotions returns the faces that a robot can be asked for.
func emotions() []string {
	var names []string
	for _, e := range agent.Emotions() {
		names = append(names, e.Name)
	}
	return names
}

// Other is the type of events that the announced list of types does not have.
const Other = "other"

// Listed returns name if it is among the announced types, and Other if not.
func Listed(name string, types []string) string {
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

// NotificationTypes returns the types of notification events.
func NotificationTypes() []string {
	return []string{"received", "shown", "spoken", "acknowledged", "expired", Other}
}

// touchTypes returns Home Assistant's own event types of a button. It suggests triggers for them.
func touchTypes() []string {
	return []string{"press_start", "press_end", "long_press_start", "long_press_end", "multi_press_ongoing", "multi_press_end", Other}
}

// PerceptionTypes returns what the firmwares in use report, and what Perch derives from it.
func PerceptionTypes() []string {
	return []string{
		"face_detected", "face_lost", "face_recognized", "sound_event", "wake_word_detected", "state_changed",
		"dance_started", "dance_ended", "head_pet_started", "head_pet_ended", "head_turn", "audio_captioned",
		"scene_synthesised", "chat_status", "battery_low", "wake_word", "head_pet_hold", "idle_motion", Other,
	}
}

// Moods returns the feelings that a robot can show.
func Moods() []string {
	return []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}
}

// DiaryTypes returns the types of diary entries.
func DiaryTypes() []string {
	return []string{"speak", "remember", "sign", "skill-done", "validate", "load-end", Other}
}

// signals returns the firmware's words for the strength of its Wi-Fi signal.
func signals() []string { return []string{"strong", "medium", "weak"} }
