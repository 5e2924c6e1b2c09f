package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/limit"
	"perch/must"
)

// listing returns a client that has requested the list of tools, and the requests that it sends.
func listing(t *testing.T, known ...device.Tool) (*Client, *[]xiaozhi.Request) {
	t.Helper()
	var sent []xiaozhi.Request
	b := New(known, NewBudget(limit.Body), func(r xiaozhi.Request) error { sent = append(sent, r); return nil })
	must.Succeed(t, errors.Join(b.Introduce("test", "", ""), b.RequestList()))
	return b, &sent
}

func page(id int, next string, names ...string) json.RawMessage {
	var tools []device.Tool
	for _, name := range names {
		tools = append(tools, device.Tool{Name: name})
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"tools": tools, "nextCursor": next}})
	return body
}

// TestFirstWordsWaitForTheTools checks that AwaitList waits for the tools of a robot without known tools, for
// a limited time, and only once.
func TestFirstWordsWaitForTheTools(t *testing.T) {
	answers := func(payload json.RawMessage) func(*Client) { return func(b *Client) { _, _ = b.Deliver(payload) } }
	for name, c := range map[string]struct {
		known   []device.Tool
		deliver func(b *Client)
		waits   time.Duration
	}{
		"a new robot":              {deliver: answers(page(2, "", "t")), waits: 100 * time.Millisecond},
		"one with another page":    {deliver: answers(page(2, "u", "t")), waits: firstListTimeout},
		"one without tools":        {deliver: answers([]byte(`{"jsonrpc":"2.0","id":2,"error":{"code":-1}}`)), waits: 100 * time.Millisecond},
		"one that never lists any": {deliver: func(*Client) {}, waits: firstListTimeout},
		"one that goes":            {deliver: (*Client).Close, waits: 100 * time.Millisecond},
		"one that is known":        {known: []device.Tool{{Name: "known"}}, deliver: func(*Client) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := listing(t, c.known...)
				began := time.Now()
				time.AfterFunc(100*time.Millisecond, func() { c.deliver(b) })
				b.AwaitList(t.Context())
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("its first words wait %s, want %s", waited, c.waits)
				}
				began = time.Now()
				if b.AwaitList(t.Context()); time.Since(began) != 0 {
					t.Errorf("its second words wait %s, want none", time.Since(began))
				}
				time.Sleep(time.Second) // lets the goroutine with a late delivery end
			})
		})
	}
}

func TestToolsAreListedPageByPage(t *testing.T) {
	b, sent := listing(t, device.Tool{Name: "known"})
	if len(*sent) != 3 || (*sent)[0].Method != "initialize" || (*sent)[2].Method != "tools/list" {
		t.Fatalf("sent %+v", *sent)
	}
	if tools := b.Tools(); len(tools) != 1 || tools[0].Name != "known" {
		t.Errorf("before the list ends there are %v", tools)
	}
	if listed, err := b.Deliver(page((*sent)[2].ID, "c", "a", "b")); err != nil || listed != nil {
		t.Fatalf("%v, %v", listed, err)
	}
	last := (*sent)[3]
	if last.Method != "tools/list" || last.Params.(map[string]any)["cursor"] != "c" || last.ID == (*sent)[2].ID {
		t.Errorf("asked for the next page with %+v", last)
	}
	listed, err := b.Deliver(page(last.ID, "", "c"))
	if err != nil || len(listed) != 3 || len(b.Tools()) != 3 {
		t.Errorf("listed %v, %v", listed, err)
	}
	// Responses to requests that were not sent change nothing.
	for _, id := range []int{0, last.ID, 99} {
		if _, err := b.Deliver(page(id, "")); err != nil || len(b.Tools()) != 3 {
			t.Errorf("an answer to %d: %v, %v", id, b.Tools(), err)
		}
	}
}

