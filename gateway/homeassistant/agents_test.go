package homeassistant

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/topic"
	"perch/waittest"
)

// waitingQuestions holds the questions of agents, as gateway/hooks does.
type waitingQuestions struct {
	mu      sync.Mutex
	harness *harness
	open    []agent.Question
	replied []string
}

func (d *waitingQuestions) Questions() []agent.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.open)
}

func (d *waitingQuestions) Reply(id string, allow bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, q := range d.open {
		if q.ID == id {
			d.open = slices.Delete(d.open, i, i+1)
			d.replied = append(d.replied, fmt.Sprint(id, " ", allow))
			d.harness.happens("", q.Session, event.Answered{ID: id, Answer: "allowed"})
			return nil
		}
	}
	return agent.ErrNoQuestion
}

// asks makes an agent ask for a permission.
func (d *waitingQuestions) asks(session, id, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, agent.Question{ID: id, Text: text, Session: session})
	d.harness.happens("", session, event.Asked{ID: id, Text: text})
}

func (d *waitingQuestions) replies() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.replied)
}

// withQuestions returns a change of a harness whose mirror uses d and has a user at the broker.
func withQuestions(d *waitingQuestions) func(*harness, *script) {
	return func(h *harness, _ *script) { d.harness, h.options.Questions, h.options.User = h, d, user }
}

const (
	coding1  = "perch/agent_coding-1/"
	codingIs = "homeassistant/device/perch_agent_coding-1/config"
)

func running(id, name string) event.ToolStatus {
	return event.ToolStatus{ID: id, Name: name, Status: event.ToolRunning, Detail: "npm test"}
}

// TestAnAgentIsADevice tests that the device of a coding session shows the state, tools and questions of the session, is
// removed an hour after the last event, and is added again with the next event.
func TestAnAgentIsADevice(t *testing.T) {
	d := &waitingQuestions{}
	inBubble(t, withQuestions(d), func(t *testing.T, h *harness, s *script) {
		h.happens("", "coding-1", event.ThinkingStarted{Brain: "claude-code"}, running("t1", "Bash"))
		synctest.Wait()
		if c := s.last(codingIs); !has(`"Coding 1"`, `"agent_state"`, `"12ab`)(strings.ReplaceAll(c, "0a1b2c3d", "12ab")) {
			t.Fatalf("it is announced as %s", c)
		}
		want := `{"type":"tool_status","session_id":"coding-1","tool_id":"t1","tool_name":"Bash","status":"running","content":"npm test"}`
		if got := s.last(coding1 + "tool"); got != want {
			t.Errorf("its tool is published as %s", got)
		}
		want = `{"agent_state":"working","session_id":"coding-1","tool_name":"Bash","tool_status":"running","question":null,"question_id":null,"answerable":false}`
		if got := s.last(coding1 + "state"); got != want {
			t.Errorf("it is %s", got)
		}
		h.happens("", "coding-1", event.ToolStatus{ID: "t1", Name: "Bash", Status: event.ToolFailed}, event.TurnEnded{End: event.EndDone})
		synctest.Wait()
		if got := states(s.texts(coding1 + "state")); !slices.Equal(got, []string{"idle", "thinking", "working", "error", "attention"}) {
			t.Errorf("it was %q", got)
		}
		time.Sleep(59 * time.Minute)
		if got := s.last(coding1 + "state"); !has(`"idle"`, `"tool_status":"error"`)(got) {
			t.Errorf("after its turn it is %s", got)
		}
		time.Sleep(2 * time.Minute)
		if s.last(codingIs) != "" || s.last(coding1+"state") != "" {
			t.Errorf("after an hour it is there still: %s", s.last(codingIs))
		}
		if ids, there, _ := h.options.Announced.Get("agent_coding-1"); there {
			t.Errorf("still remembered: %q", ids)
		}
		// When Home Assistant starts again, the device is announced and removed once more.
		before := len(s.on(codingIs))
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("online")})
		time.Sleep(10 * time.Second)
		if sent := s.on(codingIs)[before:]; len(sent) != 2 || len(sent[0].Payload) == 0 || len(sent[1].Payload) > 0 {
			t.Errorf("at its start Home Assistant is sent %v", sent)
		}
		h.happens("", "coding-1", event.ThinkingStarted{})
		synctest.Wait()
		if !has(`"thinking"`)(s.last(coding1+"state")) || s.last(codingIs) == "" {
			t.Error("it does not come back")
		}
	})
}

