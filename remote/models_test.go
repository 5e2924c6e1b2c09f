package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/anthropic"
	brainopenai "perch/agent/openai"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/must"
)

// closer is a model that must be closed.
type closer interface {
	thinker.Model
	Close() error
}

// model is a driver of a language model, with a recorded response.
type model struct {
	open   func(url string, transport http.RoundTripper) (closer, error) // the model waits 7 s for the first piece, and 3 s for the next
	pieces string                                                        // the beginning of the response
	count  int                                                           // number of pieces in it
	whole  string                                                        // the whole response
}

func models(t *testing.T) map[string]model {
	t.Helper()
	record, err := os.ReadFile("../agent/anthropic/testdata/text.sse")
	must.Succeed(t, err)
	half, _, _ := strings.Cut(string(record), "event: content_block_stop")
	const i = "data: {\"choices\":[{\"delta\":{\"content\":\"I\"}}]}\n\n"
	return map[string]model{
		"agent/anthropic": {open: openAnthropic, pieces: half, count: 2, whole: string(record)},
		"agent/openai": {open: openOpenAI(""), pieces: i, count: 1,
			whole: "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"},
	}
}

func openAnthropic(url string, transport http.RoundTripper) (closer, error) {
	return anthropic.New(anthropic.Options{URL: url, Key: canary, Model: "m", FirstWithin: 7 * time.Second, IdleWithin: 3 * time.Second,
		Transport: transport})
}

func openOpenAI(dialect string) func(string, http.RoundTripper) (closer, error) {
	return func(url string, transport http.RoundTripper) (closer, error) {
		return brainopenai.New(brainopenai.Options{URL: url, Model: "m", Dialect: dialect, Transport: transport,
			FirstWithin: 7 * time.Second, IdleWithin: 3 * time.Second})
	}
}

func ignore(thinker.Piece) error { return nil }

// repeating is a body that consists of a beginning (rest), and then of piece after each pause, until the time until.
// If piece is empty, nothing follows the beginning.
type repeating struct {
	ctx         context.Context
	rest, piece string
	pause       time.Duration
	until       time.Time
}

func (r *repeating) Read(p []byte) (int, error) {
	for r.rest == "" {
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

// endlessly runs a model in virtual time. Its server responds with a repeating body, for a day.
func endlessly(t *testing.T, open func(string, http.RoundTripper) (closer, error), head, piece string, pause time.Duration,
	run func(t *testing.T, m thinker.Model)) {
	synctest.Test(t, func(t *testing.T) {
		m, err := open("http://models.example/v1", thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			_ = r.Body.Close()
			return thinkertest.Streamed(r, &repeating{r.Context(), head, piece, pause, time.Now().Add(24 * time.Hour)}), nil
		}))
		must.Succeed(t, err)
		defer m.Close()
		run(t, m)
	})
}

