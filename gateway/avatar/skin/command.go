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

// mostSessions bounds the sessions of a filter.
const mostSessions = 64

// command is a command of a skin: subscribe, ping, ack or reply.
type command interface{ isCommand() }

// subscribe replaces the filter of a skin.
type subscribe struct{ filter feed.Filter }

type ping struct{}

// ack ends a notification.
type ack struct{ id string }

// reply is a person's yes or no to a question.
type reply struct {
	id    string
	allow bool
}

func (subscribe) isCommand() {}
func (ping) isCommand()      {}
func (ack) isCommand()       {}
func (reply) isCommand()     {}

// wrong is the error of a command, as it is sent to the skin.
type wrong struct{ code, message string }

func badCommand(format string, args ...any) *wrong {
	return &wrong{"bad_command", fmt.Sprintf(format, args...)}
}

// finder returns the robot with a MAC address or a name.
type finder func(robot string) (device.ID, error)

// body is the JSON of a command. Unknown keys are ignored.
type body struct {
	Type       string    `json:"type"`
	Events     *[]string `json:"events"`
	States     string    `json:"states"`
	Sessions   *[]string `json:"session_ids"`
	Vocabulary string    `json:"vocabulary"`
	ID         string    `json:"id"`
	Allow      *bool     `json:"allow"`
}

// parseCommand decodes a command. A command that is valid in part is returned with its error.
func parseCommand(text []byte, usual agent.Vocabulary, words *agent.Words, find finder) (command, *wrong) {
	var b body
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, badCommand("a command is a JSON object such as {\"type\":\"ping\"}: %s", httpserver.WhyNotJSON(err))
	}
	switch b.Type {
	case "ping":
		return ping{}, nil
	case "ack":
		if b.ID == "" || len(b.ID) > limit.Word {
			return nil, badCommand("ack needs the id of a notification, of at most %d bytes", limit.Word)
		}
		return ack{b.ID}, nil
	case "answer":
		// Only an explicit yes or no is an answer.
		if b.ID == "" || len(b.ID) > limit.ID || b.Allow == nil {
			return nil, badCommand("answer needs the question_id of a notification as id, and allow: true or false")
		}
		return reply{b.ID, *b.Allow}, nil
	case "subscribe":
		return b.subscribe(usual, words, find)
	}
	return nil, &wrong{"unknown_command", fmt.Sprintf("there is no command %.40q; there are subscribe, ping, ack and answer", b.Type)}
}

func (b body) subscribe(usual agent.Vocabulary, words *agent.Words, find finder) (command, *wrong) {
	f := feed.Filter{Kinds: feed.RFCKinds(), Words: usual}
	switch b.States {
	case "", "rfc":
	case "all":
		f.All = true
	default:
		return nil, badCommand("states is \"all\" for the ten, or left out for the seven of the RFC, not %.40q", b.States)
	}
	if v := agent.Vocabulary(b.Vocabulary); v != "" {
		if !words.Knows(v) {
			return nil, badCommand("there is no vocabulary %.40q; there are %s", v, vocabularies(words))
		}
		f.Words = v
	}
	if b.Sessions != nil {
		sessions, bad := sessionFilter(*b.Sessions, find)
		if bad != nil {
			return nil, bad
		}
		f.Sessions = sessions
	}
	if b.Events == nil {
		return subscribe{f}, nil
	}
	known := feed.AllKinds()
	var unknown *wrong
	f.Kinds = nil
	for _, kind := range *b.Events {
		switch {
		case !slices.Contains(known, kind):
			unknown = &wrong{"unknown_event", fmt.Sprintf("there are no events %.40q; there are %s", kind, strings.Join(known, ", "))}
		case !slices.Contains(f.Kinds, kind):
			f.Kinds = append(f.Kinds, kind)
		}
	}
	return subscribe{f}, unknown
}

// sessionFilter returns the sessions of a filter, never nil: an empty filter matches none.
func sessionFilter(names []string, find finder) ([]string, *wrong) {
	if len(names) > mostSessions {
		return nil, badCommand("session_ids may name %d sessions, not %d", mostSessions, len(names))
	}
	sessions := []string{}
	for _, name := range names {
		if robot, is := strings.CutPrefix(name, feed.OfRobot); is {
			id, err := find(robot)
			if err != nil {
				return nil, badCommand("session_ids: robot: is followed by the robot's MAC address or its name, not %.40q", robot)
			}
			name = feed.OfRobot + string(id)
		}
		if name == "" || len(name) > limit.Word {
			return nil, badCommand("a session's id has 1 to %d bytes", limit.Word)
		}
		sessions = append(sessions, name)
	}
	return sessions, nil
}

func vocabularies(words *agent.Words) string {
	var names []string
	for _, v := range words.Vocabularies() {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

type pongFrame struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"` // seconds since 1970
}

type errorFrame struct {
	Type    string `json:"type"`
	TS      int64  `json:"ts"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newPongFrame(at time.Time) *feed.Frame {
	return feed.NewAnswer("pong", pongFrame{"pong", at.Unix()})
}

func newErrorFrame(at time.Time, w *wrong) *feed.Frame {
	return feed.NewAnswer("error", errorFrame{"error", at.Unix(), w.code, w.message})
}