// TestAQuestionIsAnsweredByAButton tests that a button answers the question that is shown, that a second press does not
// answer the next question, and that an answer with an ID can answer any waiting question.
func TestAQuestionIsAnsweredByAButton(t *testing.T) {
	d := &waitingQuestions{}
	inBubble(t, withQuestions(d), func(t *testing.T, h *harness, s *script) {
		press := func(payload string) {
			s.take(incoming{Topic: coding1 + "answer/set", Payload: []byte(payload)})
			synctest.Wait()
		}
		d.asks("coding-1", "q1", "May I run npm test?")
		d.asks("coding-1", "q2", "May I run rm?")
		d.asks("coding-1", "q3", "May I run ls?")
		synctest.Wait()
		if got := s.last(coding1 + "state"); !has(`"notification"`, `"question":"May I run npm test?","question_id":"q1","answerable":true`)(got) {
			t.Errorf("it is %s", got)
		}
		if i := s.info(t); i.Waiting != 1 {
			t.Errorf("%d agents wait", i.Waiting)
		}
		press(discovery.Allow) // too soon, because nobody can have read the question
		time.Sleep(2 * time.Second)
		press(discovery.Deny)
		press(discovery.Deny) // the second press
		if got := d.replies(); !slices.Equal(got, []string{"q1 false"}) {
			t.Fatalf("answered is %q", got)
		}
		if got := s.last(coding1 + "state"); !has(`"q2"`)(got) {
			t.Errorf("it is %s", got)
		}
		press(`{"id":"q3","allow":true}`)
		press(`{"id":"q3","allow":true}`)
		time.Sleep(2 * time.Second)
		for _, nonsense := range []string{"", "ALLOW", "yes", `{"id":"q2"}`, `{"allow":true}`, `{"id":"q1","allow":true}`,
			`{"id":"q2","allow":true,"x":1}`, strings.Repeat("x", 2000)} {
			press(nonsense)
		}
		s.take(incoming{Topic: coding1 + "answer/set", Payload: []byte(discovery.Allow), Retained: true})
		s.take(incoming{Topic: coding1 + "say/set", Payload: []byte(discovery.Allow)})
		s.take(incoming{Topic: "perch/agent_coding-2/answer/set", Payload: []byte(discovery.Allow)})
		synctest.Wait()
		if got := d.replies(); !slices.Equal(got, []string{"q1 false", "q3 true"}) {
			t.Fatalf("answered is %q", got)
		}
		press("allow")
		time.Sleep(time.Second)
		if got := s.last(coding1 + "state"); len(d.replies()) != 3 || !has(`"question":null`, `"answerable":false`)(got) ||
			has(`"notification"`)(got) {
			t.Errorf("answered is %q, and then it is %s", d.replies(), got)
		}
		if i := s.info(t); i.Waiting != 0 {
			t.Errorf("then %d agents wait", i.Waiting)
		}
		press(discovery.Allow)
		// A session that only waits for a person cannot be answered with yes or no.
		h.happens("", "coding-1", event.TurnEnded{End: event.EndCancelled},
			event.Asked{ID: "coding-1-waits", Text: "A coding session waits for you."})
		time.Sleep(2 * time.Second)
		press(discovery.Allow)
		if got := s.last(coding1 + "state"); !has(`"notification"`, "waits for you", `"answerable":false`)(got) || len(d.replies()) != 3 {
			t.Errorf("it is %s", got)
		}
	})
}

// TestABrokerForEverybodyAnswersNothing tests that questions cannot be answered over a broker without users. On such a
// broker, anybody on the network could allow a command on a person's machine.
func TestABrokerForEverybodyAnswersNothing(t *testing.T) {
	d := &waitingQuestions{}
	inBubble(t, func(h *harness, s *script) { withQuestions(d)(h, s); h.options.User = "" }, func(t *testing.T, h *harness, s *script) {
		d.asks("coding-1", "q1", "May I?")
		time.Sleep(2 * time.Second)
		s.take(incoming{Topic: coding1 + "answer/set", Payload: []byte(discovery.Allow)})
		s.take(incoming{Topic: coding1 + "answer/set", Payload: []byte(`{"id":"q1","allow":true}`)})
		time.Sleep(time.Second)
		if got := s.last(coding1 + "state"); len(d.replies()) > 0 || !has(`"May I?"`, `"answerable":false`)(got) || h.log.Lines("mqtt.user") != 2 {
			t.Errorf("answered is %q, and it is %s", d.replies(), got)
		}
	})
}

