package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent/thinker"
	"perch/device"
	"perch/limit"
	"perch/plain"
)

// mostOffered is how many tools of robots models are offered. A name of more than
// limit.Word bytes is refused by programs that pass tools on. limit.Result bounds
// the arguments.
const mostOffered = 300

// offer is a tool of a robot's own.
type offer struct {
	robot device.ID
	tool  device.Tool
}

// adopted are the robots that were adopted by name.
func (s *Server) adopted() (all []device.ID) {
	for _, r := range s.o.Robots.List() {
		if s.o.Robots.Trusts(r.ID) {
			all = append(all, r.ID)
		}
	}
	return all
}

// wanted is what is to be offered: each robot's first tool, then each one's
// second, so that none takes the room of the others.
func (s *Server) wanted() map[string]offer {
	wanted := map[string]offer{}
	robots := s.adopted()
	lists := make([][]device.Tool, len(robots))
	for i, id := range robots {
		lists[i] = s.o.Talk.Tools(id)
	}
	for n, more := 0, true; more; n++ {
		more = false
		for i, id := range robots {
			if n >= len(lists[i]) {
				continue
			}
			more = true
			t := lists[i][n]
			name := toolName(id, t.Name)
			if _, taken := wanted[name]; taken || t.UserOnly && !s.o.UserTools() {
				continue
			}
			if len(wanted) == mostOffered {
				return wanted
			}
			wanted[name] = offer{id, t}
		}
	}
	return wanted
}

// updateTools has what is offered be what the robots list.
func (s *Server) updateTools() {
	wanted := s.wanted()
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for name, before := range s.offered {
		if now, still := wanted[name]; !still {
			gone = append(gone, name)
			delete(s.offered, name)
		} else if reflect.DeepEqual(before, now) {
			delete(wanted, name)
		}
	}
	s.server.RemoveTools(gone...)
	for name, o := range wanted {
		schema, err := json.Marshal(asObject(o.tool.Schema))
		if err == nil && len(schema) > limit.Result {
			err = fmt.Errorf("its arguments take more than %d bytes to describe", limit.Result)
		}
		if err != nil {
			s.o.Log.Warn("a robot's tool is not offered", "robot", o.robot, "tool", o.tool.Name, "err", err)
			continue
		}
		s.offered[name] = o
		description := fmt.Sprintf("Robot %s: %s", o.robot, thinker.Described(o.tool.Description))
		s.server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}, s.runs(o))
	}
}

// asObject is a robot's schema as one of arguments. Robots are strangers, and
// the library panics at a tool with a schema of any other type, or of none.
func asObject(s device.Schema) device.Schema {
	s.Type = "object"
	if s.Properties == nil {
		s.Properties = map[string]device.Argument{}
	}
	return s
}

// toolName is what a robot's tool is called here, so that every client can pass
// it on.
func toolName(robot device.ID, tool string) string {
	tool = strings.TrimPrefix(tool, "self.")
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, tool)
	return plain.Clip(string(robot)+"_"+safe, limit.Word)
}

// runs is the handler of a robot's tool.
func (s *Server) runs(o offer) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments map[string]any
		if err := decode(r.Params.Arguments, &arguments); err != nil {
			return answer("", err), nil
		}
		if !s.o.Robots.Trusts(o.robot) {
			return answer("", errors.New("this robot is adopted no more")), nil
		}
		result, err := s.call(ctx, o.robot, o.tool.Name, arguments)
		if err != nil {
			return answer("", err), nil
		}
		content := []mcp.Content{&mcp.TextContent{Text: result.Text}}
		for _, p := range result.Pictures {
			content = append(content, &mcp.ImageContent{Data: p.Data, MIMEType: p.Type})
		}
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// errBusy is the answer where too much is asked of robots at a time.
var errBusy = errors.New("too many calls of robots are under way; wait for one to end")

// call runs a robot's tool, as one of the few that may run at a time.
func (s *Server) call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	default:
		return device.Result{}, errBusy
	}
	return s.o.Talk.Call(ctx, id, tool, arguments)
}
