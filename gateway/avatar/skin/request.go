package skin

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// mostMessages bounds the messages of a chat request.
const mostMessages = 1000

// chatRequest is the body of POST /v1/chat/completions. Other fields of OpenAI's API are
// ignored.
type chatRequest struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	User     string    `json:"user"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`

	// Refused if they ask for what Perch does not do, because the client relies on them.
	Number *float64 `json:"n"`
	Format struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a text, or the texts of a list of parts.
type content struct {
	text  string
	other string // the type of a part that is not text
}

// UnmarshalJSON decodes a text or a list of parts.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("content is a text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" || p.Type == "input_text" {
			texts = append(texts, p.Text)
		} else {
			c.other = p.Type
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// question is a text for the agent.
type question struct {
	model  string
	words  agent.Vocabulary
	stream bool
	tools  bool // the stream includes the status of tools

	countUsage bool // the stream ends with the number of tokens

	talk    talk
	text    string
	history []agent.Exchange

	character string // chosen by the model's name; empty stands for the household's
	system    string // the client's system messages, if Options.System allows them
}

// talk is a conversation.
type talk struct {
	session      string    // under which it is published
	conversation string    // the agent's key for it
	robot        device.ID // whose talk was joined, or ""
	named        bool      // a later request may continue it
}

// usualModel is the name of the agent as a model. A slash and a vocabulary after it select the
// words for faces, because most clients let their owner set nothing but the model's name.
const usualModel = "perch"

// parse decodes a chat request. session is its X-Session-Id.
func (s *Server) parse(text []byte, session string) (question, error) {
	var r chatRequest
	if err := json.Unmarshal(text, &r); err != nil {
		return question{}, badChat("the body is not the JSON object that belongs here: %s", httpserver.WhyNotJSON(err))
	}
	switch {
	case r.Number != nil && *r.Number != 1:
		return question{}, badChat("n is 1: the mind gives one answer, not %v", *r.Number)
	case r.Format.Type != "" && r.Format.Type != "text":
		return question{},
			badChat("response_format %.40q is not held here: the mind answers in sentences to be spoken; leave it out, or ask a language model itself", r.Format.Type)
	}
	if len(r.Messages) > mostMessages {
		return question{}, badChat("messages has %d entries, more than %d; leave out the oldest", len(r.Messages), mostMessages)
	}
	q := question{model: r.Model, stream: r.Stream, countUsage: r.Options.Usage, words: s.o.Vocabulary}
	q.model = cmp.Or(q.model, usualModel)
	name, words, faces := strings.Cut(q.model, "/")
	if s.hasCharacter(name) {
		q.character = name
	}
	if faces && (name == usualModel || q.character != "") {
		if q.words = agent.Vocabulary(words); !s.o.Words.Knows(q.words) {
			return question{}, noModel(r.Model)
		}
	}
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role != "user" {
		last--
	}
	if last < 0 {
		return question{}, badChat("messages holds nothing that a user has said")
	}
	asked := r.Messages[last].Content
	if q.text = printable(asked.text); q.text == "" {
		if asked.other != "" {
			return question{}, badChat("the last message of the user holds no text, only %.40q; text is all that is read here", asked.other)
		}
		return question{}, badChat("the last message of the user is empty")
	}
	if len(q.text) > limit.Question {
		return question{}, badChat("the last message of the user has %d bytes, more than %d", len(q.text), limit.Question)
	}
	q.history = exchanges(r.Messages[:last])
	if s.o.System {
		q.system = plain.Clip(system(r.Messages), limit.Question)
	}
	t, err := s.talkOf(session, r.User)
	q.talk = t.with(q.character)
	return q, err
}

// with returns the talk with a character: each remembers its own conversation. A robot's talk
// stays that of the robot's character.
func (t talk) with(character string) talk {
	if character != "" && t.robot == "" {
		t.conversation = ofCharacter + character + "/" + t.conversation
	}
	return t
}

// ofCharacter is the prefix of a conversation with a character chosen by a skin.
const ofCharacter = "as:"

// system returns the text of the system messages.
func system(messages []message) string {
	var all []string
	for _, m := range messages {
		if m.Role == "system" || m.Role == "developer" {
			all = append(all, printable(m.Content.text))
		}
	}
	return strings.TrimSpace(strings.Join(all, "\n\n"))
}

// exchanges returns the history that a client sends, without system messages.
func exchanges(messages []message) []agent.Exchange {
	list := []agent.Exchange{}
	for _, m := range messages {
		text := printable(m.Content.text)
		n := len(list)
		switch {
		case text == "":
		case m.Role == "user":
			list = append(list, agent.Exchange{Heard: text})
		case m.Role == "assistant" && n > 0:
			list[n-1].Said = strings.TrimSpace(list[n-1].Said + " " + text)
		}
	}
	return list
}

// talkOf returns the talk of a session's name, or else of a user's name, or else a new one.
func (s *Server) talkOf(session, user string) (talk, error) {
	if len(session) > limit.Session || len(user) > limit.Session {
		return talk{}, badChat("X-Session-Id and user have at most %d bytes", limit.Session)
	}
	if robot, is := strings.CutPrefix(session, feed.OfRobot); is {
		joined, err := s.join(robot, s.o.Find)
		if err != nil {
			return talk{}, fault(fmt.Errorf("X-Session-Id: %w", err))
		}
		return joined, nil
	}
	if robot, is := strings.CutPrefix(session, agent.OfChat); is {
		// The name that a client was sent when it joined a robot's talk, or a chat that is
		// called like a robot.
		if joined, err := s.join(robot, device.ParseID); err == nil {
			return joined, nil
		}
	}
	name, named := strings.TrimPrefix(session, agent.OfChat), true
	switch {
	case name != "":
	case user != "":
		name = "user " + user // hashed because of the space: it may be an email address
	default:
		name, named = strings.ToLower(rand.Text()[:16]), false
	}
	name = feed.SafeName(name)
	return talk{session: agent.OfChat + name, conversation: "skin:" + name, named: named}, nil
}

// join returns the talk of a robot.
func (s *Server) join(robot string, find finder) (talk, error) {
	id, err := find(robot)
	if err == nil {
		_, err = s.o.Robots.Get(id)
	}
	return talk{session: agent.OfChat + string(id), conversation: string(id), robot: id, named: true}, err
}

// printable removes control characters except tabs and line ends, and invalid UTF-8.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}

func badChat(format string, args ...any) error {
	return &httpserver.Fault{Word: "bad_request", Sentence: fmt.Sprintf(format, args...), HTTP: http.StatusBadRequest}
}
