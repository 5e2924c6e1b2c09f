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

// escalation is the body of POST /api/voice/escalate: a tool that a small
// model elsewhere has called.
type escalation struct {
	Tool string `json:"tool"`
	Args struct {
		Query    string `json:"query"`
		Question string `json:"question"`
		Name     string `json:"name"`
	} `json:"args"`
	SessionID string `json:"session_id"`
}

// escalated is what comes back of it.
type escalated struct {
	Result string `json:"result"`
}

// escalate runs a tool and waits for its result.
func (d *API) escalate(ctx context.Context, body []byte) (escalated, error) {
	var e escalation
	if err := httpserver.Decode(body, &e); err != nil {
		return escalated{}, err
	}
	most := d.current.Load().Short
	var run func(context.Context, escalation) (string, error)
	switch e.Tool {
	case "memory_lookup":
		run = d.memoryLookup
	case "think_hard":
		run, most = d.thinkHard, d.current.Load().Long
	case "take_photo":
		run = d.takePhoto
	case "play_song":
		run = d.playSong
	case "":
		return escalated{}, httpserver.BadBody("tool is needed")
	default:
		return escalated{}, &httpserver.Fault{Word: "unknown_tool", HTTP: http.StatusBadRequest,
			Sentence: "the tools are memory_lookup, think_hard, take_photo and play_song"}
	}
	var text string
	err := within(ctx, most, e.Tool, func(ctx context.Context) (err error) {
		text, err = run(ctx, e)
		return err
	})
	return escalated{cut(text, limit.Line)}, err
}

func (d *API) memoryLookup(_ context.Context, e escalation) (string, error) {
	query, err := needed("args.query", e.Args.Query, limit.Question)
	if err != nil {
		return "", err
	}
	return d.lookUp(query), d.o.Memory.Err()
}

// thinkHard asks the first deep model that answers, or the agent where there is
// none.
func (d *API) thinkHard(ctx context.Context, e escalation) (string, error) {
	question, err := needed("args.question", cmp.Or(e.Args.Question, e.Args.Query), limit.Question)
	if err != nil {
		return "", err
	}
	if len(d.current.Load().Deep) == 0 {
		// It is never remembered, so that no question knows of another.
		said, err := d.ask(ctx, &agent.Turn{Conversation: agent.ConversationOf("bridge", "think_hard"), Text: question,
			Language: d.language(e.SessionID)})
		return said.Text, err
	}
	text, err := thinker.Ponder(ctx, d.current.Load().Deep, question)
	if err == nil || ctx.Err() != nil {
		return text, err
	}
	d.o.Logger.Warn("no deep model answered", "err", err)
	return "", &httpserver.Fault{Word: "no_brain", Sentence: "none of the models in brain_deep answers; the log says why",
		HTTP: http.StatusServiceUnavailable}
}

// mostAsked is how much a camera's question may hold, in bytes.
const mostAsked = 300

// takePhoto has the robot of the talk take a picture, or the first connected.
func (d *API) takePhoto(ctx context.Context, e escalation) (string, error) {
	id, err := d.inTalk(e.SessionID)
	if err != nil {
		return "", err
	}
	return d.photo(ctx, id, plain.Clip(cmp.Or(plain.Line(e.Args.Question), plain.Line(e.Args.Query), "What do you see?"), mostAsked))
}

// inTalk is the robot of a session, or the first connected.
func (d *API) inTalk(session string) (device.ID, error) {
	if id, known := d.robotOf(session); known {
		return id, nil
	}
	return d.robot("")
}

// photo has a robot take a picture, and returns its description.
func (d *API) photo(ctx context.Context, id device.ID, question string) (string, error) {
	answer, err := d.call(ctx, id, "take_photo", map[string]any{"question": question})
	if err == nil && answer.Text == "" && len(answer.Pictures) > 0 {
		return "A picture was taken, and nobody has looked at it.", nil
	}
	return photoText(answer.Text), err
}

// photoText is the text in a camera's answer: the response or description of
// an object, or plain text.
func photoText(text string) string {
	var object struct{ Response, Description string }
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &object) == nil {
		text = cmp.Or(object.Response, object.Description, text)
	}
	return text
}

// call runs the robot's tool with that end of its name: boards have it under
// "self.camera." or elsewhere.
func (d *API) call(ctx context.Context, id device.ID, name string, arguments map[string]any) (device.Result, error) {
	for _, t := range d.o.Talk.Tools(id) {
		if t.Name == name || strings.HasSuffix(t.Name, "."+name) {
			return d.o.Talk.Call(ctx, id, t.Name, arguments)
		}
	}
	return device.Result{}, &httpserver.Fault{Word: "unknown_tool", Sentence: "this robot's firmware has no tool " + name, HTTP: http.StatusNotFound}
}