func TestARobotWithTooManyTools(t *testing.T) {
	b, sent := listing(t)
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprint("tool", i))
	}
	if _, err := b.Deliver(page((*sent)[2].ID, "more", names...)); err != nil || len(b.Tools()) != MaxTools {
		t.Errorf("%d tools are kept (%v)", len(b.Tools()), err)
	}
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, sent := listing(t, device.Tool{Name: "x"})
		call := func(answer string) (string, error) {
			before := len(*sent)
			var text string
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				var r device.Result
				r, err = b.Call(t.Context(), "x", nil)
				text = r.Text
			}()
			synctest.Wait()
			if answer != "" {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, (*sent)[before].ID, answer)
				if _, err := b.Deliver(json.RawMessage(body)); err != nil {
					t.Error(err)
				}
			}
			<-done
			return text, err
		}
		if text, err := call(`"result":{"content":[{"type":"text","text":"true"}],"isError":false}`); text != "true" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := call(`"error":{"message":"Missing valid argument: volume"}`); err == nil ||
			!strings.Contains(err.Error(), "Missing valid argument") {
			t.Errorf("a failing tool: %v", err)
		}
		if _, err := call(`"result":[]`); err == nil {
			t.Error("a result that is none passes")
		}
		began := time.Now()
		if _, err := call(""); !errors.Is(err, ErrToolTimeout) || time.Since(began) != callTimeout {
			t.Errorf("no answer: %v after %s", err, time.Since(began))
		}
		if _, err := b.Call(t.Context(), "y", nil); !errors.Is(err, ErrNoTool) {
			t.Errorf("a tool that is not there: %v", err)
		}
		go func() { time.Sleep(time.Second); b.Close() }()
		if _, err := call(""); !errors.Is(err, ErrChannelClosed) {
			t.Errorf("a channel that closes: %v", err)
		}
		if _, err := b.Call(t.Context(), "x", nil); !errors.Is(err, ErrChannelClosed) {
			t.Errorf("a closed channel: %v", err)
		}
	})
}

// TestResultsOfTools: text, and images as the firmware packs them and as MCP
// has them.
func TestResultsOfTools(t *testing.T) {
	for body, want := range map[string]device.Result{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`: {Text: "a\nb"},
		`{"content":[{"type":"image","image":"{\"type\":\"image\",\"mimeType\":\"image/jpeg\",\"data\":\"AQI=\"}"}]}`: {
			Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte{1, 2}}}},
		`{"content":[{"type":"image","mimeType":"image/png","data":"AQI="},{"type":"text","text":"a"}]}`: {
			Text: "a", Pictures: []device.Picture{{Type: "image/png", Data: []byte{1, 2}}}},
		`{"content":[{"type":"audio"}]}`: {},
	} {
		got, err := parseResult("x", xiaozhi.Response{Result: json.RawMessage(body)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{`[]`, `{"content":5}`, `{"content":[{"type":"image","image":"x"}]}`,
		`{"content":[{"type":"image","image":"{\"data\":\"!\"}"}]}`} {
		if r, err := parseResult("x", xiaozhi.Response{Result: json.RawMessage(body)}); !errors.Is(err, ErrToolFailed) {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
	for tool, want := range map[string]time.Duration{"self.camera.take_photo": slowCallTimeout, "self.screen.snapshot": slowCallTimeout,
		"self.audio_speaker.set_volume": callTimeout} {
		if timeout(tool) != want {
			t.Errorf("%s may take %s", tool, timeout(tool))
		}
	}
}

// TestClientsShareABudget checks that the tools of all strangers together stay within their budget of 2 MB,
// that a new list and Close release the bytes of the old list, and that the owner's robots have another
// budget.
func TestClientsShareABudget(t *testing.T) {
	const bound = 2 << 20
	ours, theirs := NewBudget(16<<20), NewBudget(bound)
	description := strings.Repeat("x", limit.Data)
	full := func(b *Client, sent *[]xiaozhi.Request) {
		for range 2 {
			must.Succeed(t, b.RequestList())
			var tools []device.Tool
			for n := range 20 {
				tools = append(tools, device.Tool{Name: fmt.Sprint(n), Description: description})
			}
			body := must.Value(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": (*sent)[len(*sent)-1].ID,
				"result": map[string]any{"tools": tools}}))(t)
			must.Value(b.Deliver(body))(t)
		}
	}
	var boxes []*Client
	held := 0
	for i := range 200 {
		r := theirs
		if i == 199 {
			r = ours
		}
		var sent []xiaozhi.Request
		b := New(nil, r, func(q xiaozhi.Request) error { sent = append(sent, q); return nil })
		full(b, &sent)
		boxes = append(boxes, b)
		if r == theirs {
			held += b.held
		}
	}
	if n := len(boxes[199].Tools()); n != 15 {
		t.Errorf("the owner's robot has %d tools", n)
	}
	if held > bound || held < bound-limit.Body-limit.Data || int64(bound-held) != theirs.left.Load() {
		t.Errorf("strangers hold %d bytes of %d, left are %d", held, bound, theirs.left.Load())
	}
	for _, b := range boxes {
		b.Close()
	}
	if theirs.left.Load() != bound || ours.left.Load() != 16<<20 {
		t.Errorf("after all have gone, left are %d and %d", theirs.left.Load(), ours.left.Load())
	}
}
