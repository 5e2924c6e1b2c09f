package skin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/must"
)

const chatPath = "/v1/chat/completions"

// said returns the replies of a turn with two faces.
func said() []agent.Reply {
	return []agent.Reply{
		agent.Felt{Emotion: agent.Emotion{Name: "happy", Emoji: "😊"}, Intensity: 0.8}, agent.Say{Text: "Build is green."},
		agent.Felt{Emotion: agent.Emotion{Name: "loving", Emoji: "😍"}, Intensity: 1}, agent.Cue{Kind: "anim", Value: "wave"},
		agent.Say{Text: "Well done."},
		agent.Done{End: agent.Continue},
	}
}

const saidText = "[happy] Build is green. [love] [anim:wave] Well done."

// chatOf returns the body of a request with the message "hello". more is appended to its fields.
func chatOf(more string) string {
	return `{"model":"perch","messages":[{"role":"user","content":"hello"}]` + more + `}`
}

func TestChat(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(`,"temperature":0.7,"tools":[]`), "Origin", page)
	var c struct {
		ID, Object, Model string
		Created           int64
		Choices           []struct {
			Index   int
			Message struct{ Role, Content string }
			Finish  string `json:"finish_reason"`
		}
	}
	must.Succeed(t, json.Unmarshal([]byte(body), &c))
	if answer.StatusCode != 200 || !strings.HasPrefix(c.ID, "chatcmpl-") || c.Object != "chat.completion" || c.Model != "perch" ||
		len(c.Choices) != 1 ||
		c.Choices[0].Message.Role != "assistant" || c.Choices[0].Message.Content != saidText || c.Choices[0].Finish != "stop" ||
		time.Since(time.Unix(c.Created, 0)) > time.Minute {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if h := answer.Header; !strings.HasPrefix(h.Get("X-Session-Id"), "vtb_") || h.Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-Session-Id") {
		t.Errorf("%v", h)
	}
}

