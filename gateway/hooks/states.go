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

// traits are what a state brings with it.
type traits struct {
	priority int           // the highest shows where several sessions do different things; below zero is no state
	lasts    time.Duration // before it passes by itself, as in clawd-on-desk; 0 is one that stays
	face     agent.Emotion // of a robot; they differ also where a robot knows eight
}

func (c coding) traits() traits {
	confident := agent.Emotion{Name: "confident", Emoji: "😏"}
	switch c {
	case failed:
		return traits{8, 5 * time.Second, agent.Emotion{Name: "sad", Emoji: "😢"}}
	case notification:
		return traits{7, 2500 * time.Millisecond, agent.Emotion{Name: "confused", Emoji: "🙄"}}
	case sweeping:
		return traits{6, 5 * time.Minute, confident} // the next report ends it before
	case attention:
		return traits{5, 4 * time.Second, agent.Emotion{Name: "happy", Emoji: "😊"}}
	case carrying:
		return traits{4, 3 * time.Second, confident}
	case juggling:
		return traits{4, 0, agent.Emotion{Name: "silly", Emoji: "😜"}}
	case working:
		return traits{3, 0, confident}
	case thinking:
		return traits{2, 0, agent.Emotion{Name: "thinking", Emoji: "🤔"}}
	case idle:
		return traits{1, 0, agent.Neutral}
	case sleeping:
		return traits{0, 0, agent.Neutral} // sleepy means good night, which only the robot's own talk may show
	}
	return traits{-1, 0, agent.Neutral}
}

// shown is the word of our own vocabulary.
func (c coding) shown() agent.Shown {
	if c == sweeping || c == carrying {
		return agent.Working
	}
	return agent.Shown(c)
}

// coded is the state that an event of Claude Code's stands for, by its name in
// the hook, and empty for one that stands for none.
func coded(event string) coding {
	switch event {
	case "SessionStart", interrupt:
		return idle
	case userPromptSubmit:
		return thinking
	case preToolUse, postToolUse, subagentStop:
		return working
	case postToolUseFailure, stopFailure:
		return failed
	case stop, "PostCompact":
		return attention
	case subagentStart:
		return juggling
	case "PreCompact":
		return sweeping
	case "Notification", "Elicitation", "PermissionRequest":
		return notification
	case "WorktreeCreate":
		return carrying
	case sessionEnd:
		return sleeping
	}
	return ""
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
