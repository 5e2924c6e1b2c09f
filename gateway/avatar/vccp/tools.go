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

// maxOffered is the maximum number of tools of robots that are offered. In addition, the name of a
// tool has at most limit.Word bytes, because some model providers refuse longer names, and the schema
// of a tool has at most limit.Result bytes.
const maxOffered = 300

type robotTool struct {
	robot device.ID
	tool  device.Tool
}

func (s *Server) adopted() (robots []device.ID) {
	for _, r := range s.o.Robots.List() {
		if s.o.Robots.Trusts(r.ID) {
			robots = append(robots, r.ID)
		}
	}
	return robots
}

// toolsToOffer returns the tools to offer. The key is the name under which a tool is offered. The
// result has the first tool of each robot, then the second tool of each, and so on, so that no robot
// alone uses up the limit.
func (s *Server) toolsToOffer() map[string]robotTool {
	tools := map[string]robotTool{}
	robots := s.adopted()
	lists := make([][]device.Tool, len(robots))
	for i, id := range robots {
		lists[i] = s.o.Control.Tools(id)
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
			if _, taken := tools[name]; taken || t.UserOnly && !s.o.UserTools() {
				continue
			}
			if len(tools) == maxOffered {
				return tools
			}
			tools[name] = robotTool{id, t}
		}
	}
	return tools
}

// updateTools offers the robots' current tools.
func (s *Server) updateTools() {
	tools := s.toolsToOffer()
	s.mu.Lock()
	defer s.mu.Unlock()
	replaceTools(s.server, s.offered, tools, func(name string, t robotTool) *mcp.Tool {
		schema, err := json.Marshal(asObject(t.tool.Schema))
		if err == nil && len(schema) > limit.Result {
			err = fmt.Errorf("the schema of the tool has more than %d bytes", limit.Result)
		}
		if err != nil {
			s.o.Log.Warn("a robot's tool is not offered", "robot", t.robot, "tool", t.tool.Name, "err", err)
			return nil
		}
		description := fmt.Sprintf("Robot %s: %s", t.robot, thinker.ToolDescription(t.tool.Description))
		return &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
	}, s.newHandler)
}

// replaceTools replaces the tools of a server with the tools in wanted. It updates offered, which holds the
// present tools of the server. It does not add a tool if describe returns nil for it.
func replaceTools[T any](server *mcp.Server, offered, wanted map[string]T, describe func(name string, t T) *mcp.Tool,
	newHandler func(T) mcp.ToolHandler) {
	var removed []string
	for name := range offered {
		if _, ok := wanted[name]; !ok {
			removed = append(removed, name)
			delete(offered, name)
		}
	}
	server.RemoveTools(removed...)
	for name, t := range wanted {
		if reflect.DeepEqual(offered[name], t) {
			continue
		}
		if tool := describe(name, t); tool != nil {
			offered[name] = t
			server.AddTool(tool, newHandler(t))
		}
	}
}

// newMCP returns an MCP server and its HTTP handler. A session ends after the time idle without a
// request.
func newMCP(name, instructions string, c *mcp.ServerCapabilities, idle time.Duration) (*mcp.Server, *mcp.StreamableHTTPHandler) {
	quiet := slog.New(slog.DiscardHandler) // the library would log every request
	server := mcp.NewServer(&mcp.Implementation{Name: name, Title: "Perch", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: instructions, Logger: quiet, Capabilities: c})
	return server, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idle, MaxRequestBodyBytes: limit.List, Logger: quiet,
		DisableLocalhostProtection: true}) // httpserver has checked Host and Origin
}

// asObject returns s with the type object, because the library panics at other types.
func asObject(s device.Schema) device.Schema {
	s.Type = "object"
	if s.Properties == nil {
		s.Properties = map[string]device.Argument{}
	}
	return s
}

// toolName returns the name under which a robot's tool is offered. It has only characters that
// all clients accept.
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

// newHandler returns the handler of a robot's tool.
func (s *Server) newHandler(t robotTool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments map[string]any
		if err := decodeArguments(r.Params.Arguments, &arguments); err != nil {
			return newResult("", err), nil
		}
		if !s.o.Robots.Trusts(t.robot) {
			return newResult("", errors.New("this robot is no longer adopted")), nil
		}
		result, err := s.call(ctx, t.robot, t.tool.Name, arguments)
		if err != nil {
			return newResult("", err), nil
		}
		content := []mcp.Content{&mcp.TextContent{Text: result.Text}}
		for _, p := range result.Pictures {
			content = append(content, &mcp.ImageContent{Data: p.Data, MIMEType: p.Type})
		}
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// errBusy is the error of a call that would exceed maxCalls.
var errBusy = errors.New("too many calls are in progress; wait for one to end")

// call calls a robot's tool. It returns errBusy if maxCalls calls are in progress.
func (s *Server) call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	default:
		return device.Result{}, errBusy
	}
	return s.o.Control.Call(ctx, id, tool, arguments)
}

// addSkills offers the exposed skills. Calls of skills count towards maxCalls, like calls of robots'
// tools.
func (s *Server) addSkills() {
	if s.o.Skills == nil {
		return
	}
	for _, tool := range s.o.Skills.Exposed() {
		described := mcpTool(tool, s.o.Log)
		if described == nil {
			continue
		}
		s.server.AddTool(described, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case s.calls <- struct{}{}:
				defer func() { <-s.calls }()
			default:
				return newResult("", errBusy), nil
			}
			return newResult(s.o.Skills.CallExposed(ctx, tool.Name, r.Params.Arguments, s.now())), nil
		})
	}
}