// TestAgentsAreBounded tests that many invented sessions get at most maxAgents devices, that a new one replaces the
// oldest one, and that removed ones leave nothing behind.
func TestAgentsAreBounded(t *testing.T) {
	d := &waitingQuestions{}
	inBubble(t, withQuestions(d), func(t *testing.T, h *harness, s *script) {
		d.asks("coding-1", "q1", "May I?")
		const many = 400
		for i := range many {
			session := fmt.Sprintf("vtb_%03d ⚑/+#", i)
			for range 2 {
				h.happens("", session, event.Heard{Text: "x"}, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone})
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		there := map[string]bool{}
		s.mu.Lock()
		for _, m := range s.got {
			if strings.HasPrefix(m.Topic, "homeassistant/device/perch_agent_") {
				there[m.Topic] = len(m.Payload) > 0
			}
		}
		s.mu.Unlock()
		now := 0
		for _, is := range there {
			if is {
				now++
			}
		}
		if now != maxAgents || len(there) < 300 || !there[codingIs] {
			t.Errorf("%d devices are there of %d that were; the one that asks is %t", now, len(there), there[codingIs])
		}
		kept := 0
		for key := range h.options.Announced.All() {
			if strings.HasPrefix(key, topic.AgentPrefix) {
				kept++
			}
		}
		if kept != maxAgents {
			t.Errorf("%d are remembered", kept)
		}
		// The number of messages that are published again is bounded too.
		sent := func() (n int) { s.set(func() { n = len(s.got) }); return n }
		before := sent()
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("online")})
		time.Sleep(10 * time.Second)
		if n := sent() - before; n > 3*(maxAgents+maxRemoved)+20 {
			t.Errorf("%d messages are published anew", n)
		}
	})
}

// TestChatsOfOneQuestionAreNoDevices tests that a session with a single question gets no device. A client that names no
// session starts a new session for every question.
func TestChatsOfOneQuestionAreNoDevices(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		chat := func(session string) {
			h.happens("", session, event.Heard{Text: "x"}, event.ThinkingStarted{}, running("t", "look"), event.Said{Text: "y"},
				event.TurnEnded{End: event.EndDone})
			synctest.Wait()
		}
		for i := range 500 {
			chat(fmt.Sprint("vtb_once", i))
		}
		chat("vtb_desk")
		if topics := s.about("agent_"); len(topics) > 0 {
			t.Fatalf("published on %q", topics)
		}
		chat("vtb_desk")
		if got := s.last("perch/agent_vtb_desk/state"); !has(`"attention"`, `"tool_name":"look"`)(got) {
			t.Errorf("it is %q", got)
		}
		if c := s.last("homeassistant/device/perch_agent_vtb_desk/config"); !has(`"Chat desk"`)(c) {
			t.Errorf("it is announced as %s", c)
		}
		if text := s.last("perch/agent_vtb_desk/tool") + s.last("perch/agent_vtb_desk/state"); strings.Contains(text, `"x"`) ||
			strings.Contains(text, `"y"`) {
			t.Errorf("what was said is published: %s", text)
		}
	})
}

// TestViewersAreNoAgents tests that the sessions that a program that shows an agent names in its reports get no devices.
func TestViewersAreNoAgents(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		for i, e := range []event.Event{event.Thought{Text: "x"}, event.Said{Text: "x", By: event.ByViewer}, event.SkillStarted{Skill: "x"},
			event.SkillDone{Skill: "x"}, event.SkillFailed{Skill: "x"}, event.Remembered{ID: "x"}, event.Signed{Message: "x"}, event.Emote{},
			event.Gesture{Name: "wave"}, event.LookAt{Target: "user"}, event.Expression{}, event.Mood{}, event.Presence{}, event.LoadStarted{},
			event.LoadEnded{}, event.Validated{}} {
			h.happens("", fmt.Sprint("vtb_viewer", i), e)
		}
		synctest.Wait()
		if topics := s.about("agent_"); len(topics) > 0 {
			t.Errorf("published on %q", topics)
		}
	})
}

