package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"perch/limit"
	"perch/must"
	"perch/remote"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzLines tests that the number of messages and the error do not depend on how the output is
// split into reads.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
	f.Add([]byte("Listening\r\n\n[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		count := func(r io.Reader) (n int, err error) {
			var l lines
			l.reset(r)
			for {
				m, err := l.next()
				if err != nil {
					return n, err
				}
				if m == nil {
					t.Fatal("a message that is none")
				}
				n++
			}
		}
		whole, err1 := count(bytes.NewReader(data))
		bytewise, err2 := count(iotest.OneByteReader(bytes.NewReader(data)))
		if whole != bytewise || !errors.Is(err1, err2) || !errors.Is(err1, io.EOF) && !errors.Is(err1, errNoMCP) {
			t.Errorf("%d, %v and %d, %v", whole, err1, bytewise, err2)
		}
	})
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"hello"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"aGk="}}],"structuredContent":[1],"isError":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r sdk.CallToolResult
		if json.Unmarshal(data, &r) != nil {
			return
		}
		text, err := resultText(&r)
		if err != nil {
			text = err.Error()
		}
		if len(text) > limit.Instructions || !utf8.ValidString(text) || r.IsError == (err == nil) && r.InputRequests == nil {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}

func FuzzTool(f *testing.F) {
	f.Add([]byte(`{"name":"do","description":"x","inputSchema":{"type":"object"}}`))
	f.Add([]byte(`{"name":"do\u0000","inputSchema":[]}`))
	s, err := New(Options{Name: "it", Command: []string{"x"}, Log: slog.New(slog.DiscardHandler)})
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		var tool sdk.Tool
		if json.Unmarshal(data, &tool) != nil {
			return
		}
		offer, ok := s.convertTool(&tool)
		if !ok {
			return
		}
		if own, ours := strings.CutPrefix(offer.Name, "it."); !ours || !s.isAllowed(own) || !utf8.ValidString(offer.Description) ||
			len(offer.Description) > limit.Data ||
			len(offer.Schema) > limit.Instructions || !json.Valid(offer.Schema) || offer.Schema[0] != '{' {
			t.Errorf("%+v", offer)
		}
	})
}

// FuzzRefusal tests that the error for an HTTP response is short, one line, and without the key.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"bad key canary-0123456789"}}`), 401)
	f.Add([]byte("<html>"), 502)
	s, err := New(Options{Name: "it", URL: "http://host/mcp?token=canary-0123456789", Key: "canary-0123456789", Log: slog.New(slog.DiscardHandler)})
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		_, reason := remote.Message(data)
		sentence := s.explain(&refusal{Refusal: remote.Refusal{Status: status, Reason: reason}}).Error()
		if strings.Contains(sentence, "canary-0123456789") || strings.ContainsAny(sentence, "\r\n\x00") || len(sentence) > 400 {
			t.Errorf("it says %q", sentence)
		}
	})
}

func TestSecretsAreNotQuoted(t *testing.T) {
	s, err := New(Options{Name: "it", Command: []string{"x", "--api-key", "sesame-1", "--token=sesame-2", "plain"}, Env: []string{"A=sesame-33"},
		Log: slog.New(slog.DiscardHandler)})
	must.Succeed(t, err)
	got := s.server.Quote("plain sesame-1 sesame-2 sesame-33 Bearer abc http://me:pw@host password=xyz sk-abcdefghij\neyJhbGciOiJIUzI1NiJ9.e30")
	if want := "plain [key] [key] [key] Bearer [key] http://[key]@host password=[key] [key] [key]"; got != want {
		t.Errorf("it shows\n%s, not\n%s", got, want)
	}
}
