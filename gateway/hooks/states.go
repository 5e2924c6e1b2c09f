package hooks

import (
	"time"

	"perch/agent"
)

// codingState is the state of a coding session, by its name in clawd-on-desk.
type codingState string

// The states that agents report.
const (
	idle         codingState = "idle"
	thinking     codingState = "thinking"
	working      codingState = "working"
	juggling     codingState = "juggling"
	sweeping     codingState = "sweeping" // the agent compacts its history
	carrying     codingState = "carrying" // the agent creates a work tree
	attention    codingState = "attention"
	notification codingState = "notification"
	failed       codingState = "error"
	sleeping     codingState = "sleeping"
)

// traits are the properties of a state.
type traits struct {
	priority int           // robots show the session with the highest priority; negative for an unknown state
	lasts    time.Duration // duration of the state, as in clawd-on-desk; 0 means until the next report
	face     agent.Emotion // face that robots show
}

func (c codingState) traits() traits {
	confident := agent.Emotion{Name: "confident", Emoji: "😏"}
	t, known := map[codingState]traits{
		failed:       {8, 5 * time.Second, agent.Emotion{Name: "sad", Emoji: "😢"}},
		notification: {7, 2500 * time.Millisecond, agent.Emotion{Name: "confused", Emoji: "🙄"}},
		sweeping:     {6, 5 * time.Minute, confident}, // usually ended earlier, by the next report
		attention:    {5, 4 * time.Second, agent.Emotion{Name: "happy", Emoji: "😊"}},
		carrying:     {4, 3 * time.Second, confident},
		juggling:     {4, 0, agent.Emotion{Name: "silly", Emoji: "😜"}},
		working:      {3, 0, confident},
		thinking:     {2, 0, agent.Emotion{Name: "thinking", Emoji: "🤔"}},
		idle:         {1, 0, agent.Neutral},
		sleeping:     {0, 0, agent.Neutral}, // a sleepy face means that the robot itself sleeps
	}[c]
	if !known {
		return traits{-1, 0, agent.Neutral}
	}
	return t
}

// shown returns the state in Perch's vocabulary.
func (c codingState) shown() agent.Shown {
	if c == sweeping || c == carrying {
		return agent.Working
	}
	return agent.Shown(c)
}

// stateOf returns the state of a session after an event of Claude Code or Codex, or "" if the event does not change
// the state.
func stateOf(event string) codingState {
	return map[string]codingState{
		"SessionStart": idle, interrupt: idle, userPromptSubmit: thinking, preToolUse: working, postToolUse: working, subagentStop: working,
		postToolUseFailure: failed, stopFailure: failed, stop: attention, "PostCompact": attention, subagentStart: juggling,
		"PreCompact": sweeping, "Notification": notification, "Elicitation": notification, "PermissionRequest": notification,
		"WorktreeCreate": carrying, sessionEnd: sleeping,
	}[event]
}

// Events of Claude Code and Codex that are used outside stateOf too.
const (
	userPromptSubmit   = "UserPromptSubmit"
	preToolUse         = "PreToolUse"
	postToolUse        = "PostToolUse"
	postToolUseFailure = "PostToolUseFailure"
	stop               = "Stop"
	stopFailure        = "StopFailure"
	interrupt          = "Interrupt" // sent by Codex only
	subagentStart      = "SubagentStart"
	subagentStop       = "SubagentStop"
	sessionEnd         = "SessionEnd"
)
