package skin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/must"
)

// slow is a mind that answers or fails after a delay.
type slow struct {
	takes time.Duration
	err   error
}

func (s slow) Answer(ctx context.Context, _ agent.Turn, out func(agent.Reply) error) error {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return out(agent.Say{Text: "Hi."})
}
func (slow) AddExchange(string, agent.Exchange, time.Time) {}
func (slow) Forget(string) error                           { return nil }

// TestStreamBeginsWithin3Seconds tests that a stream begins within three seconds, because clients such as
// ChatdollKit disconnect after 5 s without a byte. An error before that is the response, and a later error is
// the last event.
func TestStreamBeginsWithin3Seconds(t *testing.T) {
	const role, said, stop = `{"role":"assistant"}`, `{"content":"Hi."}`, `"finish_reason":"stop"`
	for name, c := range map[string]struct {
		mind slow
		want string // the parts that are sent, each after its time
	}{
		"at once":            {slow{}, "0s " + role + " 0s " + said + " 0s " + stop + " 0s [DONE]"},
		"after 2 s":          {slow{takes: 2 * time.Second}, "2s " + role + " 2s " + said + " 2s " + stop + " 2s [DONE]"},
		"after 10 s":         {slow{takes: 10 * time.Second}, "3s " + role + " 10s " + said + " 10s " + stop + " 10s [DONE]"},
		"after 40 s":         {slow{takes: 40 * time.Second}, "3s " + role + " 18s : 33s : 40s " + said + " 40s " + stop + " 40s [DONE]"},
		"it fails after 2 s": {slow{2 * time.Second, agent.ErrNoBrain}, "no_brain"},
		"it fails after 4 s": {slow{4 * time.Second, agent.ErrNoBrain}, "3s " + role + ` 4s "code":"no_brain"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			bus := event.NewBus()
			defer bus.Close()
			o := bare(bus, agent.NewBoard())
			o.Mind = c.mind
			s := New(o)
			q, err := s.parse([]byte(chatOf(`,"stream":true`)), "")
			must.Succeed(t, err)
			r, w := io.Pipe()
			began, got := time.Now(), ""
			go func() {
				err := s.stream(t.Context(), pen{Writer: w}, q)
				if err != nil {
					_, shown := openAIError(err)
					fmt.Fprintf(w, "%s\n", shown.Error.Code)
				}
				w.Close()
			}()
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				line := lines.Text()
				for _, known := range []string{role, said, stop, "[DONE]", `"code":"no_brain"`} {
					if strings.Contains(line, known) {
						line = known
					}
				}
				switch {
				case line == "":
				case line == "no_brain":
					got += line
				default:
					got += fmt.Sprintf(" %v %s", time.Since(began), strings.TrimSuffix(line, " still thinking"))
				}
			}
			if got = strings.TrimSpace(got); got != c.want {
				t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
			}
		})
	}
}

// TestDoubledSlash tests that a doubled slash in the path is accepted. AniCompanion appends the path to an
// address that may end with a slash.
func TestDoubledSlash(t *testing.T) {
	h := newHarness(t)
	conn, err := h.dialAt("//v1/vtuber/ws", "Authorization", "Bearer "+secret)
	must.Succeed(t, err)
	conn.Drop()
	if _, err := h.dialAt("//v1/vtuber/ws"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the key: %v", err)
	}
	h.brain.replies = said()
	if answer, body := h.ask(t, http.MethodPost, "/"+chatPath, chatOf("")); answer.StatusCode != 200 {
		t.Errorf("a chat: %d %s", answer.StatusCode, body)
	}
}

// TestUnsupportedParameters tests that parameters on whose effect the client relies are refused.
func TestUnsupportedParameters(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	for more, want := range map[string]string{
		`,"n":2`: "n must be 1",
		`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}`: "response_format",
		`,"response_format":{"type":"json_object"}`:                                        "response_format",
		`,"response_format":{"type":"text"}`:                                               "",
		`,"response_format":null,"n":null`:                                                 "",
		`,"response_format":"auto"`:                                                        "response_format may not be",
		`,"n":1`:                                                                           "",
		`,"n":1.0`:                                                                         "",
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(more+stream))
			if want == "" && answer.StatusCode != 200 || want != "" && (answer.StatusCode != 400 || !strings.Contains(body, want) ||
				!strings.Contains(body, `"type":"invalid_request_error"`)) {
				t.Errorf("%s: %d %s", more, answer.StatusCode, body)
			}
		}
	}
}

// TestResponsesAPI tests that the error for the Responses API names the supported API.
func TestResponsesAPI(t *testing.T) {
	h := newHarness(t)
	answer, body := h.ask(t, http.MethodPost, "/v1/responses", `{"model":"perch","input":"hello"}`)
	if answer.StatusCode != 404 || !strings.Contains(body, "/v1/chat/completions") || !strings.Contains(body, `"type":"invalid_request_error"`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if answer, _ := h.ask(t, http.MethodPost, "/v1/responses", `{}`, "Authorization", "Bearer x"); answer.StatusCode != 401 {
		t.Errorf("a wrong key: %d", answer.StatusCode)
	}
}
