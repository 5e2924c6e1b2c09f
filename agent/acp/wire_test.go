package acp

import (
	"log/slog"
	"strings"
	"testing"
)

func silentLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestBlankLines are passed over: they are no garbage.
func TestBlankLines(t *testing.T) {
	c := newConn(silentLog(), func(error) {})
	c.read(strings.NewReader("\n  \r\n{\"id\":1,\"method\":\"x\"}\r\n\n"))
	if len(c.out) != 1 || c.garbage != 0 {
		t.Errorf("%d answers, %d lines of garbage", len(c.out), c.garbage)
	}
}

func TestInboxIsBounded(t *testing.T) {
	in := newInbox()
	piece := text(strings.Repeat("a", 1000))
	for range 2000 {
		in.put(piece)
	}
	if len(in.items) != 1 {
		t.Fatalf("text is not joined: %d items", len(in.items))
	}
	for range 2 * mostAsked {
		in.put(permission{})
	}
	if in.asked != mostAsked {
		t.Errorf("%d permissions wait", in.asked)
	}
	for range 2 * mostItems {
		in.put(toolChange{id: "x"})
	}
	if len(in.items) != mostItems {
		t.Errorf("%d items wait", len(in.items))
	}
	if !in.put(ended{}) {
		t.Error("the end was not taken")
	}
	it, over := in.take()
	if said, ok := it.(text); !ok || over || len(said) > mostText || len(said) < mostText-1000 {
		t.Errorf("%T of %d bytes, %v", it, len(said), over)
	}
	if n := len(in.close()); n != mostAsked {
		t.Errorf("%d permissions are given back", n)
	}
	if in.put(piece) {
		t.Error("a closed inbox takes more")
	}
}

// TestTheEndReportsWhatWasLeftOut: an answer with a hole is not passed off as whole.
func TestTheEndReportsWhatWasLeftOut(t *testing.T) {
	in := newInbox()
	in.put(text(strings.Repeat("a", mostText)))
	in.put(text("b"))
	in.put(ended{})
	if _, over := in.take(); over {
		t.Error("too early")
	}
	if _, over := in.take(); !over {
		t.Error("it is not reported")
	}
}
