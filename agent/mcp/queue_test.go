package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"perch/limit"
	"perch/must"
)

// TestQueueIsBounded tests that the bytes that wait for a process are limited, and that the connection
// is closed beyond the limit. Later messages get the same error.
func TestQueueIsBounded(t *testing.T) {
	c := newChild(nil)
	m := must.Value(jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"` + strings.Repeat("x", 32<<10) + `"}}`)))(t)
	var err error
	written := 0
	for ; err == nil && written < 2*maxQueued; written++ {
		err = c.Write(t.Context(), m)
	}
	if !errors.Is(err, errNotReading) || written > limit.File/(32<<10)+1 {
		t.Errorf("after %d messages: %v", written, err)
	}
	select {
	case <-c.done:
	default:
		t.Error("the process goes on")
	}
	if err := c.Write(t.Context(), m); !errors.Is(err, errNotReading) {
		t.Errorf("a later message: %v", err)
	}
}
