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

// command is a valid command of a skin.
type command struct {
	kind   string      // subscribe, ping, ack or answer; "" for none
	filter feed.Filter // of subscribe
	id     string      // of the notification of ack, or the question of answer
	allow  bool        // of answer
}

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
		return command{}, badCommand("a command is a JSON object such as {\"type\":\"ping\"}: %s", httpserver.WhyNotJSON(err))
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
		// Only an explicit yes or no is an answer.
		if b.ID == "" || len(b.ID) > limit.ID || b.Allow == nil {
			return command{}, badCommand("answer needs the question_id of a notification as id, and allow: true or false")
		}
		return command{kind: b.Type, id: b.ID, allow: *b.Allow}, nil
	case "subscribe":
		return b.subscribe(usual, words, find)
	}
	return command{}, &wrong{"unknown_command", fmt.Sprintf("there is no command %.40q; there are subscribe, ping, ack and answer", b.Type)}
}

func (b body) subscribe(usual agent.Vocabulary, words *agent.Words, find finder) (command, *wrong) {
	f := feed.Filter{Kinds: feed.RFCKinds(), Words: usual}
	switch b.States {
	case "", "rfc":
	case "all":
		f.AllStates = true
	default:
		return command{}, badCommand("states is \"all\" for the ten, or left out for the seven of the RFC, not %.40q", b.States)
	}
	if v := agent.Vocabulary(b.Vocabulary); v != "" {
		if !words.Knows(v) {
			return command{}, badCommand("there is no vocabulary %.40q; there are %s", v, vocabularies(words))
		}
		f.Words = v
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
	return command{kind: b.Type, filter: f}, unknown
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
	return feed.NewReply("pong", pongFrame{"pong", at.Unix()})
}

func newErrorFrame(at time.Time, w *wrong) *feed.Frame {
	return feed.NewReply("error", errorFrame{"error", at.Unix(), w.code, w.message})
}