// TestStreamedChat compares a stream byte for byte.
func TestStreamedChat(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(`,"stream":true`))
	lines := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	head, _, _ := strings.Cut(lines[0], `"choices"`)
	want := []string{
		`[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"content":"[happy] Build is green."},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"content":" [love] [anim:wave] Well done."},"finish_reason":null}]}`,
		`[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
	}
	for i, w := range want {
		want[i] = head + `"choices":` + w
	}
	if want = append(want, "data: [DONE]"); !slices.Equal(lines, want) {
		t.Errorf("%s", body)
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(head, `"object":"chat.completion.chunk","created":`) {
		t.Errorf("%v %s", answer.Header, head)
	}
}

// TestUsage tests that every complete response has the number of tokens, and a stream only on request.
func TestUsage(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	const counted = `"usage":{"prompt_tokens":`
	if _, body := h.ask(t, http.MethodPost, chatPath, chatOf("")); !strings.Contains(body, counted) || !strings.Contains(body, `"total_tokens":`) {
		t.Errorf("%s", body)
	}
	_, body := h.ask(t, http.MethodPost, chatPath, chatOf(`,"stream":true,"stream_options":{"include_usage":true}`))
	events := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if n := len(events); n < 3 || strings.Count(body, `"usage"`) != 1 || !strings.Contains(events[n-2], `"choices":[],`+counted) || events[n-1] != "data: [DONE]" {
		t.Errorf("%s", body)
	}
}

// TestModelSelectsTags tests that the name of the model selects the words for faces.
func TestModelSelectsTags(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = []agent.Reply{agent.Felt{Emotion: agent.Neutral}, agent.Say{Text: "Hi."}, agent.Felt{Emotion: agent.Emotion{Name: "loving"}},
		agent.Say{Text: "Dear."}, agent.Felt{Emotion: agent.Neutral}, agent.Say{Text: "Well."}, agent.Done{}}
	for model, want := range map[string]string{
		"perch":         "Hi. [love] Dear. [neutral] Well.",
		"gpt-4o":        "Hi. [love] Dear. [neutral] Well.",
		"perch/live2d":  "Hi. [joy] Dear. [neutral] Well.",
		"perch/vrm":     "Hi. [happy] Dear. [neutral] Well.",
		"perch/xiaozhi": "Hi. [loving] Dear. [neutral] Well.",

		"perch/chatdollkit": "Hi. [face:Joy] Dear. [face:Neutral] Well.",
	} {
		if _, body := h.ask(t, http.MethodPost, chatPath, strings.Replace(chatOf(""), `"perch"`, `"`+model+`"`, 1)); !strings.Contains(body,
			`"content":"`+want+`"`) ||
			!strings.Contains(body, `"model":"`+model+`"`) {
			t.Errorf("%s: %s", model, body)
		}
	}
}

func TestModels(t *testing.T) {
	h := newHarness(t)
	answer, body := h.ask(t, http.MethodGet, "/v1/models", "")
	var list models
	if err := json.Unmarshal([]byte(body), &list); err != nil || answer.StatusCode != 200 || list.Object != "list" || len(list.Data) != 9 ||
		list.Data[0].ID != "perch" || list.Data[0].Object != "model" || list.Data[0].Created == 0 {
		t.Errorf("%s (%v)", body, err)
	}
	for id, want := range map[string]string{"perch": `{"id":"perch","object":"model"`, "perch/vrm": `{"id":"perch/vrm"`,
		"gpt-4o": `"code":"model_not_found"`} {
		if _, body := h.ask(t, http.MethodGet, "/v1/models/"+id, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s", id, body)
		}
	}
}

// TestTalksContinue tests that a request with the name of a session or a user continues the conversation, and
// that a request without a name begins a new conversation.
func TestTalksContinue(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	ask := func(text, user string, header ...string) (session string, turn agent.Turn) {
		t.Helper()
		answer, body := h.ask(t, http.MethodPost, chatPath, `{"messages":[{"role":"user","content":"`+text+`"}],"user":"`+user+`"}`, header...)
		if answer.StatusCode != 200 {
			t.Fatal(body)
		}
		turns := h.brain.turns()
		return answer.Header.Get("X-Session-Id"), turns[len(turns)-1]
	}
	for _, c := range []struct {
		name, user string
		header     []string
		session    string
	}{
		{"a session", "", []string{"X-Session-Id", "kitchen"}, "vtb_kitchen"},
		{"as it was given", "", []string{"X-Session-Id", "vtb_kitchen2"}, "vtb_kitchen2"},
		{"a user", "ann@example.com", nil, ""},
		{"a session before a user", "ann@example.com", []string{"X-Session-Id", "hall"}, "vtb_hall"},
		{"a name that cannot be shown", "", []string{"X-Session-Id", "the \"kitchen\""}, ""},
	} {
		session, first := ask("one", c.user, c.header...)
		again, second := ask("two", c.user, c.header...)
		if session != again || c.session != "" && session != c.session || !strings.HasPrefix(session, "vtb_") ||
			strings.ContainsAny(session, "@\" ") ||
			len(first.History) != 0 || len(second.History) != 1 ||
			second.History[0] != (agent.Exchange{Heard: "one", Said: "Build is green. Well done.", Emoji: "😊"}) ||
			first.Conversation != second.Conversation || first.Robot != "" || first.Untrusted || first.Session != session || first.Language != "en" {
			t.Errorf("%s: %s, %s, %+v", c.name, session, again, second)
		}
	}
	session, first := ask("one", "")
	other, second := ask("two", "")
	if session == other || first.Conversation == second.Conversation || len(second.History) != 0 {
		t.Errorf("who has no name: %s, %s, %+v", session, other, second)
	}
	if again, third := ask("three", "", "X-Session-Id", other); again != other || third.Conversation != second.Conversation {
		t.Errorf("who takes the name it was given: %s, %+v", again, third)
	}
}

// TestJoinedTalk tests that a client can join the conversation of a robot, whose events are then published
// under another session.
func TestJoinedTalk(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = append([]agent.Reply{agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolRunning}},
		agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolDone}}}, said()...)
	h.mind.AddExchange(string(robotA), agent.Exchange{Heard: "I am Ann.", Said: "Hello Ann."}, noon)
	h.happens(robotA, "s1", event.RobotOnline{}, event.ListeningStarted{})
	reader := h.bus.Read()
	c := h.connect(t)
	c.until()
	answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "robot:A0-B1-C2-D3-E4-F5")
	if session := answer.Header.Get("X-Session-Id"); answer.StatusCode != 200 || session != "vtb_a0b1c2d3e4f5" {
		t.Errorf("%d %s %s", answer.StatusCode, session, body)
	}
	turn := h.brain.turns()[0]
	if turn.Language != "de" {
		t.Errorf("the turn is in %q", turn.Language)
	}
	if turn.Conversation != string(robotA) || turn.Robot != robotA || len(turn.History) != 1 || turn.History[0].Said != "Hello Ann." {
		t.Errorf("%+v", turn)
	}
	frames := strings.Join(c.until(), "\n")
	for _, want := range []string{`"working","session_id":"vtb_a0b1c2d3e4f5"`, `"tag":"happy","intensity":0.8`, `"tag":"love","intensity":1`,
		`"attention","session_id":"vtb_a0b1c2d3e4f5"`} {
		if !strings.Contains(frames, want) {
			t.Errorf("%s is not in\n%s", want, frames)
		}
	}
	if strings.Contains(frames, `"s1"`) || h.board.Robot(robotA).At(time.Now()) != agent.Listening || h.board.Robot(robotA).Session != "s1" {
		t.Errorf("the robot's own state has changed: %+v\n%s", h.board.Robot(robotA), frames)
	}
	// The session ID in the response identifies the same conversation.
	if answer, _ := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "vtb_a0b1c2d3e4f5"); answer.Header.Get(
		"X-Session-Id") != "vtb_a0b1c2d3e4f5" {
		t.Error(answer.Header)
	}
	if turns := h.brain.turns(); turns[1].Conversation != string(robotA) || len(turns[1].History) != 2 {
		t.Errorf("%+v", turns[1])
	}
	c.until()
	// Joining the conversation of a robot that was never online gives the robot no state.
	h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "robot:"+string(robotB))
	if frames := strings.Join(c.until(), "\n"); strings.Contains(frames, `"robot"`) || h.board.Robot(robotB).Session != "" {
		t.Errorf("%+v\n%s", h.board.Robot(robotB), frames)
	}
	for seq := h.bus.Seq(); ; {
		e, err := reader.Next(t.Context())
		if _, waves := e.Event.(event.Gesture); err != nil || e.Robot != "" && !waves {
			t.Fatalf("the robot is said to take part: %+v (%v)", e, err)
		}
		if e.Seq == seq {
			break
		}
	}
	for session, want := range map[string]string{"robot:kitchen": "400 bad_robot_id", "robot:020000000001": "404 unknown_robot"} {
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", session)
		if got := fmt.Sprint(answer.StatusCode); !strings.HasPrefix(want, got) || !strings.Contains(body, want[4:]) {
			t.Errorf("%s: %s %s", session, got, body)
		}
	}
}

// TestChatIsShown tests the frames of a chat.
func TestChatIsShown(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = append([]agent.Reply{agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolRunning}},
		agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolDone}}}, said()...)
	c := h.connect(t)
	c.send(`{"type":"subscribe","states":"all"}`)
	c.answered()
	h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "desk")
	const s = `"session_id":"vtb_desk"`
	c.expect(
		`{"type":"agent_state","state":"thinking",`+s+`}`,
		`{"type":"tool_status",`+s+`,"tool_id":"t","tool_name":"look","status":"running"}`,
		`{"type":"agent_state","state":"working",`+s+`,"detail":{"tool_name":"look","subagent_count":0}}`,
		`{"type":"tool_status",`+s+`,"tool_id":"t","tool_name":"look","status":"completed"}`,
		`{"type":"agent_state","state":"thinking",`+s+`}`,
		`{"type":"emotion",`+s+`,"tag":"happy","intensity":0.8}`,
		`{"type":"agent_state","state":"speaking",`+s+`}`,
		`{"type":"emotion",`+s+`,"tag":"love","intensity":1}`,
		`{"type":"agent_state","state":"attention",`+s+`}`,
	)
}

func TestQuestionAndHistory(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	for _, c := range []struct {
		messages string
		text     string
		history  []agent.Exchange
	}{
		{`[{"role":"user","content":" hello\u0007 "}]`, "hello", nil},
		{`[{"role":"user","content":[{"type":"text","text":"what is"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"this?"}]}]`, "what is\nthis?", nil},
		{`[{"role":"system","content":"You are a cat."},{"role":"user","content":"one"},{"role":"assistant","content":"[happy] two"},{"role":"user","content":"three"}]`,
			"three", []agent.Exchange{{Heard: "one", Said: "[happy] two"}}},
		{`[{"role":"assistant","content":"hi"},{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":null},{"role":"user","content":"c"},{"role":"assistant","content":"so far"}]`,
			"c", []agent.Exchange{{Heard: "a"}, {Heard: "b"}}},
	} {
		if answer, body := h.ask(t, http.MethodPost, chatPath, `{"messages":`+c.messages+`}`); answer.StatusCode != 200 {
			t.Fatal(body)
		}
		turns := h.brain.turns()
		if got := turns[len(turns)-1]; got.Text != c.text || !slices.Equal(got.History, c.history) {
			t.Errorf("%s: %q, %+v", c.messages, got.Text, got.History)
		}
	}
}

// TestRefusedChats tests that refused requests get an error in OpenAI's format.
func TestRefusedChats(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	many := `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 9999) + `{"role":"user","content":"x"}]}`
	for _, c := range []struct {
		name, body string
		header     []string
		want       string
		message    string // a part of the message
	}{
		{"no JSON", `hello`, nil, "400 invalid_request_error bad_request", "JSON"},
		{"no messages", `{}`, nil, "400 invalid_request_error bad_request", "no message with the role user"},
		{"nothing of a user", `{"messages":[{"role":"system","content":"x"}]}`, nil, "400 invalid_request_error bad_request", "user"},
		{"an empty message", `{"messages":[{"role":"user","content":" "}]}`, nil, "400 invalid_request_error bad_request", "empty"},
		{"a picture alone", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, nil, "400 invalid_request_error bad_request",
			"image_url"},
		{"a wrong content", `{"messages":[{"role":"user","content":7}]}`, nil, "400 invalid_request_error bad_request", "list of parts"},
		{"10 000 messages", many, nil, "400 invalid_request_error bad_request", "10000 entries, more than 1000"},
		{"a long message", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 17<<10) + `"}]}`, nil,
			"400 invalid_request_error bad_request", "16384"},
		{"a long name", chatOf(""), []string{"X-Session-Id", strings.Repeat("x", 513)}, "400 invalid_request_error bad_request", "512"},
		{"an unknown model", strings.Replace(chatOf(""), `"perch"`, `"perch/klingon"`, 1), nil, "404 invalid_request_error model_not_found",
			"klingon"},
		{"a body of 1 MB", chatOf(`,"x":"` + strings.Repeat("x", 1<<20) + `"`), nil, "413 invalid_request_error body_too_large", "1 MB"},
		{"a wrong key", chatOf(""), []string{"Authorization", "Bearer x"}, "401 authentication_error wrong_key", "skins.key"},
		{"a key in the address", chatOf(""), []string{"Authorization", ""}, "401 authentication_error wrong_key", ""},
	} {
		for _, stream := range []string{"", `{"stream":true,`} {
			body := c.body
			if stream != "" && strings.HasPrefix(body, `{"m`) {
				body = stream + body[1:]
			}
			answer, text := h.ask(t, http.MethodPost, chatPath, body, c.header...)
			var shown errorResponse
			if err := json.Unmarshal([]byte(text), &shown); err != nil {
				t.Errorf("%s: %s", c.name, text)
			}
			got := fmt.Sprint(answer.StatusCode, " ", shown.Error.Type, " ", shown.Error.Code)
			if got != c.want || !strings.Contains(shown.Error.Message, c.message) || len(text) > 1000 ||
				answer.Header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("%s: %s %.300s, want %s", c.name, got, text, c.want)
			}
			if answer.Header.Get("WWW-Authenticate") != map[bool]string{true: `Bearer realm="perch"`}[answer.StatusCode == 401] {
				t.Errorf("%s: %v", c.name, answer.Header)
			}
		}
	}
	if n := len(h.brain.turns()); n > 0 {
		t.Errorf("%d of them were answered", n)
	}
}

