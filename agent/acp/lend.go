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

// serverName is what an agent calls our tools' server.
const serverName = "perch"

// ToolEndpoint is an MCP server of a session's own, over HTTP. It serves clients that
// send its bearer token, and its tools work within a turn.
type ToolEndpoint interface {
	Address() (url, bearer string)
	// Begin makes the tools of a turn available until End.
	Begin(ctx context.Context, tools *thinker.TurnTools)
	// End returns when none of them is at work any more.
	End()
	// Close ends it, and waits for nothing. End may still be called.
	Close()
}

// endpoint opens one for a session to come, with the tools of its first turn: an
// agent asks for them when it opens the session. It is nil where nothing is
// lent.
func (b *Brain) endpoint(ctx context.Context, c *conn, tools *thinker.TurnTools) ToolEndpoint {
	if tools == nil || !c.mcp {
		return nil
	}
	p := b.o.Lend()
	p.Begin(ctx, tools)
	return p
}

// servers are the MCP servers that a session is opened with.
func (s *session) servers() []any {
	if s.endpoint == nil {
		return []any{}
	}
	url, bearer := s.endpoint.Address()
	return []any{map[string]any{"type": "http", "name": serverName, "url": url,
		"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer " + bearer}}}}
}

// void closes the tools' endpoint of a session that is over.
func (s *session) void() {
	if s.endpoint != nil {
		s.voiding.Do(s.endpoint.Close)
	}
}

// rest takes back the tools that were lent for a turn of a talk.
func (b *Brain) rest(k *talk) {
	if s := b.kept(k); s != nil && s.endpoint != nil {
		s.endpoint.End()
	}
}

// lent reports whether a tool is ours and lent in this turn, by the name that
// the agent's program gives beside the protocol. A title is a model's to write.
func (r *round) lent(name string) (own string, is bool) {
	own, is = strings.CutPrefix(name, "mcp__"+serverName+"__")
	return own, is && r.tools != nil && slices.ContainsFunc(r.tools.Offered(), func(t thinker.Tool) bool { return t.Name == own })
}

// acted is a turn's failure after one of our tools has run: no other brain may
// do a second time what it has done.
func acted(err error, tools *thinker.TurnTools) error {
	if err == nil || tools == nil || !tools.Acted() || !errors.Is(err, agent.ErrAway) {
		return err
	}
	return fmt.Errorf("after its tools had run: %v", err) // not wrapped, so that ErrAway ends here
}
