package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent/thinker"
	"perch/limit"
	"perch/plain"
)

// listTools returns the server's tools that a model can use. A server that does not support
// the method tools/list has none.
func (s *Server) listTools(ctx context.Context, session *sdk.ClientSession) (tools []thinker.Tool, err error) {
	leftOut, cursor := 0, ""
	for range maxPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if refused := errorResponse(err); refused != nil && refused.Code == jsonrpc.CodeMethodNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			tool, ok := s.convertTool(t)
			if !ok || len(tools) == maxTools || slices.ContainsFunc(tools, func(o thinker.Tool) bool { return o.Name == tool.Name }) {
				leftOut++
				continue
			}
			tools = append(tools, tool)
		}
		if page.NextCursor == "" || page.NextCursor == cursor || len(tools) == maxTools {
			break
		}
		cursor = page.NextCursor
	}
	if leftOut > 0 {
		s.o.Log.Debug("tools of an MCP server are not offered: excluded by only or except, duplicate, too many, or without a usable schema",
			"server", s.o.Name, "offered", len(tools), "left_out", leftOut)
	}
	return tools, nil
}

// convertTool converts a tool for a model. ok is false if the options do not allow the tool
// or its schema is not usable.
func (s *Server) convertTool(t *sdk.Tool) (tool thinker.Tool, ok bool) {
	if !s.isAllowed(t.Name) {
		return thinker.Tool{}, false
	}
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	if t.InputSchema != nil {
		data, err := json.Marshal(t.InputSchema)
		if err != nil || len(data) > limit.Instructions || data[0] != '{' {
			return thinker.Tool{}, false
		}
		schema = data
	}
	description := plain.Clip(cmp.Or(t.Description, t.Title), limit.Data)
	return thinker.Tool{Name: s.o.Name + "." + t.Name, Description: description, Schema: schema}, true
}

// isAllowed reports whether the options allow the tool with this name, without the
// server's prefix.
func (s *Server) isAllowed(name string) bool {
	if name == "" || len(name) > limit.ID || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return false
	}
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok || pattern == name
	}
	return (len(s.o.Only) == 0 || slices.ContainsFunc(s.o.Only, matches)) && !slices.ContainsFunc(s.o.Except, matches)
}

// setTools stores the list that Tools returns.
func (s *Server) setTools(tools []thinker.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.listed = tools, true
}

// resultText returns the result of a tool as text for a model, or as an error if the tool
// failed, cut to limit.Instructions bytes. Each image, sound or other content that is not
// text is replaced by a sentence.
func resultText(r *sdk.CallToolResult) (string, error) {
	var result strings.Builder
	add := func(text string) {
		text = strings.TrimSpace(text)
		if room := limit.Instructions - result.Len(); text != "" && room > 1 {
			if result.Len() > 0 {
				result.WriteByte('\n')
				room--
			}
			result.WriteString(plain.Clip(text, room))
		}
	}
	hasText := false
	for _, content := range r.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			hasText = hasText || strings.TrimSpace(c.Text) != ""
			add(c.Text)
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				hasText = true
				add(c.Resource.Text)
			} else {
				add("(A file came with it, which cannot be shown here.)")
			}
		case *sdk.ImageContent:
			add("(An image came with it, which cannot be shown here.)")
		case *sdk.AudioContent:
			add("(A sound came with it, which cannot be played here.)")
		case *sdk.ResourceLink:
			add("(It points to " + plain.Clip(c.Name, limit.ID) + ", " + plain.Clip(c.URI, 500) + ".)")
		default:
			add("(Something came with it that cannot be shown here.)")
		}
	}
	if !hasText && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			add(string(data))
		}
	}
	switch {
	case r.InputRequests != nil && !hasText:
		return "", errors.New("the tool wants to ask something back, which it cannot do here; give it all it needs at once")
	case r.IsError && result.Len() == 0:
		return "", errors.New("the tool has failed and does not say why")
	case r.IsError:
		return "", errors.New(result.String())
	}
	return result.String(), nil
}
