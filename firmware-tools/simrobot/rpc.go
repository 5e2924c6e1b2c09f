package simrobot

import (
	"fmt"
	"strings"
	"time"
)

// rpc is the robot's MCP server (McpServer::ParseMessage): JSON-RPC without
// batches or ping, and with numeric ids only.
func (s *session) rpc(now time.Time, request object) error {
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
		s.ignore("mcp %s with the id %s, which is never answered: ids must be numbers", method, request.lookup("id"))
		return nil
	}
	switch method {
	case "initialize":
		return s.initialize(now, id, params)
	case "tools/list":
		return s.list(now, id, params)
	case "tools/call":
		return s.call(now, id, params)
	}
	return s.fail(now, id, "Method not implemented: "+method)
}

// reply sends a response, concatenated as in the firmware.
func (s *session) reply(now time.Time, id int, rest string) error {
	return s.sendText(now, fmt.Appendf(nil, `{"session_id":"%s","type":"mcp","payload":{"jsonrpc":"2.0","id":%d,%s}}`, s.id, id, rest))
}

func (s *session) result(now time.Time, id int, result string) error {
	return s.reply(now, id, `"result":`+result)
}

// fail sends an error without a code and without escapes: quotes in the message
// make it invalid JSON, as in the firmware.
func (s *session) fail(now time.Time, id int, message string) error {
	return s.reply(now, id, `"error":{"message":"`+message+`"}`)
}

// initialize uses only the address for photos in its parameters.
func (s *session) initialize(now time.Time, id int, params object) error {
	vision := parseObject(parseObject(params.lookup("capabilities")).lookup("vision"))
	if url, ok := vision.text("url"); ok {
		s.r.body.visionURL = url
		s.r.body.visionToken, _ = vision.text("token")
	}
	return s.result(now, id, fmt.Sprintf(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"%s","version":"%s"}}`,
		s.r.firmware.board, s.r.firmware.version))
}

func (s *session) list(now time.Time, id int, params object) error {
	cursor, _ := params.text("cursor")
	withUserTools := string(params.lookup("withUserTools")) == "true"
	result, listed, err := page(s.r.tools, cursor, withUserTools)
	if err != nil {
		return s.fail(now, id, err.Error())
	}
	s.r.o.Observe(listed)
	return s.result(now, id, result)
}

// pageSize is the firmware's limit for one page of the list, in bytes.
const pageSize = 8000

// page is McpServer::GetToolsList: pages are cut by size, the cursor is the
// name of the first tool of the next page, and an unknown cursor fails with a
// misleading message.
func page(tools []tool, cursor string, withUserTools bool) (string, Listed, error) {
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	var l Listed
	found := cursor == ""
	for _, t := range tools {
		found = found || t.name == cursor
		if !found || t.userOnly && !withUserTools {
			continue
		}
		text := t.json()
		if b.Len()+len(text)+1+30 > pageSize {
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

// call runs a tool. User-only tools are not listed, but can be called.
func (s *session) call(now time.Time, id int, params object) error {
	name, isString := params.text("name")
	rawArguments := params.lookup("arguments")
	arguments := parseObject(rawArguments)
	switch {
	case params == nil:
		return s.fail(now, id, "Missing params")
	case !isString:
		return s.fail(now, id, "Missing name")
	case rawArguments != nil && arguments == nil:
		return s.fail(now, id, "Invalid arguments")
	}
	done := toolDone{id: id, called: Called{Name: name, Arguments: string(rawArguments)}}
	t, found := findTool(s.r.tools, name)
	if !found {
		return s.toolFailed(now, done, "Unknown tool: "+name)
	}
	v, err := t.bind(arguments)
	if err != nil {
		return s.toolFailed(now, done, err.Error())
	}
	if t.slow == nil {
		done.text, done.err = t.run(s, now, v)
		return s.toolReturned(now, done)
	}
	s.busy = true
	go func() {
		done.text, done.err = t.slow(s.ctx, s.r, v)
		s.tools <- done
	}()
	return nil
}

// toolDone is the outcome of a tool.
type toolDone struct {
	id     int
	called Called
	text   string
	err    error
}

func (s *session) toolReturned(now time.Time, d toolDone) error {
	s.busy = false
	if d.err != nil {
		return s.toolFailed(now, d, d.err.Error())
	}
	d.called.Result = d.text
	s.r.o.Observe(d.called)
	return s.result(now, d.id, `{"content":[{"type":"text","text":`+quote(d.text)+`}],"isError":false}`)
}

func (s *session) toolFailed(now time.Time, d toolDone, message string) error {
	d.called.Err = message
	s.r.o.Observe(d.called)
	return s.fail(now, d.id, message)
}
