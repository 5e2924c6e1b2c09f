package skin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
)

// maxSessions is the maximum number of sessions in a filter.
const maxSessions = 64

// command is a decoded command of a skin.
type command struct {
	kind   string      // subscribe, ping, ack or answer; empty if the command is invalid
	filter feed.Filter // for subscribe
	id     string      // ID of the notification to acknowledge, or of the question to answer
	allow  bool        // for answer: whether the answer is yes
}

// commandError is the error of a command. Both fields are sent to the skin.
type commandError struct{ code, message string }

// badCommand returns an error about the syntax of a command.
func badCommand(format string, args ...any) *commandError {
	return &commandError{"bad_command", fmt.Sprintf(format, args...)}
}

// findRobot returns the ID of the robot with a MAC address or a name.
type findRobot func(robot string) (device.ID, error)

// commandBody is the JSON of a command. Unknown keys are ignored.
type commandBody struct {
	Type       string    `json:"type"`
	Events     *[]string `json:"events"`
	States     string    `json:"states"`
	Sessions   *[]string `json:"session_ids"`
	Vocabulary string    `json:"vocabulary"`
	ID         string    `json:"id"`
	Allow      *bool     `json:"allow"`
}

// parseCommand decodes a command. vocabulary applies if the command does not name one. If some events
// in the command are unknown, parseCommand returns an error and also a valid command without them.
func parseCommand(text []byte, vocabulary agent.Vocabulary, words *agent.Words, find findRobot) (command, *commandError) {
	var b commandBody
	if err := json.Unmarshal(text, &b); err != nil {
		return command{}, badCommand("a command must be a JSON object such as {\"type\":\"ping\"}: %s", httpserver.WhyNotJSON(err))
	}
	switch b.Type {
	case "ping":
		return command{kind: b.Type}, nil
	case "ack":
		if b.ID == "" || len(b.ID) > limit.Word {
			return command{}, badCommand("ack needs the id of a notification, of at most %d bytes", limit.Word)
		}
		return command{kind: b.Type, id: b.ID}, nil
	case "answer":
		if b.ID == "" || len(b.ID) > limit.ID || b.Allow == nil {
			return command{}, badCommand("answer needs the question_id of a notification as id, and allow: true or false")
		}
		return command{kind: b.Type, id: b.ID, allow: *b.Allow}, nil
	case "subscribe":
		return b.parseSubscribe(vocabulary, words, find)
	}
	return command{}, &commandError{"unknown_command", fmt.Sprintf("there is no command %.40q; use subscribe, ping, ack or answer", b.Type)}
}

// parseSubscribe is like parseCommand for a subscribe command.
func (b commandBody) parseSubscribe(vocabulary agent.Vocabulary, words *agent.Words, find findRobot) (command, *commandError) {
	f := feed.Filter{Kinds: feed.RFCKinds(), Vocabulary: vocabulary}
	switch b.States {
	case "", "rfc":
	case "all":
		f.AllStates = true
	default:
		return command{}, badCommand("states must be \"all\" for all ten states, or omitted for the RFC's seven, not %.40q", b.States)
	}
	if v := agent.Vocabulary(b.Vocabulary); v != "" {
		if !words.Knows(v) {
			return command{}, badCommand("there is no vocabulary %.40q; use one of %s", v, vocabularyNames(words))
		}
		f.Vocabulary = v
	}
	if b.Sessions != nil {
		sessions, bad := sessionFilter(*b.Sessions, find)
		if bad != nil {
			return command{}, bad
		}
		f.Sessions = sessions
	}
	if b.Events == nil {
		return command{kind: b.Type, filter: f}, nil
	}
	known := feed.AllKinds()
	var unknown *commandError
	f.Kinds = nil
	for _, kind := range *b.Events {
		switch {
		case !slices.Contains(known, kind):
			unknown = &commandError{"unknown_event", fmt.Sprintf("there are no events %.40q; use some of %s", kind, strings.Join(known, ", "))}
		case !slices.Contains(f.Kinds, kind):
			f.Kinds = append(f.Kinds, kind)
		}
	}
	return command{kind: b.Type, filter: f}, unknown
}

// sessionFilter converts session_ids to feed.Filter.Sessions. The result is not nil, because a
// nil Sessions would match all sessions.
func sessionFilter(names []string, find findRobot) ([]string, *commandError) {
	if len(names) > maxSessions {
		return nil, badCommand("session_ids may contain at most %d sessions, not %d", maxSessions, len(names))
	}
	sessions := []string{}
	for _, name := range names {
		if robot, ok := strings.CutPrefix(name, feed.RobotPrefix); ok {
			id, err := find(robot)
			if err != nil {
				return nil, badCommand("session_ids: robot: must be followed by a robot's MAC address or name, not %.40q", robot)
			}
			name = feed.RobotPrefix + string(id)
		}
		if name == "" || len(name) > limit.Word {
			return nil, badCommand("a session id must have 1 to %d bytes", limit.Word)
		}
		sessions = append(sessions, name)
	}
	return sessions, nil
}

// vocabularyNames returns the names of all vocabularies, separated by commas.
func vocabularyNames(words *agent.Words) string {
	var names []string
	for _, v := range words.Vocabularies() {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

// pongFrame replies to the command ping.
type pongFrame struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"` // seconds since 1970
}

// errorFrame reports the error of a command.
type errorFrame struct {
	Type    string `json:"type"`
	TS      int64  `json:"ts"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newPongFrame(at time.Time) *feed.Frame {
	return feed.NewReply("pong", pongFrame{"pong", at.Unix()})
}

func newErrorFrame(at time.Time, e *commandError) *feed.Frame {
	return feed.NewReply("error", errorFrame{"error", at.Unix(), e.code, e.message})
}
