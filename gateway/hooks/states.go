package hooks

import (
	"time"

	"perch/agent"
)

// coding is what a coding session does, in the words of clawd-on-desk.
type coding string

// The ten that agents report.
const (
	idle         coding = "idle"
	thinking     coding = "thinking"
	working      coding = "working"
	juggling     coding = "juggling"
	sweeping     coding = "sweeping" // its history, to make room
	carrying     coding = "carrying" // a work tree elsewhere
	attention    coding = "attention"
	notification coding = "notification"
	failed       coding = "error"
	sleeping     coding = "sleeping"
)

// priority is what shows where several sessions do different things. It is
// below zero for what is no state.
func (c coding) priority() int {
	switch c {
	case failed:
		return 8
	case notification:
		return 7
	case sweeping:
		return 6
	case attention:
		return 5
	case carrying, juggling:
		return 4
	case working:
		return 3
	case thinking:
		return 2
	case idle:
		return 1
	case sleeping:
		return 0
	}
	return -1
}

// lasts is how long a state shows that passes by itself, and 0 for one that
// stays. The times are clawd-on-desk's.
func (c coding) lasts() time.Duration {
	switch c {
	case failed:
		return 5 * time.Second
	case attention:
		return 4 * time.Second
	case carrying:
		return 3 * time.Second
	case notification:
		return 2500 * time.Millisecond
	case sweeping:
		return 5 * time.Minute // the next report ends it before
	}
	return 0
}

// shown is the word of our own vocabulary.
func (c coding) shown() agent.Shown {
	if c == sweeping || c == carrying {
		return agent.Working
	}
	return agent.Shown(c)
}

// face is how a robot looks while a session does that. They are chosen to differ
// also where a robot knows eight.
func (c coding) face() agent.Emotion {
	switch c {
	case thinking:
		return agent.Emotion{Name: "thinking", Emoji: "🤔"}
	case working, sweeping, carrying:
		return agent.Emotion{Name: "confident", Emoji: "😏"}
	case juggling:
		return agent.Emotion{Name: "silly", Emoji: "😜"}
	case attention:
		return agent.Emotion{Name: "happy", Emoji: "😊"}
	case notification:
		return agent.Emotion{Name: "confused", Emoji: "🙄"}
	case failed:
		return agent.Emotion{Name: "sad", Emoji: "😢"}
	}
	// Sleepy means good night, which only the robot's own talk may show.
	return agent.Neutral
}

// coded is the state that an event of Claude Code's stands for, by its name in
// the hook, and false for one that stands for none.
func coded(event string) (coding, bool) {
	switch event {
	case "SessionStart", interrupt:
		return idle, true
	case userPromptSubmit:
		return thinking, true
	case preToolUse, postToolUse, subagentStop:
		return working, true
	case postToolUseFailure, stopFailure:
		return failed, true
	case stop, "PostCompact":
		return attention, true
	case subagentStart:
		return juggling, true
	case "PreCompact":
		return sweeping, true
	case "Notification", "Elicitation", "PermissionRequest":
		return notification, true
	case "WorktreeCreate":
		return carrying, true
	case sessionEnd:
		return sleeping, true
	}
	return "", false
}

// Events that mean more than their state.
const (
	userPromptSubmit   = "UserPromptSubmit"
	preToolUse         = "PreToolUse"
	postToolUse        = "PostToolUse"
	postToolUseFailure = "PostToolUseFailure"
	stop               = "Stop"
	stopFailure        = "StopFailure"
	interrupt          = "Interrupt" // of Codex
	subagentStart      = "SubagentStart"
	subagentStop       = "SubagentStop"
	sessionEnd         = "SessionEnd"
)