// TestEndlessModels checks that a turn ends within its limits if a server streams without an end. If something was
// spoken, the turn ends with a sentence for the person; otherwise the error makes the next brain answer.
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
	part := func(d string) string { return event("content_block_delta", `,"index":0,"delta":`+d) }
	says := func(words string) string { return part(`{"type":"text_delta","text":"` + words + `"}`) }
	delta := func(d string) string { return "data: {\"choices\":[{\"delta\":" + d + "}]}\n\n" }
	line := func(text string) string {
		return `{"message":{"role":"assistant","content":"` + text + `"},"done":false}` + "\n"
	}
	const second, noEnd, silent, none = time.Second, "did not finish within 5m0s", "fell silent for 3s", "did not begin to answer"
	const slow = "far slower than it is spoken"
	type row struct {
		head, piece string
		pause       time.Duration
		within      time.Duration
		away        string // text of the error after which the next brain answers; empty if the turn ends with a sentence
	}
	for of, rows := range map[string]map[string]row{
		"agent/anthropic": {
			"words":                     {text, says("and so on "), time.Millisecond, 5 * time.Minute, ""},
			"sentences":                 {text, says("I think so. "), time.Millisecond, 5 * time.Minute, ""},
			"a letter each half second": {text, says("a "), second / 2, 5 * time.Minute, ""},
			"a letter each second":      {text, says("a "), second, 8 * second, slow},
			"a thought's letter":        {thinking, part(`{"type":"thinking_delta","thinking":"a"}`), second, 8 * second, slow},
			"empty text":                {text, says(""), second, 4 * second, silent},
			"empty text after a word":   {text + says("Well. "), says(""), second, 4 * second, silent},
			"empty thoughts":            {thinking, part(`{"type":"thinking_delta","thinking":""}`), second, 4 * second, silent},
			"thoughts":                  {thinking, part(`{"type":"thinking_delta","thinking":"hm"}`), second, 5 * time.Minute, noEnd},
			"pings":                     {begun, event("ping", ""), second, 5 * time.Minute, noEnd},
			"comments":                  {begun, ": x\n\n", second, 4 * second, silent},
			"a line without end":        {begun + "data: ", "x", second, 4 * second, silent},
		},
		"agent/openai": {
			"words":                     {"", delta(`{"content":"and so on "}`), time.Millisecond, 5 * time.Minute, ""},
			"sentences":                 {"", delta(`{"content":"I think so. "}`), time.Millisecond, 5 * time.Minute, ""},
			"a letter each half second": {"", delta(`{"content":"a "}`), second / 2, 5 * time.Minute, ""},
			"a letter each second":      {"", delta(`{"content":"a "}`), second, 8 * second, slow},
			"a thought's letter":        {"", delta(`{"content":"","reasoning_content":"a"}`), second, 8 * second, slow},
			"a letter within a thought": {delta(`{"content":"<think>"}`), delta(`{"content":"a"}`), second, 8 * second, slow},
			"a call's letter": {delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":"{"}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1"}}]}`), second, 8 * second, slow},
			"a Chinese character a second": {"", delta(`{"content":"好"}`), second, 5 * time.Minute, ""},
			"no choices":                   {"", "data: {\"choices\":[]}\n\n", second, 7 * second, none + " within 7s"},
			"empty choices":                {"", delta(`{}`), second, 4 * second, silent},
			"empty text":                   {"", delta(`{"role":"assistant","content":""}`), second, 4 * second, silent},
			"empty thoughts":               {"", delta(`{"content":null,"reasoning_content":""}`), second, 4 * second, silent},
			"thoughts":                     {"", delta(`{"content":"","reasoning_content":"hm"}`), second, 5 * time.Minute, noEnd},
			"a thought within the text":    {delta(`{"content":"<think>"}`), delta(`{"content":"hm"}`), second, 5 * time.Minute, noEnd},
			"empty choices after a word":   {delta(`{"content":"Well. "}`), delta(`{}`), second, 4 * second, silent},
			"a line without end":           {"data: ", "x", second, 7 * second, none},
			"comments":                     {"", ": ping\n\n", second, 7 * second, none},
		},
		"agent/openai, Ollama": {
			"words":                     {"", line("and so on "), time.Millisecond, 5 * time.Minute, ""},
			"a letter each second":      {"", line("a "), second, 8 * second, slow},
			"empty lines":               {"", "\n", second, 7 * second, none},
			"empty lines after a word":  {line("Well. "), "\n", second, 4 * second, silent},
			"empty pieces after a word": {line("Well. "), line(""), second, 4 * second, silent},
			"thoughts":                  {"", `{"message":{"content":"","thinking":"hm"},"done":false}` + "\n", second, 5 * time.Minute, noEnd},
		},
	} {
		open := map[string]func(string, http.RoundTripper) (closer, error){"agent/anthropic": openAnthropic, "agent/openai": openOpenAI(""),
			"agent/openai, Ollama": openOpenAI(brainopenai.DialectOllama)}[of]
		for name, c := range rows {
			t.Run(of+"/"+name, func(t *testing.T) {
				endlessly(t, open, c.head, c.piece, c.pause, func(t *testing.T, m thinker.Model) {
					began, letters, last := time.Now(), 0, ""
					err := thinker.New(thinker.Options{Model: m}).Think(t.Context(), agent.Turn{Text: "Well?"}, func(r agent.Reply) error {
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
}

// TestModelsDeadlines checks the time limits for the first and for later pieces. The time that the caller spends on a
// piece does not count, and after the last piece the model does not wait.
func TestModelsDeadlines(t *testing.T) {
	for of, m := range models(t) {
		ended := "data: {\"choices\":[{\"delta\":{\"content\":\"I\"},\"finish_reason\":\"stop\"}]}\n\n"
		for name, c := range map[string]struct {
			body  string
			takes time.Duration // time that the caller spends on each piece
			after time.Duration
			want  string
		}{
			"nothing": {after: 7 * time.Second, want: "did not begin to answer within 7s"},
			"silence": {body: m.pieces, after: 3 * time.Second, want: "fell silent for 3s in the middle"},
			"a slow listener": {body: m.pieces, takes: time.Minute, after: time.Duration(m.count)*time.Minute + 3*time.Second,
				want: "fell silent for 3s"},
			"open at the end": {body: m.whole, after: 100 * time.Millisecond},
			"comments only":   {body: ": ping\n\n", after: 7 * time.Second, want: "did not begin to answer within 7s"},
			"no [DONE]":       {body: ended, after: time.Second},
		} {
			if of != "agent/openai" && (name == "no [DONE]" || name == "comments only") {
				continue
			}
			t.Run(of+"/"+name, func(t *testing.T) {
				endlessly(t, m.open, c.body, "", time.Hour, func(t *testing.T, m thinker.Model) {
					start := time.Now()
					_, err := m.Continue(t.Context(), thinkertest.Hello(), func(thinker.Piece) error { time.Sleep(c.takes); return nil })
					if took := time.Since(start); took != c.after {
						t.Errorf("after %v", took)
					}
					if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want)) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestModelsAreCancelled checks that a cancelled turn ends at once, before and during the response, and that its
// request ends.
func TestModelsAreCancelled(t *testing.T) {
	for of, m := range models(t) {
		for name, before := range map[string]string{"before the first byte": "", "in the middle": m.pieces} {
			t.Run(of+"/"+name, func(t *testing.T) {
				gone := make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, before)
					if before != "" {
						w.(http.Flusher).Flush()
					}
					time.AfterFunc(50*time.Millisecond, cancel) // the request has arrived by now
					<-r.Context().Done()                        // the client has closed the request
					close(gone)
				}))
				defer s.Close()
				e, err := m.open(s.URL, nil)
				must.Succeed(t, err)
				defer e.Close()
				if _, err := e.Continue(ctx, thinkertest.Hello(), ignore); err != context.Canceled {
					t.Error(err)
				}
				select {
				case <-gone:
				case <-time.After(time.Minute):
					t.Error("the request is still open")
				}
			})
		}
	}
}

// TestModelsReturnTheListenersError checks that a model returns the error of its callback unchanged, and passes no
// further piece to the callback.
func TestModelsReturnTheListenersError(t *testing.T) {
	for of, m := range models(t) {
		synctest.Test(t, func(t *testing.T) {
			e, err := m.open("http://models.example/v1", thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				return thinkertest.Streamed(r, strings.NewReader(m.whole)), nil
			}))
			must.Succeed(t, err)
			defer e.Close()
			mine, pieces := errors.New("mine"), 0
			_, err = e.Continue(t.Context(), thinkertest.Hello(), func(thinker.Piece) error { pieces++; return mine })
			if err != mine || pieces != 1 {
				t.Errorf("%s: %v after %d pieces", of, err, pieces)
			}
		})
	}
}

// TestModelsKeepOneConnection checks that the next turn uses the same connection, and that Close closes it.
func TestModelsKeepOneConnection(t *testing.T) {
	for of, m := range models(t) {
		t.Run(of, func(t *testing.T) {
			states := make(chan http.ConnState, 100)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, m.whole) }))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
			s.Start()
			defer s.Close()
			e, err := m.open(s.URL, nil)
			must.Succeed(t, err)
			for range 5 {
				if _, err := e.Continue(t.Context(), thinkertest.Hello(), ignore); err != nil {
					t.Error(err)
				}
			}
			_ = e.Close()
			opened := 0
			for {
				select {
				case state := <-states:
					if state == http.StateNew {
						opened++
					}
					if state != http.StateClosed {
						continue
					}
					if opened != 1 {
						t.Errorf("%d connections", opened)
					}
					return
				case <-time.After(time.Minute):
					t.Fatal("the connection is still open")
				}
			}
		})
	}
}