// TestAgentFails tests the response if the agent fails before or during its reply.
func TestAgentFails(t *testing.T) {
	h := newHarness(t)
	h.brain.err = fmt.Errorf("the secret cause: %w", agent.ErrAway)
	for _, more := range []string{"", `,"stream":true`} {
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(more))
		if answer.StatusCode != 503 || !strings.Contains(body, `"type":"server_error"`) || !strings.Contains(body, `"code":"no_brain"`) ||
			strings.Contains(body, "secret") {
			t.Errorf("%d %s", answer.StatusCode, body)
		}
	}
	h.brain.replies = said()[:2]
	answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(`,"stream":true`))
	lines := strings.Split(strings.TrimSpace(body), "\n\n")
	if last := lines[len(lines)-1]; answer.StatusCode != 200 || !strings.HasPrefix(last, `data: {"error":{"message":"no brain`) ||
		strings.Contains(body, "[DONE]") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	c := h.connect(t)
	if all := strings.Join(c.until(), "\n"); strings.Count(all, `"state":"error"`) != 3 {
		t.Error(all)
	}
}

// hanging is a brain that answers once release is closed.
type hanging struct {
	entered chan context.Context
	release chan struct{}
}

func (b *hanging) think(ctx context.Context, _ agent.Turn, out func(agent.Reply) error) error {
	b.entered <- ctx
	select {
	case <-b.release:
	case <-ctx.Done():
		// Not every brain stops when its turn is cancelled.
		_ = out(agent.Say{Text: "too late"})
		return ctx.Err()
	}
	if err := out(agent.Say{Text: "done"}); err != nil {
		return err
	}
	return out(agent.Done{})
}

