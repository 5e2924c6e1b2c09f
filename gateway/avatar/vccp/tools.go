package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent/thinker"
	"perch/device"
	"perch/limit"
	"perch/plain"
)

// mostOffered bounds the robots' tools that are offered. Names have at most limit.Word bytes,
// because programs that pass tools on refuse longer ones; schemas at most limit.Result.
const mostOffered = 300

// offer is a robot's tool.
type offer struct {
	robot device.ID
	tool  device.Tool
}

// adopted returns the robots that were adopted by name.
func (s *Server) adopted() (all []device.ID) {
	for _, r := range s.o.Robots.List() {
		if s.o.Robots.Trusts(r.ID) {
			all = append(all, r.ID)
		}
	}
	return all
}

// wanted returns the tools to offer: each robot's first tool, then each one's second, so that
// every robot gets its share.
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

// updateTools offers the tools that the robots list.
func (s *Server) updateTools() {
	wanted := s.wanted()
	s.mu.Lock()
	defer s.mu.Unlock()
	replaceTools(s.server, s.offered, wanted, func(name string, o offer) *mcp.Tool {
		schema, err := json.Marshal(asObject(o.tool.Schema))
		if err == nil && len(schema) > limit.Result {
			err = fmt.Errorf("its arguments take more than %d bytes to describe", limit.Result)
		}
		if err != nil {
			s.o.Log.Warn("a robot's tool is not offered", "robot", o.robot, "tool", o.tool.Name, "err", err)
			return nil
		}
		description := fmt.Sprintf("Robot %s: %s", o.robot, thinker.Described(o.tool.Description))
		return &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
	}, s.handler)
}

// replaceTools makes the offered tools of a server the wanted ones. It adds a new or changed tool
// unless describe returns nil.
func replaceTools[T any](server *mcp.Server, offered, wanted map[string]T, describe func(name string, t T) *mcp.Tool,
	handler func(T) mcp.ToolHandler) {
	var gone []string
	for name := range offered {
		if _, still := wanted[name]; !still {
			gone = append(gone, name)
			delete(offered, name)
		}
	}
	server.RemoveTools(gone...)
	for name, t := range wanted {
		if reflect.DeepEqual(offered[name], t) {
			continue
		}
		if tool := describe(name, t); tool != nil {
			offered[name] = t
			server.AddTool(tool, handler(t))
		}
	}
}

// newMCP returns an MCP server and its HTTP handler, which ends sessions without a request for
// idle.
func newMCP(name, instructions string, c *mcp.ServerCapabilities, idle time.Duration) (*mcp.Server, *mcp.StreamableHTTPHandler) {
	quiet := slog.New(slog.DiscardHandler) // the library would log every request
	server := mcp.NewServer(&mcp.Implementation{Name: name, Title: "Perch", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: instructions, Logger: quiet, Capabilities: c})
	return server, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idle, MaxRequestBodyBytes: limit.List, Logger: quiet,
		DisableLocalhostProtection: true}) // Host and Origin are checked before
}

// asObject makes a robot's schema one of type object, since the library panics at any other.
func asObject(s device.Schema) device.Schema {
	s.Type = "object"
	if s.Properties == nil {
		s.Properties = map[string]device.Argument{}
	}
	return s
}

// toolName returns the name under which a robot's tool is offered, which every client accepts.
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

// handler returns the handler of a robot's tool.
func (s *Server) handler(o offer) mcp.ToolHandler {
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

// errBusy is the error when too many calls are running.
var errBusy = errors.New("too many calls of robots are under way; wait for one to end")

// call calls a robot's tool.
func (s *Server) call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	default:
		return device.Result{}, errBusy
	}
	return s.o.Talk.Call(ctx, id, tool, arguments)
}

// addSkills offers the exposed skills. They share the slots of the robots' tools.
func (s *Server) addSkills() {
	if s.o.Skills == nil {
		return
	}
	for _, tool := range s.o.Skills.Exposed() {
		described := describe(tool, s.o.Log)
		if described == nil {
			continue
		}
		s.server.AddTool(described, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
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
