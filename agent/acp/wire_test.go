package acp

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/limit"
	"perch/must"
)

func silentLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestInboxIsBounded(t *testing.T) {
	in := newInbox()
	piece := text(strings.Repeat("a", 1000))
	for range 2000 {
		in.enqueue(piece)
	}
	if len(in.items) != 1 {
		t.Fatalf("text is not joined: %d items", len(in.items))
	}
	for range 2 * maxPermissions {
		in.enqueue(permission{})
	}
	if in.permissions != maxPermissions {
		t.Errorf("%d permissions wait", in.permissions)
	}
	for range 2 * maxItems {
		in.enqueue(toolChange{id: "x"})
	}
	if len(in.items) != maxItems {
		t.Errorf("%d items wait", len(in.items))
	}
	if !in.enqueue(ended{}) {
		t.Error("the end was not taken")
	}
	it, over := in.pop()
	if said, ok := it.(text); !ok || over || len(said) > limit.List || len(said) < limit.List-1000 {
		t.Errorf("%T of %d bytes, %v", it, len(said), over)
	}
	if n := len(in.close()); n != maxPermissions {
		t.Errorf("%d permissions are given back", n)
	}
	if in.enqueue(piece) {
		t.Error("a closed inbox takes more")
	}
}

// TestEndlessAgents tests the limits of the time of a turn, of its text and of silence. Thoughts
// and tools are signs of life. After a limit the robot says a phrase and the agent is cancelled.
func TestEndlessAgents(t *testing.T) {
	chunk := func(kind, words string) string {
		return `{"sessionUpdate":"` + kind + `","content":{"type":"text","text":"` + words + `"}}`
	}
	const steps = "I stopped here: it took too many steps."
	for name, c := range map[string]struct {
		first, again string // first update of the agent, and the update that it repeats
		took         time.Duration
		want         string // the last sentence; "" if the turn fails with errSilent
	}{
		"a letter at a time": {chunk("agent_message_chunk", "Well. "), chunk("agent_message_chunk", "a "), 5 * time.Minute, steps},
		"thoughts":           {"{}", chunk("agent_thought_chunk", "hm"), 30 * time.Minute, steps},
		"thoughts and words": {chunk("agent_message_chunk", "Well. "), chunk("agent_thought_chunk", "hm"), 5 * time.Minute, steps},
		"tools": {chunk("agent_message_chunk", "Well. "),
			`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"read","status":"completed","title":"Look"}`, 30 * time.Minute, steps},
		"what is no word":    {"{}", chunk("agent_message_chunk", ""), 5 * time.Minute, ""},
		"what is no thought": {"{}", chunk("agent_thought_chunk", ""), 5 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Options{Command: []string{"agent"}, Log: silentLog()})
				must.Succeed(t, err)
				conn := newConn(silentLog(), func(error) {})
				s := &session{conn: conn, id: "s"}
				conn.sessions[s.id] = s
				stopped := make(chan struct{})
				go func() { // the agent
					defer close(stopped)
					<-conn.out // the prompt
					for update := c.first; ; update = c.again {
						conn.handleLine([]byte(`{"method":"session/update","params":{"sessionId":"s","update":` + update + `}}`))
						select {
						case line := <-conn.out:
							if strings.Contains(string(line), "session/cancel") {
								return
							}
						case <-time.After(10 * time.Second):
						}
					}
				}()
				began, last := time.Now(), ""
				err = b.think(t.Context(), s, agent.Turn{Language: "en"}, nil, func(r agent.Reply) error {
					if say, ok := r.(agent.Say); ok {
						last = say.Text
					}
					return nil
				})
				if c.want == "" != errors.Is(err, errSilent) || c.want != "" && (err != nil || last != c.want) || time.Since(began) != c.took {
					t.Errorf("%v after %v, with %q", err, time.Since(began), last)
				}
				<-stopped
				conn.shutdown(errClosed)
				b.Close()
			})
		})
	}
}

// TestASessionThatDoesNotOpen tests that waitOpened waits for Options.Start and then stops the
// agent.
func TestASessionThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Brain{o: Options{Command: []string{"slow"}, Start: time.Minute}}
		s := &session{conn: newConn(silentLog(), func(error) {}), opened: make(chan struct{})}
		k, began := &conversation{session: s}, time.Now()
		_, err := b.waitOpened(t.Context(), k, s)
		if !errors.Is(err, agent.ErrAway) || !strings.HasSuffix(err.Error(), "slow opened no session in 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if k.session != nil || s.conn.err() == nil {
			t.Errorf("it has session %v, and its agent goes on: %v", k.session, s.conn.err())
		}
	})
}

// TestReasonsOfErrors tests that the text of an error contains the reason in its data.
func TestReasonsOfErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"code":-32603,"message":"Internal error","data":{"details":"model any is not there"}}`:           "Internal error: model any is not there (-32603)",
		`{"code":-32603,"message":"Internal error","data":"no credits"}`:                                   "Internal error: no credits (-32603)",
		`{"code":-32603,"message":"Internal error","data":{"error":{"message":"no credits"}}}`:             "Internal error: no credits (-32603)",
		`{"code":-32000,"message":"Authentication required","data":{"details":"Authentication required"}}`: "Authentication required (-32000)",
		`{"code":-32603,"message":"Internal error","data":[1]}`:                                            "Internal error (-32603)",
	} {
		var e rpcError
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error() != want {
			t.Errorf("%s is %q, %v", text, e.Error(), err)
		}
	}
}
