package openclaw

import (
	"context"
	"time"
)

// readMethod returns a method for clients with the scope scopeRead. answer returns the payload of the response or an error.
func (c *connection) readMethod(answer func(request) (any, *failure)) method {
	return func(_ context.Context, r request) (any, *failure) {
		if bad := c.handshake.scopes.require(scopeRead); bad != nil {
			return nil, bad
		}
		return answer(r)
	}
}

// always returns the answer of a method whose payload never changes: a method that lists things that Perch does not
// have, or that requests what Perch does for every client anyway. OpenClaw's own client stops if such a method is
// unknown.
func always(payload any) func(request) (any, *failure) {
	return func(request) (any, *failure) { return payload, nil }
}

// agentEntry is an entry of the response to agents.list.
type agentEntry struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// listAgents implements the method agents.list.
func (c *connection) listAgents(request) (any, *failure) {
	agents := []agentEntry{{mainName, c.server.o.Name()}}
	if characters := c.server.o.Characters; characters != nil {
		for _, name := range characters.Names() {
			if name != mainName {
				agents = append(agents, agentEntry{ID: name})
			}
		}
	}
	return map[string]any{"defaultId": mainName, "mainKey": mainName, "scope": "per-sender", "agents": agents}, nil
}

// sessionEntry is a session in the response to sessions.list and sessions.describe.
type sessionEntry struct {
	Key     string `json:"key"`
	Kind    string `json:"kind"`
	Updated int64  `json:"updatedAt"`
	Status  string `json:"status"` // running or done
	Active  bool   `json:"hasActiveRun"`
}

// sessions returns the sessions that were shown on this connection, latest first.
func (c *connection) sessions() []sessionEntry {
	sessions := []sessionEntry{}
	for _, s := range c.runs.recent() {
		entry := sessionEntry{Key: s.key, Kind: "direct", Updated: s.at, Status: "done"}
		if s.run != nil {
			entry.Status, entry.Active = "running", true
		}
		sessions = append(sessions, entry)
	}
	return sessions
}

// storePath is the value of fields with the path of OpenClaw's store of sessions, which Perch does not have.
const storePath = "perch"

// noDefaults returns the value of fields with OpenClaw's default model, which Perch does not have.
func noDefaults() any {
	return map[string]any{"modelProvider": nil, "model": nil, "contextTokens": nil}
}

// listSessions implements the method sessions.list.
func (c *connection) listSessions(r request) (any, *failure) {
	var p struct {
		Minutes float64 `json:"activeMinutes"`
		Limit   int     `json:"limit"`
	}
	if bad := r.decodeParams(&p); bad != nil {
		return nil, bad
	}
	now := time.Now().UnixMilli()
	sessions := c.sessions()
	for n, s := range sessions {
		if p.Limit > 0 && n == p.Limit || p.Minutes > 0 && float64(now-s.Updated) > p.Minutes*60_000 {
			sessions = sessions[:n]
			break
		}
	}
	return map[string]any{"ts": now, "path": storePath, "count": len(sessions), "sessions": sessions, "defaults": noDefaults()}, nil
}

// describeSession implements the method sessions.describe. The payload's session is null if no session with the key
// was shown.
func (c *connection) describeSession(r request) (any, *failure) {
	var p struct {
		Key string `json:"key"`
	}
	if bad := r.decodeParams(&p); bad != nil {
		return nil, bad
	}
	for _, s := range c.sessions() {
		if s.Key == p.Key {
			return map[string]any{"session": s}, nil
		}
	}
	return map[string]any{"session": nil}, nil
}

// history implements the method chat.history. It always returns an empty list, because Perch shows a client only
// what is said while the client is connected.
func (c *connection) history(r request) (any, *failure) {
	var p struct {
		Key string `json:"sessionKey"`
	}
	if bad := r.decodeParams(&p); bad != nil {
		return nil, bad
	}
	return map[string]any{"sessionKey": p.Key, "messages": []any{}}, nil
}

// health implements the method health.
func (c *connection) health(request) (any, *failure) {
	return map[string]any{"ok": true, "ts": time.Now().UnixMilli(), "durationMs": 0, "channels": map[string]any{}, "channelOrder": []any{},
		"channelLabels": map[string]any{}, "heartbeatSeconds": 0, "defaultAgentId": mainName, "agents": []any{},
		"sessions": map[string]any{"path": storePath, "count": len(c.sessions()), "recent": []any{}}}, nil
}

// status implements the method status.
func (c *connection) status(request) (any, *failure) {
	return map[string]any{"runtimeVersion": c.server.o.Version, "heartbeat": map[string]any{"defaultAgentId": mainName, "agents": []any{}},
		"channelSummary": []any{}, "queuedSystemEvents": []any{},
		"sessions": map[string]any{"paths": []string{storePath}, "count": len(c.sessions()), "defaults": noDefaults(), "recent": []any{}, "byAgent": []any{}}}, nil
}