// TestOneTurnAtATime tests that one turn runs at a time in a conversation, and four in total.
func TestOneTurnAtATime(t *testing.T) {
	h := newHarness(t)
	b := &hanging{make(chan context.Context), make(chan struct{})}
	h.brain.think = b.think
	var wg sync.WaitGroup
	begin := func(session string) {
		wg.Go(func() {
			if answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", session); answer.StatusCode != 200 {
				t.Error(body)
			}
		})
		<-b.entered
	}
	refused := func(session string) {
		t.Helper()
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", session)
		if answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "3" ||
			!strings.Contains(body, `"message":"agent is busy, retry in a moment","type":"rate_limit_error"`) {
			t.Errorf("%s: %d %v %s", session, answer.StatusCode, answer.Header, body)
		}
	}
	begin("one")
	refused("one")
	begin("two")
	begin("three")
	begin("four")
	refused("five")
	close(b.release)
	wg.Wait()
	wg.Go(func() { <-b.entered })
	if answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "one"); answer.StatusCode != 200 {
		t.Error(body)
	}
	wg.Wait()
}

// TestLeavingEndsTurn tests that the turn ends when the client disconnects, and that later replies reach
// neither the next request nor the memory.
func TestLeavingEndsTurn(t *testing.T) {
	for _, more := range []string{"", `,"stream":true`} {
		h := newHarness(t)
		b := &hanging{make(chan context.Context), make(chan struct{})}
		h.brain.think = b.think
		c := h.connect(t)
		c.send(`{"type":"subscribe","events":["agent_state","notification"]}`)
		c.answered()
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+chatPath, strings.NewReader(chatOf(more)))
		must.Succeed(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("X-Session-Id", "desk")
		left := make(chan error)
		go func() {
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				err = answer.Body.Close()
			}
			left <- err
		}()
		thinking := <-b.entered
		c.expect(`{"type":"agent_state","state":"thinking","session_id":"vtb_desk"}`)
		leave()
		if err := <-left; err == nil {
			t.Error("it was answered")
		}
		<-thinking.Done()
		c.expect(`{"type":"agent_state","state":"idle","session_id":"vtb_desk"}`)
		close(b.release)
		go func() { <-b.entered }()
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "desk")
		if answer.StatusCode != 200 || !strings.Contains(body, `"content":"done"`) {
			t.Errorf("%d %s", answer.StatusCode, body)
		}
		if turns := h.brain.turns(); len(turns[len(turns)-1].History) != 0 {
			t.Errorf("remembered is %+v", turns[len(turns)-1].History)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestQuestionsAreClosed tests that a question of the agent is closed at once in a chat, where nobody can be
// asked.
func TestQuestionsAreClosed(t *testing.T) {
	h := newHarness(t)
	h.brain.think = func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		answers := make(chan agent.Answer, 1)
		if err := out(agent.Ask{ID: "q", Text: "May I?", Answer: func(a agent.Answer) { answers <- a }}); err != nil {
			return err
		}
		return out(agent.Say{Text: string((<-answers).Outcome)})
	}
	if _, body := h.ask(t, http.MethodPost, chatPath, chatOf("")); !strings.Contains(body, `"content":"closed"`) {
		t.Error(body)
	}
}

