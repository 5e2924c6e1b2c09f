package simrobot

import (
	"fmt"
	"strings"
	"time"
)

// handleRPC handles a JSON-RPC request to the robot's MCP server, like the firmware's
// McpServer::ParseMessage: without batches or ping, and only with numeric IDs.
func (s *session) handleRPC(now time.Time, request object) error {
	version, _ := request.text("jsonrpc")
	method, isString := request.text("method")
	rawParams := request.lookup("params")
	params := parseObject(rawParams)
	switch {
	case version != "2.0" || !isString:
		s.ignore("mcp payload that is not a JSON-RPC 2.0 request")
		return nil
	case strings.HasPrefix(method, "notifications"):
		return nil
	case rawParams != nil && params == nil:
		s.ignore("mcp params that are not an object")
		return nil
	}
	id, isNumber := asNumber(request.lookup("id"))
	if !isNumber {
		s.ignore("mcp %s with the id %s, which gets no response: IDs must be numbers", method, request.lookup("id"))
		return nil
	}
	switch method {
	case "initialize":
		return s.handleInitialize(now, id, params)
	case "tools/list":
		return s.handleList(now, id, params)
	case "tools/call":
		return s.handleCall(now, id, params)
	}
	return s.sendError(now, id, "Method not implemented: "+method)
}

// sendResponse sends a JSON-RPC response. member is `"result":…` or `"error":…`, including the name.
func (s *session) sendResponse(now time.Time, id int, member string) error {
	return s.sendText(now, fmt.Appendf(nil, `{"session_id":"%s","type":"mcp","payload":{"jsonrpc":"2.0","id":%d,%s}}`, s.id, id, member))
}

// sendResult sends a JSON-RPC response with a result.
func (s *session) sendResult(now time.Time, id int, result string) error {
	return s.sendResponse(now, id, `"result":`+result)
}

// sendError sends a JSON-RPC response with an error. As in the firmware the error has no code,
// and quotes in the message are not escaped, which makes the JSON invalid.
func (s *session) sendError(now time.Time, id int, message string) error {
	return s.sendResponse(now, id, `"error":{"message":"`+message+`"}`)
}

// handleInitialize handles initialize. It uses only the URL and the token for photos, and ignores all
// other parameters.
func (s *session) handleInitialize(now time.Time, id int, params object) error {
	vision := parseObject(parseObject(params.lookup("capabilities")).lookup("vision"))
	if url, ok := vision.text("url"); ok {
		s.r.body.visionURL = url
		s.r.body.visionToken, _ = vision.text("token")
	}
	return s.sendResult(now, id, fmt.Sprintf(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"%s","version":"%s"}}`,
		s.r.firmware.board, s.r.firmware.version))
}

// handleList handles tools/list.
func (s *session) handleList(now time.Time, id int, params object) error {
	cursor, _ := params.text("cursor")
	withUserTools := string(params.lookup("withUserTools")) == "true"
	result, listed, err := toolPage(s.r.tools, cursor, withUserTools)
	if err != nil {
		return s.sendError(now, id, err.Error())
	}
	s.r.o.Observe(listed)
	return s.sendResult(now, id, result)
}

// pageSize is the maximum size in bytes of a page of the list of tools. The firmware sets this
// limit.
const pageSize = 8000

// toolPage returns a page of the list of tools as JSON, like the firmware's
// McpServer::GetToolsList. A page ends before it exceeds pageSize. cursor is the name of the first tool
// on the page, or empty for the first page. The error for an unknown cursor has the firmware's
// misleading message.
func toolPage(tools []tool, cursor string, withUserTools bool) (string, Listed, error) {
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	var l Listed
	reached := cursor == ""
	for _, t := range tools {
		reached = reached || t.name == cursor
		if !reached || t.userOnly && !withUserTools {
			continue
		}
		text := t.json()
		if b.Len()+len(text)+1+30 > pageSize { // a comma, and the firmware's reserve of 30 bytes for the end of the page
			l.Next = t.name
			break
		}
		if l.Tools > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text)
		l.Tools++
	}
	if l.Tools == 0 {
		return "", l, failure("Failed to add tool " + l.Next + " because of payload size limit")
	}
	b.WriteByte(']')
	if l.Next != "" {
		b.WriteString(`,"nextCursor":"` + l.Next + `"`)
	}
	b.WriteByte('}')
	return b.String(), l, nil
}

// handleCall handles tools/call. It also runs tools with userOnly, which tools/list lists only if
// withUserTools is true. A slow tool runs on another goroutine, which sends the result to s.tools.
func (s *session) handleCall(now time.Time, id int, params object) error {
	name, isString := params.text("name")
	rawArguments := params.lookup("arguments")
	arguments := parseObject(rawArguments)
	switch {
	case params == nil:
		return s.sendError(now, id, "Missing params")
	case !isString:
		return s.sendError(now, id, "Missing name")
	case rawArguments != nil && arguments == nil:
		return s.sendError(now, id, "Invalid arguments")
	}
	result := toolResult{id: id, called: Called{Name: name, Arguments: string(rawArguments)}}
	t, found := findTool(s.r.tools, name)
	if !found {
		return s.toolFailed(now, result, "Unknown tool: "+name)
	}
	v, err := t.bind(arguments)
	if err != nil {
		return s.toolFailed(now, result, err.Error())
	}
	if t.slow == nil {
		result.text, result.err = t.run(s, now, v)
		return s.toolReturned(now, result)
	}
	s.busy = true
	go func() {
		result.text, result.err = t.slow(s.ctx, s.r, v)
		s.tools <- result
	}()
	return nil
}

// toolResult is the result of a call of a tool.
type toolResult struct {
	id     int // ID of the request
	called Called
	text   string
	err    error
}

// toolReturned sends the result of a tool that has returned, and passes it to Options.Observe.
func (s *session) toolReturned(now time.Time, r toolResult) error {
	s.busy = false
	if r.err != nil {
		return s.toolFailed(now, r, r.err.Error())
	}
	r.called.Result = r.text
	s.r.o.Observe(r.called)
	return s.sendResult(now, r.id, `{"content":[{"type":"text","text":`+quote(r.text)+`}],"isError":false}`)
}

// toolFailed sends the error of a tool, and passes it to Options.Observe.
func (s *session) toolFailed(now time.Time, r toolResult, message string) error {
	r.called.Err = message
	s.r.o.Observe(r.called)
	return s.sendError(now, r.id, message)
}
