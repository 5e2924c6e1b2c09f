package vccp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addSkills offers the skills that are meant for other programs. At most so many
// are at work at a time as robots' tools.
func (s *Server) addSkills() {
	if s.o.Skills == nil {
		return
	}
	for _, tool := range s.o.Skills.Exposed() {
		schema := objectSchema(tool.Schema)
		if schema == nil {
			s.o.Log.Warn("a tool is not lent: its arguments are described by no schema of an object", "tool", tool.Name)
			continue
		}
		s.server.AddTool(&mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: schema},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				select {
				case s.calls <- struct{}{}:
					defer func() { <-s.calls }()
				default:
					return answer("", errBusy), nil
				}
				return answer(s.o.Skills.CallExposed(ctx, tool.Name, r.Params.Arguments, s.now())), nil
			})
	}
}
