package vccp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/plain"
)

// instructions tell a model how to use the server.
const instructions = `You control a character. Call register-agent first: with the id or the name of a robot you get that robot; without one, a character connects by WebSocket with your session id. ` +
	`get-capability returns examples of what the character can do, play-action has it perform an action, get-perception returns what it senses. ` +
	`The tools whose name begins with a robot's id are that robot's own, and need no registration.`

// Texts of the reference server, VCCP's own implementation. Clients may look for these texts.
const (
	textRegistered = "Agentは正常に登録されました。 Session ID: "
	textAlready    = "agentが既に登録されています Session ID: "
	textPlayed     = "アクションを実行しました。"
	textInvalid    = "無効なスキーマ: "
	textFailed     = "アクションの実行に失敗しました: "
)

// addTools adds the four tools of the protocol.
func (s *Server) addTools() {
	add := func(name, description, properties string, run func(context.Context, *mcp.ServerSession, json.RawMessage) (string, error)) {
		s.server.AddTool(&mcp.Tool{Name: name, Description: description,
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return newResult(run(ctx, r.Session, r.Params.Arguments)), nil
			})
	}
	add("register-agent",
		"Registers you as an agent, and returns your session id. Without robot, your character is a program that connects by WebSocket to /vccp/ followed by that id; with robot, it is that robot.",
		`"robot":{"type":"string","description":"the name of a robot, or its id in any spelling of its MAC address"}`, s.registerAgent)
	add("get-capability", "Returns examples of the actions that your character can perform, as JSON, or null if no character is connected.", "", s.getCapability)
	add("get-perception", "Returns what your character senses: the latest perception of one category, or an array with the latest of each category.",
		`"category":{"type":"string","description":"the category; omit it for all categories"}`, s.getPerception)
	add("play-action", "Has your character perform an action. get-capability returns examples.",
		`"action":{"type":"object","description":"{\"type\":\"action\",\"category\":...,\"timestamp\":ISO 8601,\"data\":{...}}"}`, s.playAction)
}

// newResult returns the result of a tool: text, or the text of err if err is not nil.
func newResult(text string, err error) *mcp.CallToolResult {
	if err != nil {
		text = err.Error()
	}
	return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// registerAgent implements the tool register-agent.
func (s *Server) registerAgent(_ context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	// If a misspelled argument were ignored, the model would wait for a character that never
	// connects.
	var byName map[string]json.RawMessage
	if err := decodeArguments(args, &byName); err != nil {
		return "", err
	}
	for name := range byName {
		if !strings.EqualFold(name, "robot") {
			return "", fmt.Errorf("%sregister-agent has no argument %q; its only argument is robot, which is optional", textInvalid,
				plain.Clip(name, 40))
		}
	}
	var a struct {
		Robot string `json:"robot"`
	}
	if err := decodeArguments(args, &a); err != nil {
		return "", err
	}
	var robot device.ID
	if a.Robot != "" {
		id, err := s.o.Find(a.Robot)
		if err != nil || !s.o.Robots.Trusts(id) {
			return "", fmt.Errorf("no robot %q was adopted by name; the adopted robots are: %s", plain.Clip(a.Robot, 40), s.adoptedIDs())
		}
		robot = id
	}
	already, first, err := s.register(session.ID(), robot)
	switch {
	case err != nil:
		return "", err
	case already:
		return textAlready + session.ID(), nil
	case first:
		s.closing.Go(func() {
			_ = session.Wait() // the error does not matter
			s.unregister(session.ID())
		})
	}
	return textRegistered + session.ID(), nil
}

// adoptedIDs returns the IDs of the adopted robots for an error message: separated by spaces, or "none".
func (s *Server) adoptedIDs() string {
	var names []string
	for _, id := range s.adopted() {
		names = append(names, string(id))
	}
	return plain.Clip(cmp.Or(strings.Join(names, " "), "none"), 500)
}

// getCapability implements the tool get-capability.
func (s *Server) getCapability(_ context.Context, session *mcp.ServerSession, _ json.RawMessage) (string, error) {
	if c, _ := s.characterOf(session.ID()); c != nil {
		if data := c.capability(); data != nil {
			return string(data), nil
		}
	}
	return "null", nil
}

// getPerception implements the tool get-perception.
func (s *Server) getPerception(_ context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	var a struct {
		Category string `json:"category"`
	}
	if err := decodeArguments(args, &a); err != nil {
		return "", err
	}
	text, err := json.Marshal(s.perceptions(session.ID(), a.Category))
	if err != nil {
		return "", fmt.Errorf("encode perceptions: %w", err)
	}
	return string(text), nil
}

// playAction implements the tool play-action.
func (s *Server) playAction(ctx context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	var a struct {
		Action json.RawMessage `json:"action"`
	}
	if err := decodeArguments(args, &a); err != nil {
		return "", err
	}
	// Some models encode the object as a string.
	if text := ""; len(a.Action) > 0 && a.Action[0] == '"' && json.Unmarshal(a.Action, &text) == nil {
		a.Action = json.RawMessage(text)
	}
	if len(a.Action) == 0 {
		return "", errors.New(textInvalid + "action is missing")
	}
	m, err := parseMessage(a.Action, time.Now())
	if err == nil && m.Type != typeAction {
		err = errors.New("type must be action")
	}
	if err != nil {
		return "", errors.New(textInvalid + err.Error())
	}
	if err := s.play(ctx, session.ID(), m); err != nil {
		return "", errors.New(textFailed + err.Error())
	}
	return textPlayed, nil
}

// decodeArguments decodes a tool's arguments. It ignores unknown arguments.
func decodeArguments(args json.RawMessage, into any) error {
	if args = bytes.TrimSpace(args); len(args) == 0 || string(args) == "null" {
		return nil
	}
	if err := json.Unmarshal(args, into); err != nil {
		return errors.New(textInvalid + "the arguments do not match the schema: " + httpserver.WhyNotJSON(err))
	}
	return nil
}
