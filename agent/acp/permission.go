package acp

import (
	"encoding/json"
	"errors"
	"slices"

	"perch/limit"
	"perch/plain"
)

// permission is the agent's request for the permission to run a tool.
type permission struct {
	id      json.RawMessage // request ID
	session string          // session ID
	old     bool            // whether the request is in the older dialect, which has no options
	call    toolChange      // the tool
	allow   string          // ID of the option to allow the tool once; "" if no such option has a valid ID
	reject  string          // ID of the option to reject the tool once; "" if no such option has a valid ID
}

// parsePermission parses a session/request_permission of either dialect. The error
// contains no text of the request and may be sent to the agent.
func parsePermission(m message) (permission, error) {
	var p struct {
		sessionID
		Tool    string    `json:"toolName"`
		Call    *toolCall `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return permission{}, errors.New("the parameters cannot be read")
	}
	request := permission{id: slices.Clone(m.ID), session: p.id()}
	if p.Call == nil && p.Options == nil && p.Tool != "" {
		request.old = true
		request.call.title = plain.Clip(p.Tool, maxTitle)
		return request, nil
	}
	if p.Call != nil {
		request.call = p.Call.change()
	}
	for _, o := range p.Options {
		switch {
		case o.ID == "" || len(o.ID) > limit.Session:
		case o.Kind == "allow_once" && request.allow == "":
			request.allow = o.ID
		case o.Kind == "reject_once" && request.reject == "":
			request.reject = o.ID
		}
	}
	return request, nil
}

// decision is the decision on a permission.
type decision int

// The decisions.
const (
	cancelled decision = iota // no turn runs, the inbox is full, or the turn has ended before a decision
	refused
	allowed
)

// sendDecision sends the response to a request for permission. It never allows or rejects a
// tool permanently: if the request has no option to allow or reject the tool once, the
// response is "cancelled". In the older dialect, the response only says whether the tool is
// approved.
func (c *conn) sendDecision(p permission, d decision) {
	outcome := map[string]any{"outcome": "cancelled"}
	if option := map[decision]string{allowed: p.allow, refused: p.reject}[d]; option != "" {
		outcome = map[string]any{"outcome": "selected", "optionId": option}
	}
	result := map[string]any{"outcome": outcome}
	if p.old {
		result = map[string]any{"approved": d == allowed}
	}
	c.send(message{ID: p.id, Result: encode(result)})
}