// TestAgentsOfAnEarlierRun tests that the agents that were announced before the start are removed, except one that is
// not idle.
func TestAgentsOfAnEarlierRun(t *testing.T) {
	d := &waitingQuestions{}
	inBubble(t, func(h *harness, s *script) {
		withQuestions(d)(h, s)
		h.options.Announced.PutSoon("agent_coding-1", []string{"sensor/agent_state"})
		h.options.Announced.PutSoon("agent_vtb_desk", []string{"sensor/agent_state", "sensor/old"})
		d.asks("coding-1", "q1", "May I?")
		synctest.Wait() // until the board has handled the event
	}, func(t *testing.T, h *harness, s *script) {
		if s.last(codingIs) == "" || !has(`"notification"`, `"q1"`, `"answerable":true`)(s.last(coding1+"state")) {
			t.Errorf("it is %s, announced as %s", s.last(coding1+"state"), s.last(codingIs))
		}
		gone := s.on("homeassistant/device/perch_agent_vtb_desk/config")
		if len(gone) != 2 || len(gone[0].Payload) == 0 || len(gone[1].Payload) > 0 || !gone[1].Retained {
			t.Errorf("the ghost: %v", gone)
		}
		if _, there, _ := h.options.Announced.Get("agent_vtb_desk"); !there {
			t.Error("it is forgotten before the broker can have taken it")
		}
		time.Sleep(3 * reconcileInterval)
		if _, there, _ := h.options.Announced.Get("agent_vtb_desk"); there {
			t.Error("it is remembered for ever")
		}
	})
}

// TestAgentsAfterALoss tests that after lost events the states are read from the board, and the questions from
// Options.Questions.
func TestAgentsAfterALoss(t *testing.T) {
	d := &waitingQuestions{}
	h := newHarness()
	defer h.bus.Close()
	withQuestions(d)(h, nil)
	hub := h.hub(t)
	hub.start(time.Now())
	hub.onEvent(t.Context(), event.Envelope{Seq: 1, At: time.Now(), Session: "coding-1", Event: event.ThinkingStarted{}})
	d.asks("coding-1", "q1", "May I?")
	waittest.For(t, "the board", func() bool {
		states, _ := h.board.Snapshot()
		return len(states) == 1 && states[0].At(time.Now()) == agent.Notification
	})
	hub.onEvent(t.Context(), event.Envelope{At: time.Now(), Event: event.Missed{N: 3}})
	if v := hub.agents.views["coding-1"]; v.Shown != agent.Notification || !v.Document().Answerable || hub.bridge.info.Waiting != 1 {
		t.Errorf("%+v", v)
	}
	h.happens("", "coding-2", event.ThinkingStarted{})
	d.mu.Lock()
	d.open = nil
	d.mu.Unlock()
	h.board.HandleEvent(event.Envelope{Seq: 9, At: time.Now(), Session: "coding-1", Event: event.TurnEnded{End: event.EndCancelled}})
	hub.onEvent(t.Context(), event.Envelope{At: time.Now(), Event: event.Missed{N: 3}})
	if v := hub.agents.views["coding-1"]; v.Shown != agent.Idle || v.Document().Question != nil || hub.bridge.info.Waiting != 0 {
		t.Errorf("%+v", v.Document())
	}
}

// TestAgentIDs tests that an agent ID is stable, is valid in a topic, and differs for each session.
func TestAgentIDs(t *testing.T) {
	for session, want := range map[string]string{
		"coding-1": "coding-1", "vtb_desk": "vtb_desk", "vtb_a.b": "", "": "", "+/#": "", "ü": "", strings.Repeat("x", 41): "", "h-0123456789ab": "",
		"a b": "",
	} {
		id := topic.AgentID(session)
		if want != "" && id != want || want == "" && (!strings.HasPrefix(id, topic.HashPrefix) || len(id) != 14) || !topicLevel().MatchString(id) || id != topic.AgentID(session) {
			t.Errorf("%q is %q", session, id)
		}
	}
	if topic.AgentID("a b") == topic.AgentID("a c") {
		t.Error("two are one")
	}
	for id, want := range map[string]string{"coding-3": "Coding 3", "vtb_desk": "Chat desk", "vtb_": "Session vtb_",
		"h-0123456789ab": "Session h-0123456789ab", "Q": "Session Q"} {
		if name := announced(t, "homeassistant", messagesOf(discovery.Agent(discoveryNames(), id, "1", nil))).Device["name"]; name != want {
			t.Errorf("%s is called %s", id, name)
		}
	}
}
