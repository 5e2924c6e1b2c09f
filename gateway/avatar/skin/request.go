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

// maxMessages is the maximum number of messages in a chat request.
const maxMessages = 1000

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

	// An unsupported value of these fields is an error, because the client relies on its effect.
	Number *float64 `json:"n"`
	Format struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

// message is a message of a chat request.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the content of a message: a text, or a list of parts whose texts are joined.
type content struct {
	text  string
	other string // type of the last part that is not text, or ""
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
		return errors.New("content must be a text or a list of parts")
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

// question is a text for the agent, and how to send the reply.
type question struct {
	model        string
	words        agent.Vocabulary // vocabulary of the tags in the reply
	stream       bool             // whether to stream the reply
	tools        bool             // whether the stream includes the status of tools
	countUsage   bool             // whether the stream ends with the number of tokens
	conversation conversation
	text         string
	history      []agent.Exchange // exchanges that the client has sent before the question

	character string // name of the character that replies; empty for the default character
	system    string // the client's system messages; empty unless Options.System is set
}

// conversation identifies a conversation with the agent.
type conversation struct {
	session string    // session ID in the published events
	key     string    // name of the conversation in an agent.Turn
	robot   device.ID // the robot whose conversation the client has joined, or ""
	named   bool      // whether a later request can continue the conversation
}

// agentModel is the name of the model for the agent with the default character. A slash and a vocabulary
// for the tags may follow. The vocabulary is a part of the name because most clients let their users set
// only the name of the model.
const agentModel = "perch"

// parse decodes a chat request. session is the value of X-Session-Id.
func (s *Server) parse(text []byte, session string) (question, error) {
	var r chatRequest
	if err := json.Unmarshal(text, &r); err != nil {
		return question{}, badChat("the body is not a JSON object with messages: %s", httpserver.WhyNotJSON(err))
	}
	switch {
	case r.Number != nil && *r.Number != 1:
		return question{}, badChat("n must be 1, not %v: the agent gives one reply", *r.Number)
	case r.Format.Type != "" && r.Format.Type != "text":
		return question{},
			badChat("response_format %.40q is not supported: the agent replies in sentences to be spoken; omit response_format, or use a language model directly", r.Format.Type)
	}
	if len(r.Messages) > maxMessages {
		return question{}, badChat("messages has %d entries, more than %d; omit the oldest", len(r.Messages), maxMessages)
	}
	q := question{model: r.Model, stream: r.Stream, countUsage: r.Options.Usage, words: s.o.Vocabulary}
	q.model = cmp.Or(q.model, agentModel)
	name, words, hasWords := strings.Cut(q.model, "/")
	if s.hasCharacter(name) {
		q.character = name
	}
	if hasWords && (name == agentModel || q.character != "") {
		if q.words = agent.Vocabulary(words); !s.o.Words.Knows(q.words) {
			return question{}, noModel(r.Model)
		}
	}
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role != "user" {
		last--
	}
	if last < 0 {
		return question{}, badChat("messages has no message with the role user")
	}
	body := r.Messages[last].Content
	if q.text = printable(body.text); q.text == "" {
		if body.other != "" {
			return question{}, badChat("the last message of the user has no text, only %.40q; only text is supported", body.other)
		}
		return question{}, badChat("the last message of the user is empty")
	}
	if len(q.text) > limit.Question {
		return question{}, badChat("the last message of the user has %d bytes, more than %d", len(q.text), limit.Question)
	}
	q.history = exchanges(r.Messages[:last])
	if s.o.System {
		q.system = plain.Clip(systemText(r.Messages), limit.Question)
	}
	c, err := s.findConversation(session, r.User)
	q.conversation = c.with(q.character)
	return q, err
}

// with returns the conversation with a character: each character has a separate conversation under
// the same name. A robot's conversation is always with the robot's own character.
func (c conversation) with(character string) conversation {
	if character != "" && c.robot == "" {
		c.key = characterPrefix + character + "/" + c.key
	}
	return c
}

// characterPrefix is the prefix of conversation.key for a character that a skin has chosen.
const characterPrefix = "as:"

// systemText returns the text of the system messages.
func systemText(messages []message) string {
	var texts []string
	for _, m := range messages {
		if m.Role == "system" || m.Role == "developer" {
			texts = append(texts, printable(m.Content.text))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// exchanges converts the messages of a client to exchanges. It skips messages without text, messages of other roles than
// user and assistant, and replies before the first message of the user.
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

// findConversation returns the conversation that session, the value of X-Session-Id, names. If session is
// empty, it returns the conversation of the user. If both are empty, it returns a new conversation.
func (s *Server) findConversation(session, user string) (conversation, error) {
	if len(session) > limit.Session || len(user) > limit.Session {
		return conversation{}, badChat("X-Session-Id and user must have at most %d bytes", limit.Session)
	}
	if robot, ok := strings.CutPrefix(session, feed.RobotPrefix); ok {
		joined, err := s.robotConversation(robot, s.o.Find)
		if err != nil {
			return conversation{}, fault(fmt.Errorf("X-Session-Id: %w", err))
		}
		return joined, nil
	}
	if robot, ok := strings.CutPrefix(session, agent.ChatPrefix); ok {
		// A client may send back the session ID of a robot's conversation that it has joined.
		if joined, err := s.robotConversation(robot, device.ParseID); err == nil {
			return joined, nil
		}
	}
	name, named := strings.TrimPrefix(session, agent.ChatPrefix), true
	switch {
	case name != "":
	case user != "":
		name = "user " + user // SafeName hashes a name with a space: user may be an email address, which must not be shown
	default:
		name, named = strings.ToLower(rand.Text()[:16]), false
	}
	name = feed.SafeName(name)
	return conversation{session: agent.ChatPrefix + name, key: "skin:" + name, named: named}, nil
}

// robotConversation returns the conversation of a registered robot.
func (s *Server) robotConversation(robot string, find findRobot) (conversation, error) {
	id, err := find(robot)
	if err == nil {
		_, err = s.o.Robots.Get(id)
	}
	return conversation{session: agent.ChatPrefix + string(id), key: string(id), robot: id, named: true}, err
}

// printable returns text without invalid UTF-8, surrounding white space, and control characters
// other than tabs and line feeds.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}

// badChat returns an error about a chat request.
func badChat(format string, args ...any) error {
	return &httpserver.Fault{Word: "bad_request", Sentence: fmt.Sprintf(format, args...), HTTP: http.StatusBadRequest}
}
