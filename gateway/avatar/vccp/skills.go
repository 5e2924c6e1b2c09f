package vccp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addSkills offers the skills that are meant for other programs. At most so many
// are at work at a time as robots' tools.
func (d *Server) addSkills() {
	if d.o.Skills == nil {
		return
	}
	for _, tool := range d.o.Skills.Exposed() {
		schema := objectSchema(tool.Schema)
		if schema == nil {
			d.o.Log.Warn("a tool is not lent: its arguments are described by no schema of an object", "tool", tool.Name)
			continue
		}
		d.server.AddTool(&mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: schema},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				select {
				case d.calls <- struct{}{}:
					defer func() { <-d.calls }()
				default:
					return answer("", errBusy), nil
				}
				return answer(d.o.Skills.CallExposed(ctx, tool.Name, r.Params.Arguments, d.now())), nil
			})
	}
}
