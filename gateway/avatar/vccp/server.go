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

const instructions = `You move a character. Call register-agent first: with the id or the name of a robot you get that robot; without one, a character comes by WebSocket under your session id. ` +
	`get-capability tells what it can do by examples, play-action has it do so, get-perception tells what it senses. ` +
	`The tools whose name begins with a robot's id are that robot's own, and need no registration.`

// Sentences of the reference server, which clients may compare.
const (
	saidRegistered = "Agentは正常に登録されました。 Session ID: "
	saidAlready    = "agentが既に登録されています Session ID: "
	saidPlayed     = "アクションを実行しました。"
	saidInvalid    = "無効なスキーマ: "
	saidFailed     = "アクションの実行に失敗しました: "
)

// addTools adds the four tools of the protocol.
func (s *Server) addTools() {
	add := func(name, description, properties string, run func(context.Context, *mcp.ServerSession, json.RawMessage) (string, error)) {
		s.server.AddTool(&mcp.Tool{Name: name, Description: description,
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return answer(run(ctx, r.Session, r.Params.Arguments)), nil
			})
	}
	add("register-agent",
		"Registers you as an agent, and returns your session id. Without robot, a character connects to /vccp/ and that id by WebSocket; with it, you are given that robot.",
		`"robot":{"type":"string","description":"the name of a robot, or its id in any spelling of its MAC address"}`, s.registerAgent)
	add("get-capability", "The actions that your character can perform, by example, as JSON. null while there is none.", "", s.getCapability)
	add("get-perception", "What your character senses: the latest of one category, or an array of the latest of each.",
		`"category":{"type":"string","description":"of what it senses; without it all are told"}`, s.getPerception)
	add("play-action", "Has your character perform an action, as get-capability shows them.",
		`"action":{"type":"object","description":"{\"type\":\"action\",\"category\":...,\"timestamp\":ISO 8601,\"data\":{...}}"}`, s.playAction)
}

// answer returns a tool's result: a text, or the text of an error.
func answer(text string, err error) *mcp.CallToolResult {
	if err != nil {
		text = err.Error()
	}
	return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func (s *Server) registerAgent(_ context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	// With a misspelled robot the model would wait for a character that never connects.
	var named map[string]json.RawMessage
	if err := decode(args, &named); err != nil {
		return "", err
	}
	for name := range named {
		if !strings.EqualFold(name, "robot") {
			return "", fmt.Errorf("%sregister-agent has no argument %q; it takes robot, the id of one, or nothing", saidInvalid,
				plain.Clip(name, 40))
		}
	}
	var a struct {
		Robot string `json:"robot"`
	}
	if err := decode(args, &a); err != nil {
		return "", err
	}
	var robot device.ID
	if a.Robot != "" {
		id, err := s.o.Find(a.Robot)
		if err != nil || !s.o.Robots.Trusts(id) {
			return "", fmt.Errorf("there is no robot %q that was adopted by name; those there are: %s", plain.Clip(a.Robot, 40), s.names())
		}
		robot = id
	}
	already, first, err := s.register(session.ID(), robot)
	switch {
	case err != nil:
		return "", err
	case already:
		return saidAlready + session.ID(), nil
	case first:
		s.waiting.Go(func() {
			_ = session.Wait() // its error does not matter
			s.drop(session.ID())
		})
	}
	return saidRegistered + session.ID(), nil
}

// names returns the robots for an error.
func (s *Server) names() string {
	var names []string
	for _, id := range s.adopted() {
		names = append(names, string(id))
	}
	return plain.Clip(cmp.Or(strings.Join(names, " "), "none"), 500)
}

func (s *Server) getCapability(_ context.Context, session *mcp.ServerSession, _ json.RawMessage) (string, error) {
	if body, _ := s.body(session.ID()); body != nil {
		if can := body.capability(); can != nil {
			return string(can), nil
		}
	}
	return "null", nil
}

func (s *Server) getPerception(_ context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	var a struct {
		Category string `json:"category"`
	}
	if err := decode(args, &a); err != nil {
		return "", err
	}
	text, err := json.Marshal(s.perceived(session.ID(), a.Category))
	if err != nil {
		return "", fmt.Errorf("encode what is sensed: %w", err)
	}
	return string(text), nil
}

func (s *Server) playAction(ctx context.Context, session *mcp.ServerSession, args json.RawMessage) (string, error) {
	var a struct {
		Action json.RawMessage `json:"action"`
	}
	if err := decode(args, &a); err != nil {
		return "", err
	}
	// Some models encode the object as a string.
	if text := ""; len(a.Action) > 0 && a.Action[0] == '"' && json.Unmarshal(a.Action, &text) == nil {
		a.Action = json.RawMessage(text)
	}
	if len(a.Action) == 0 {
		return "", errors.New(saidInvalid + "action is needed")
	}
	m, err := parseMessage(a.Action, time.Now())
	if err == nil && m.Type != typeAction {
		err = errors.New("type is action, for nothing else is played")
	}
	if err != nil {
		return "", errors.New(saidInvalid + err.Error())
	}
	if err := s.play(ctx, session.ID(), m); err != nil {
		return "", errors.New(saidFailed + err.Error())
	}
	return saidPlayed, nil
}

// decode decodes a tool's arguments. Unknown ones are ignored.
func decode(args json.RawMessage, into any) error {
	if args = bytes.TrimSpace(args); len(args) == 0 || string(args) == "null" {
		return nil
	}
	if err := json.Unmarshal(args, into); err != nil {
		return errors.New(saidInvalid + "the arguments are of another shape: " + httpserver.WhyNotJSON(err))
	}
	return nil
}
