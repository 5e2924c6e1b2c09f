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

// serverName is the name under which agents know our tool server.
const serverName = "perch"

// ToolEndpoint is the MCP server of one session, over HTTP. It serves clients that
// send its bearer token, and its tools work only during a turn.
type ToolEndpoint interface {
	Address() (url, bearer string)
	// StartTurn makes the tools of a turn available until EndTurn.
	StartTurn(ctx context.Context, tools *thinker.TurnTools)
	// EndTurn returns when none of the turn's tools is running any more.
	EndTurn()
	// Close closes the endpoint without waiting. EndTurn may still be called.
	Close()
}

// endpoint opens an endpoint for a new session, with the tools of its first turn: an
// agent lists them when it opens the session. It returns nil if the agent gets no tools.
func (b *Brain) endpoint(ctx context.Context, c *conn, tools *thinker.TurnTools) ToolEndpoint {
	if tools == nil || !c.mcp {
		return nil
	}
	p := b.o.Lend()
	p.StartTurn(ctx, tools)
	return p
}

// servers returns the MCP servers to open a session with.
func (s *session) servers() []any {
	if s.endpoint == nil {
		return []any{}
	}
	url, bearer := s.endpoint.Address()
	return []any{map[string]any{"type": "http", "name": serverName, "url": url,
		"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer " + bearer}}}}
}

// closeEndpoint closes the endpoint of a session that is over.
func (s *session) closeEndpoint() {
	if s.endpoint != nil {
		s.voiding.Do(s.endpoint.Close)
	}
}

// endTools revokes the tools of a conversation's turn.
func (b *Brain) endTools(k *talk) {
	if s := b.sessionOf(k); s != nil && s.endpoint != nil {
		s.endpoint.EndTurn()
	}
}

// ownTool reports whether a tool is ours and available in this turn, by the name in the
// agent's metadata. A title cannot be trusted, because the model may write it.
func (r *turnRun) ownTool(name string) (own string, is bool) {
	own, is = strings.CutPrefix(name, "mcp__"+serverName+"__")
	return own, is && r.tools != nil && slices.ContainsFunc(r.tools.Offered(), func(t thinker.Tool) bool { return t.Name == own })
}

// acted wraps a turn's failure after one of our tools has run, so that no other brain
// repeats its actions.
func acted(err error, tools *thinker.TurnTools) error {
	if err == nil || tools == nil || !tools.Acted() || !errors.Is(err, agent.ErrAway) {
		return err
	}
	return fmt.Errorf("after its tools had run: %v", err) // not wrapped, so that ErrAway ends here
}
