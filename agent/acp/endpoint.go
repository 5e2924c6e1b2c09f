package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
)

// serverName is the name of the MCP server in the parameters of session/new. claude-agent-acp
// makes it a part of the names of the server's tools.
const serverName = "perch"

// ToolEndpoint is an MCP server over HTTP for one session of an agent. It serves only
// clients that send its bearer token, and its tools work only during a turn.
type ToolEndpoint interface {
	Address() (url, bearer string)
	// StartTurn makes the tools of a turn available until EndTurn.
	StartTurn(ctx context.Context, tools *thinker.TurnTools)
	// EndTurn makes the tools unavailable, and waits for the end of running calls.
	EndTurn()
	// Close closes the endpoint without waiting. EndTurn may still be called.
	Close()
}

// newEndpoint opens the endpoint of a new session. It makes the tools of the first turn
// available at once, because an agent lists them while it opens the session. It returns
// nil if the agent gets no tools.
func (b *Brain) newEndpoint(ctx context.Context, c *conn, tools *thinker.TurnTools) ToolEndpoint {
	if tools == nil || !c.mcp {
		return nil
	}
	p := b.o.Lend()
	p.StartTurn(ctx, tools)
	return p
}

// mcpServers returns the parameter mcpServers of session/new.
func (s *session) mcpServers() []any {
	if s.endpoint == nil {
		return []any{}
	}
	url, bearer := s.endpoint.Address()
	return []any{map[string]any{"type": "http", "name": serverName, "url": url,
		"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer " + bearer}}}}
}

// closeEndpoint closes the endpoint of the session, if there is one and it is open.
func (s *session) closeEndpoint() {
	if s.endpoint != nil {
		s.closeOnce.Do(s.endpoint.Close)
	}
}

// endTools makes the tools of the conversation's turn unavailable.
func (b *Brain) endTools(conv *conversation) {
	if s := b.sessionOf(conv); s != nil && s.endpoint != nil {
		s.endpoint.EndTurn()
	}
}

// endpointTool returns the name, without its prefix, of a tool that the endpoint offers in
// this turn; ok is false for other tools. The name must come from the agent's metadata: a
// title cannot be trusted, because the model may have written it.
func (r *turnRun) endpointTool(name string) (own string, ok bool) {
	own, ok = strings.CutPrefix(name, "mcp__"+serverName+"__")
	return own, ok && r.tools != nil && slices.ContainsFunc(r.tools.Offered(), func(t thinker.Tool) bool { return t.Name == own })
}

// finalError returns the error of a turn. If a tool of the endpoint has run, the error does
// not wrap agent.ErrAway, so that no other brain repeats the turn and the tool's action.
func finalError(err error, tools *thinker.TurnTools) error {
	if err == nil || tools == nil || !tools.Acted() || !errors.Is(err, agent.ErrAway) {
		return err
	}
	return fmt.Errorf("after its tools had run: %v", err)
}
