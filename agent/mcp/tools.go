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

// list lists the tools. A server without tools may not support the method.
func (s *Server) list(ctx context.Context, session *sdk.ClientSession) (tools []thinker.Tool, err error) {
	passed, cursor := 0, ""
	for range mostPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if refused := answerOf(err); refused != nil && refused.Code == jsonrpc.CodeMethodNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			tool, ok := s.offered(t)
			if !ok || len(tools) == mostTools || slices.ContainsFunc(tools, func(o thinker.Tool) bool { return o.Name == tool.Name }) {
				passed++
				continue
			}
			tools = append(tools, tool)
		}
		if page.NextCursor == "" || page.NextCursor == cursor || len(tools) == mostTools {
			break
		}
		cursor = page.NextCursor
	}
	if passed > 0 {
		s.o.Log.Debug("tools of an MCP server are not offered: they are left out by only or except, twice there, too many, or cannot be described",
			"server", s.o.Name, "offered", len(tools), "left_out", passed)
	}
	return tools, nil
}

// offered converts a tool for a model; ok is false if it cannot be offered.
func (s *Server) offered(t *sdk.Tool) (thinker.Tool, bool) {
	if !s.allowed(t.Name) {
		return thinker.Tool{}, false
	}
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	if t.InputSchema != nil {
		written, err := json.Marshal(t.InputSchema)
		if err != nil || len(written) > limit.Instructions || written[0] != '{' {
			return thinker.Tool{}, false
		}
		schema = written
	}
	description := plain.Clip(cmp.Or(t.Description, t.Title), limit.Data)
	return thinker.Tool{Name: s.o.Name + "." + t.Name, Description: description, Schema: schema}, true
}

// allowed reports whether a tool may be used, by the server's name for it.
func (s *Server) allowed(own string) bool {
	if own == "" || len(own) > limit.ID || !utf8.ValidString(own) || strings.ContainsFunc(own, unicode.IsControl) {
		return false
	}
	is := func(pattern string) bool {
		match, err := path.Match(pattern, own)
		return err == nil && match || pattern == own
	}
	return (len(s.o.Only) == 0 || slices.ContainsFunc(s.o.Only, is)) && !slices.ContainsFunc(s.o.Except, is)
}

// setTools stores a list of tools.
func (s *Server) setTools(tools []thinker.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.listed = tools, true
}

// textOf returns a result as text for a model. Content that is not text becomes a
// sentence, because it cannot be shown.
func textOf(r *sdk.CallToolResult) (string, error) {
	var said strings.Builder
	add := func(text string) {
		text = strings.TrimSpace(text)
		if room := limit.Instructions - said.Len(); text != "" && room > 1 {
			if said.Len() > 0 {
				said.WriteByte('\n')
				room--
			}
			said.WriteString(plain.Clip(text, room))
		}
	}
	words := false
	for _, content := range r.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			words = words || strings.TrimSpace(c.Text) != ""
			add(c.Text)
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				words = true
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
	if !words && r.StructuredContent != nil {
		if written, err := json.Marshal(r.StructuredContent); err == nil {
			add(string(written))
		}
	}
	switch {
	case r.InputRequests != nil && !words:
		return "", errors.New("the tool wants to ask something back, which it cannot do here; give it all it needs at once")
	case r.IsError && said.Len() == 0:
		return "", errors.New("the tool has failed and does not say why")
	case r.IsError:
		return "", errors.New(said.String())
	}
	return said.String(), nil
}
