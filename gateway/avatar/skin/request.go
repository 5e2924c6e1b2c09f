package skin

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// Bounds of a chat request.
const mostMessages = 1000 //

// chatRequest is the body of POST /v1/chat/completions, as far as it is of use
// here. Everything else OpenAI knows is left alone.
type chatRequest struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	User     string    `json:"user"`

	// What would have to be held, or refused: a client takes the answer for that.
	Number *float64 `json:"n"`
	Format struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a text, or parts of which some are text.
type content struct {
	text  string
	other string // the type of a part of another kind
}

// UnmarshalJSON reads both of OpenAI's shapes.
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

// question is a request to the agent.
type question struct {
	model   string
	words   agent.Vocabulary
	stream  bool
	tools   bool // the stream tells what the agent works with
	talk    talk
	text    string
	history []agent.Exchange

	character string // that the model's name chooses; empty is the household's
	system    string // what the client says that the agent is; empty unless that is heard
}

// talk is the conversation that a question belongs to.
type talk struct {
	session      string    // as skins see it
	conversation string    // its key at the agent
	robot        device.ID // of the conversation, where a skin has joined it
	kept         bool      // it has a name, and goes on
}

// usualModel is the name of the agent as a model. With a slash and a vocabulary
// after it, faces are called by that one's words: most clients let their owner
// set a model's name and nothing else.
const usualModel = "perch"

// parse reads a chat request. session is the X-Session-Id that came with it.
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
	q := question{model: r.Model, stream: r.Stream, words: s.o.Vocabulary}
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
	if q.text = typed(asked.text); q.text == "" {
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

// with is the talk as a character has it: each remembers its own. A robot's is that of
// the robot's character, whoever is asked for.
func (t talk) with(character string) talk {
	if character != "" && t.robot == "" {
		t.conversation = ofCharacter + character + "/" + t.conversation
	}
	return t
}

// ofCharacter begins the key of a conversation with a character of the skin's choice.
const ofCharacter = "as:"

// system is what the client says that the agent is.
func system(messages []message) string {
	var all []string
	for _, m := range messages {
		if m.Role == "system" || m.Role == "developer" {
			all = append(all, typed(m.Content.text))
		}
	}
	return strings.TrimSpace(strings.Join(all, "\n\n"))
}

// exchanges are the turns that a client remembers. The agent's character is the
// owner's to set: system messages are not among them.
func exchanges(messages []message) []agent.Exchange {
	list := []agent.Exchange{}
	for _, m := range messages {
		text := typed(m.Content.text)
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

// fit is a name that can be shown as it is.
var fit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:-]{1,48}$`) })

// talkOf is the conversation that a session's name, or else a user's, leads to.
// A client with neither begins a new one, and is sent its name.
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
		// A chat of its own may be called as a robot is.
		if joined, err := s.join(robot, device.ParseID); err == nil {
			return joined, nil // it was sent this name when it joined
		}
	}
	name, kept := strings.TrimPrefix(session, agent.OfChat), true
	switch {
	case name != "":
	case user != "":
		name = "user " + user // a name with a space in it is hashed: it may be an address
	default:
		name, kept = strings.ToLower(rand.Text()[:16]), false
	}
	if !fit().MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:12])
	}
	return talk{session: agent.OfChat + name, conversation: "skin:" + name, kept: kept}, nil
}

// join is the talk of a robot.
func (s *Server) join(robot string, find finder) (talk, error) {
	id, err := find(robot)
	if err == nil {
		_, err = s.o.Robots.Get(id)
	}
	return talk{session: agent.OfChat + string(id), conversation: string(id), robot: id, kept: true}, err
}

// typed is a text without what no keyboard types. Its lines stay.
func typed(text string) string {
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
