package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/thinker"
)

// repeating is a body that has a beginning, and then the same for ever at a
// pace, for a day at the most.
type repeating struct {
	ctx         context.Context
	rest, piece string
	pause       time.Duration
	until       time.Time
}

func (r *repeating) Read(p []byte) (int, error) {
	if r.rest == "" {
		if time.Now().After(r.until) {
			return 0, io.EOF
		}
		select {
		case <-time.After(r.pause):
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
		r.rest = r.piece
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestEndlessModels: whatever a server streams for ever, the turn ends within
// its bounds: with a polite word where something was said, and else for the next
// brain.
func TestEndlessModels(t *testing.T) {
	event := func(name, data string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + data + "}\n\n"
	}
	begun := event("message_start",
		`,"message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","usage":{"input_tokens":1,"output_tokens":1}}`)
	block := func(kind string) string {
		return begun + event("content_block_start", `,"index":0,"content_block":`+kind)
	}
	text, thinking := block(`{"type":"text","text":""}`), block(`{"type":"thinking","thinking":"","signature":""}`)
	delta := func(d string) string { return event("content_block_delta", `,"index":0,"delta":`+d) }
	says := func(words string) string { return delta(`{"type":"text_delta","text":"` + words + `"}`) }
	const second = time.Second
	for name, c := range map[string]struct {
		head, piece string
		pause       time.Duration
		within      time.Duration
		away        string // why the next brain has the turn
	}{
		"words":                     {text, says("and so on "), time.Millisecond, 5 * time.Minute, ""},
		"sentences":                 {text, says("I think so. "), time.Millisecond, 5 * time.Minute, ""},
		"a letter each half second": {text, says("a "), second / 2, 5 * time.Minute, ""},
		"empty text":                {text, says(""), second, 4 * second, "fell silent for 3s"},
		"empty text after a word":   {text + says("Well. "), says(""), second, 4 * second, "fell silent for 3s"},
		"empty thoughts":            {thinking, delta(`{"type":"thinking_delta","thinking":""}`), second, 4 * second, "fell silent for 3s"},
		"thoughts":                  {thinking, delta(`{"type":"thinking_delta","thinking":"hm"}`), second, 5 * time.Minute, "came to no end within 5m0s"},
		"pings":                     {begun, event("ping", ""), second, 5 * time.Minute, "came to no end within 5m0s"},
		"comments":                  {begun, ": x\n\n", second, 4 * second, "fell silent for 3s"},
		"a line without end":        {begun + "data: ", "x", second, 4 * second, "fell silent for 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options("http://proxy.example")
				o.FirstWithin, o.IdleWithin = 7*second, 3*second
				o.Transport = bodyTransport(func(r *http.Request) (int, io.Reader) {
					return http.StatusOK, &repeating{ctx: r.Context(), rest: c.head, piece: c.piece, pause: c.pause,
						until: time.Now().Add(24 * time.Hour)}
				})
				began, letters, last := time.Now(), 0, ""
				err := thinker.New(thinker.Options{Model: engine(t, o)}).Think(t.Context(), agent.Turn{Text: "Well?"}, func(r agent.Reply) error {
					if s, ok := r.(agent.Say); ok {
						letters, last = letters+len(s.Text), s.Text
					}
					return nil
				})
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s", took)
				}
				if letters > 8400 {
					t.Errorf("%d letters are spoken", letters)
				}
				switch {
				case c.away == "" && (err != nil || last != "I was cut off."):
					t.Errorf("it ends with %q, %v", last, err)
				case c.away != "" && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.away)):
					t.Errorf("%q, %v", last, err)
				}
			})
		})
	}
}
