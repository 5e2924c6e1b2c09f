package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// escalation is the body of POST /api/voice/escalate: a tool call by the small model of another voice server.
type escalation struct {
	Tool string `json:"tool"`
	Args struct {
		Query    string `json:"query"`
		Question string `json:"question"`
		Name     string `json:"name"`
	} `json:"args"`
	SessionID string `json:"session_id"`
}

// escalationResult is the response to an escalation.
type escalationResult struct {
	Result string `json:"result"`
}

// escalate runs a tool, waits for its result, and shortens the result to limit.Line characters.
func (a *API) escalate(ctx context.Context, body []byte) (escalationResult, error) {
	var e escalation
	if err := httpserver.Decode(body, &e); err != nil {
		return escalationResult{}, err
	}
	timeout := a.current.Load().ShortTimeout
	var run func(context.Context, escalation) (string, error)
	switch e.Tool {
	case "memory_lookup":
		run = a.memoryLookup
	case "think_hard":
		run, timeout = a.thinkHard, a.current.Load().LongTimeout
	case "take_photo":
		run = a.takePhoto
	case "play_song":
		run = a.playSong
	case "":
		return escalationResult{}, httpserver.BadBody("tool is needed")
	default:
		return escalationResult{}, &httpserver.Fault{Word: "unknown_tool", HTTP: http.StatusBadRequest,
			Sentence: "the tools are memory_lookup, think_hard, take_photo and play_song"}
	}
	text, err := withTimeout(ctx, timeout, e.Tool, func(ctx context.Context) (string, error) { return run(ctx, e) })
	return escalationResult{truncate(text, limit.Line)}, err
}

// memoryLookup returns the memories and turns that match a query.
func (a *API) memoryLookup(_ context.Context, e escalation) (string, error) {
	query, err := requiredText("args.query", e.Args.Query, limit.Question)
	if err != nil {
		return "", err
	}
	return a.lookUp(query), a.o.Memory.Err()
}

// thinkHard returns the reply of the first model in Options.Deep that works, or of the agent if Deep is empty.
func (a *API) thinkHard(ctx context.Context, e escalation) (string, error) {
	question, err := requiredText("args.question", cmp.Or(e.Args.Question, e.Args.Query), limit.Question)
	if err != nil {
		return "", err
	}
	if len(a.current.Load().Deep) == 0 {
		// The exchange is not added to the conversation, so that a question does not influence later answers.
		reply, err := a.askAgent(ctx, &agent.Turn{Conversation: agent.ConversationOf("bridge", "think_hard"), Text: question,
			Language: a.language(e.SessionID)})
		return reply.Text, err
	}
	text, err := thinker.AskModels(ctx, a.current.Load().Deep, question)
	if err == nil || ctx.Err() != nil {
		return text, err
	}
	a.o.Logger.Warn("no deep model answered", "err", err)
	return "", &httpserver.Fault{Word: "no_brain", Sentence: "none of the models in brain_deep has replied; the log says why",
		HTTP: http.StatusServiceUnavailable}
}

// maxQuestion is the maximum length of a question about a picture, in bytes.
const maxQuestion = 300

// takePhoto takes a picture with the robot of the session, or with the first connected robot, and returns its
// description.
func (a *API) takePhoto(ctx context.Context, e escalation) (string, error) {
	id, err := a.sessionRobot(e.SessionID)
	if err != nil {
		return "", err
	}
	return a.describePicture(ctx, id, plain.Clip(cmp.Or(plain.Line(e.Args.Question), plain.Line(e.Args.Query), "What do you see?"), maxQuestion))
}

// sessionRobot returns the robot of a session, or the first connected robot if the session has no known robot.
func (a *API) sessionRobot(session string) (device.ID, error) {
	if id, known := a.robotOf(session); known {
		return id, nil
	}
	return a.robot("")
}

// describePicture takes a picture with a robot and returns the description, which answers the question.
func (a *API) describePicture(ctx context.Context, id device.ID, question string) (string, error) {
	result, err := a.callTool(ctx, id, "take_photo", map[string]any{"question": question})
	if err == nil && result.Text == "" && len(result.Pictures) > 0 {
		return "A picture was taken, but no model has described it.", nil
	}
	return photoText(result.Text), err
}

// photoText returns the description in the result of a camera tool, which is a plain text, or a JSON object with the key
// response or description.
func photoText(text string) string {
	var object struct{ Response, Description string }
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &object) == nil {
		text = cmp.Or(object.Response, object.Description, text)
	}
	return text
}

// callTool calls the robot's first tool that has the given name, alone or after a prefix such as "self.camera.", which
// differs between boards.
func (a *API) callTool(ctx context.Context, id device.ID, name string, arguments map[string]any) (device.Result, error) {
	for _, t := range a.o.Talk.Tools(id) {
		if t.Name == name || strings.HasSuffix(t.Name, "."+name) {
			return a.o.Talk.Call(ctx, id, t.Name, arguments)
		}
	}
	return device.Result{}, &httpserver.Fault{Word: "unknown_tool", Sentence: "this robot's firmware has no tool " + name, HTTP: http.StatusNotFound}
}
