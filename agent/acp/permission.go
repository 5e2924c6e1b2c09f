package acp

import (
	"encoding/json"
	"errors"
	"slices"

	"perch/limit"
	"perch/plain"
)

// permission is a request of the agent for permission.
type permission struct {
	id      json.RawMessage
	session string
	old     bool // of the older dialect, which expects {"approved":true}
	call    toolChange
	allow   string // the option that allows it once; may be empty, and always is in the older dialect
	reject  string
}

// parsePermission parses a session/request_permission of either dialect. Its error
// does not wrap others and may be sent to the agent.
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
	asked := permission{id: slices.Clone(m.ID), session: p.id()}
	if p.Call == nil && p.Options == nil && p.Tool != "" {
		asked.old = true
		asked.call.title = plain.Clip(p.Tool, mostRead)
		return asked, nil
	}
	if p.Call != nil {
		asked.call = p.Call.change()
	}
	for _, o := range p.Options {
		switch {
		case o.ID == "" || len(o.ID) > limit.Session:
		case o.Kind == "allow_once" && asked.allow == "":
			asked.allow = o.ID
		case o.Kind == "reject_once" && asked.reject == "":
			asked.reject = o.ID
		}
	}
	return asked, nil
}

// verdict is the decision on a permission.
type verdict int

// The verdicts.
const (
	cancelled verdict = iota // its turn has ended
	refused
	allowed
)

// answer sends the decision to the agent. Nothing is ever allowed or rejected
// permanently: a request without a one-time rejection is answered as cancelled.
func (c *conn) answer(p permission, v verdict) {
	outcome := map[string]any{"outcome": "cancelled"}
	if option := map[verdict]string{allowed: p.allow, refused: p.reject}[v]; option != "" {
		outcome = map[string]any{"outcome": "selected", "optionId": option}
	}
	result := map[string]any{"outcome": outcome}
	if p.old {
		result = map[string]any{"approved": v == allowed}
	}
	c.send(message{ID: p.id, Result: encode(result)})
}