// TestPreflight tests that web pages may send the headers that OpenAI's library sends.
func TestPreflight(t *testing.T) {
	h := newHarness(t)
	for origin, want := range map[string]int{page: 204, "https://evil.example": 403} {
		answer, _ := h.ask(t, http.MethodOptions, chatPath, "", "Origin", origin, "Authorization", "", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type,x-session-id,x-stainless-os")
		allowed := answer.Header.Get("Access-Control-Allow-Headers")
		if answer.StatusCode != want || want == 204 && (!strings.Contains(allowed, "X-Session-Id") || !strings.Contains(allowed, "x-stainless-os")) {
			t.Errorf("%s: %d %v", origin, answer.StatusCode, answer.Header)
		}
	}
}

// pen is a ResponseWriter that writes to a pipe.
type pen struct {
	http.ResponseWriter
	io.Writer
}

func (p pen) Write(b []byte) (int, error) { return p.Writer.Write(b) }
func (p pen) Header() http.Header         { return http.Header{} }
func (p pen) WriteHeader(int)             {}
func (p pen) Flush()                      {}

// TestStreamIsKeptAlive tests that the stream has comments while the agent thinks.
func TestStreamIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newStream(pen{Writer: w}, ": begins\n\n")
		began := time.Now()
		lines := bufio.NewReader(r)
		for n := 1; n <= 2; n++ {
			line, err := lines.ReadString('\n')
			if blank, _ := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, ":") || blank != "\n" ||
				time.Since(began) != beginWithin+time.Duration(n-1)*keepAlive {
				t.Errorf("%q after %v (%v)", line, time.Since(began), err)
			}
		}
		s.finish()
		if err := s.send("x"); err == nil {
			t.Error("it goes on after its end")
		}
		time.Sleep(10 * keepAlive)
	})
}

