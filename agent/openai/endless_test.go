package openai_test

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
	"perch/agent/openai"
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
	delta := func(d string) string { return "data: {\"choices\":[{\"delta\":" + d + "}]}\n\n" }
	line := func(text string) string {
		return `{"message":{"role":"assistant","content":"` + text + `"},"done":false}` + "\n"
	}
	const second = time.Second
	for name, c := range map[string]struct {
		head, piece string
		pause       time.Duration
		native      bool
		within      time.Duration
		away        string // why the next brain has the turn
	}{
		"words":                     {"", delta(`{"content":"and so on "}`), time.Millisecond, false, 5 * time.Minute, ""},
		"sentences":                 {"", delta(`{"content":"I think so. "}`), time.Millisecond, false, 5 * time.Minute, ""},
		"a letter each half second": {"", delta(`{"content":"a "}`), second / 2, false, 5 * time.Minute, ""},
		"no choices":                {"", "data: {\"choices\":[]}\n\n", second, false, 7 * second, "did not begin to answer within 7s"},
		"empty choices":             {"", delta(`{}`), second, false, 4 * second, "fell silent for 3s"},
		"empty text":                {"", delta(`{"role":"assistant","content":""}`), second, false, 4 * second, "fell silent for 3s"},
		"empty thoughts":            {"", delta(`{"content":null,"reasoning_content":""}`), second, false, 4 * second, "fell silent for 3s"},
		"thoughts":                  {"", delta(`{"content":"","reasoning_content":"hm"}`), second, false, 5 * time.Minute, "came to no end within 5m0s"},
		"a thought within the text": {delta(`{"content":"<think>"}`), delta(`{"content":"hm"}`), second, false, 5 * time.Minute,
			"came to no end within 5m0s"},
		"empty choices after a word":        {delta(`{"content":"Well. "}`), delta(`{}`), second, false, 4 * second, "fell silent for 3s"},
		"a line without end":                {"data: ", "x", second, false, 7 * second, "did not begin to answer"},
		"comments":                          {"", ": ping\n\n", second, false, 7 * second, "did not begin to answer"},
		"Ollama: words":                     {"", line("and so on "), time.Millisecond, true, 5 * time.Minute, ""},
		"Ollama: empty lines":               {"", "\n", second, true, 7 * second, "did not begin to answer"},
		"Ollama: empty lines after a word":  {line("Well. "), "\n", second, true, 4 * second, "fell silent for 3s"},
		"Ollama: empty pieces after a word": {line("Well. "), line(""), second, true, 4 * second, "fell silent for 3s"},
		"Ollama: thoughts": {"", `{"message":{"content":"","thinking":"hm"},"done":false}` + "\n", second, true, 5 * time.Minute,
			"came to no end within 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options("http://pi.example/v1")
				o.FirstWithin, o.IdleWithin = 7*second, 3*second
				if c.native {
					o.Dialect = openai.DialectOllama
				}
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