func FuzzChat(f *testing.F) {
	for _, seed := range []string{chatOf(""), `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"user":"u","model":"perch/vrm"}`,
		`{"messages":[{}]}`} {
		f.Add([]byte(seed), "s")
	}
	f.Add([]byte(chatOf("")), "robot:a0b1c2d3e4f5")
	bus := event.NewBus()
	f.Cleanup(bus.Close)
	s := New(bare(bus, agent.NewBoard()))
	f.Fuzz(func(t *testing.T, body []byte, session string) {
		q, err := s.parse(body, session)
		if err != nil {
			if status, shown := openAIError(err); status < 400 || status >= 500 || shown.Error.Message == "" || len(shown.Error.Message) > 2000 {
				t.Errorf("%v: %d", err, status)
			}
			return
		}
		if q.text == "" || len(q.text) > limit.Question || len(q.history) > maxMessages || !strings.HasPrefix(q.conversation.session, "vtb_") ||
			len(q.conversation.session) > 60 ||
			!s.o.Words.Knows(q.words) || q.conversation.robot == "" && !strings.HasPrefix(q.conversation.key, "skin:") {
			t.Errorf("%+v", q)
		}
	})
}

// TestChatForOtherServers tests that Server.Chat follows the rules of chat requests: it publishes events under
// the session, continues a conversation by name, runs one turn at a time, and refuses invalid texts and
// characters.
func TestChatForOtherServers(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	session, err := h.server.SessionOf("desk")
	if err != nil || session != "vtb_desk" {
		t.Fatal(session, err)
	}
	none := func(agent.Reply) error { return nil }
	for character, text := range map[string]string{"": " \x00\n", "leo": "hello"} {
		if err := h.server.Chat(t.Context(), "vtb_desk", character, text, none); err == nil ||
			!strings.Contains(err.Error(), map[string]string{"": "empty", "leo": "no model"}[character]) {
			t.Errorf("%q by %q: %v", text, character, err)
		}
	}
	err = h.server.Chat(t.Context(), "vtb_desk", "", strings.Repeat("x", limit.Question+1), none)
	if err == nil || !strings.Contains(err.Error(), "more than") || len(h.brain.turns()) != 0 {
		t.Errorf("a long text: %v; turns %+v", err, h.brain.turns())
	}
	if err := h.server.Chat(t.Context(), "robot:nobody", "", "hello", nil); err == nil {
		t.Error("an unknown robot has a talk")
	}
	c := h.connect(t)
	said := ""
	err = h.server.Chat(t.Context(), "desk", "", "hello", func(r agent.Reply) error {
		if s, is := r.(agent.Say); is {
			said += s.Text
			if err := h.server.Chat(t.Context(), "desk", "", "at once", none); !errors.Is(err, errBusy) {
				t.Errorf("a second turn in the same talk: %v", err)
			}
		}
		return nil
	})
	if err != nil || said == "" {
		t.Fatalf("%q, %v", said, err)
	}
	if got := strings.Join(c.until(), "\n"); !strings.Contains(got, `"thinking","session_id":"vtb_desk"`) {
		t.Errorf("skins are shown %s", got)
	}
}

// TestSkinsOfStrangers tests that a robot that is not adopted gets no notifications, and that turns in its
// conversation are untrusted.
func TestSkinsOfStrangers(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	for robot, guest := range map[string]bool{string(robotA): false, string(stranger): true} {
		for _, session := range []string{"robot:" + robot, "vtb_" + robot} {
			answer, body := h.ask(t, http.MethodPost, chatPath, `{"messages":[{"role":"user","content":"Hi."}]}`, "X-Session-Id", session)
			if answer.StatusCode != 200 {
				t.Fatal(body)
			}
			turns := h.brain.turns()
			if turn := turns[len(turns)-1]; turn.Untrusted != guest || turn.Stranger() != guest || string(turn.Robot) != robot {
				t.Errorf("%s is answered as %+v", session, turn)
			}
		}
	}
	if answer, body := h.ask(t, http.MethodPost, notificationsPath, `{"text":"tea","robot":"`+string(stranger)+`"}`); answer.StatusCode != 404 ||
		!strings.Contains(body, "perch robot adopt") {
		t.Errorf("a stranger is answered: %d %s", answer.StatusCode, body)
	}
}
