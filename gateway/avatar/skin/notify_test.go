package skin

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/must"
)

const notificationsPath = "/v1/vtuber/notifications"

// TestNotificationWaitsForASkin tests that a notification waits for a skin and is shown once.
func TestNotificationWaitsForASkin(t *testing.T) {
	h := newHarness(t)
	reader := h.bus.Read()
	answer, body := h.ask(t, http.MethodPost, notificationsPath,
		`{"text":"CI passed","urgency":"low","action_url":"https://ci.example/452","id":"ci","speak":false,"expires_at":"2099-01-02T03:04:05Z"}`)
	if answer.StatusCode != http.StatusAccepted || body != `{"id":"ci"}` {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	const want = `{"type":"notification","text":"CI passed","urgency":"low","action_url":"https://ci.example/452","id":"ci","expires_at":"2099-01-02T03:04:05Z","speak":false}`
	first := h.connect(t)
	first.expect(want)
	for {
		e, err := reader.Next(t.Context())
		must.Succeed(t, err)
		if e.Event == event.Event(event.NotificationChanged{ID: "ci", State: notice.Shown}) {
			break
		}
	}
	first.until()
	second := h.connect(t)
	if got := second.until(); len(got) > 0 {
		t.Errorf("it is shown again: %v", got)
	}
	first.send(`{"type":"subscribe"}`) // clients subscribe when they connect
	if got := first.answered(); len(got) > 0 {
		t.Errorf("it is shown again: %v", got)
	}
}

// TestAcknowledgements tests that an acknowledgement ends a notification for all skins.
func TestAcknowledgements(t *testing.T) {
	h := newHarness(t)
	one, other := h.connect(t), h.connect(t)
	other.send(`{"type":"subscribe","events":["notification","notification_changed"]}`)
	other.answered()
	h.ask(t, http.MethodPost, notificationsPath, `{"text":"tea","id":"tea"}`)
	one.next()
	one.send(`{"type":"ack","id":"tea"}`)
	if got := one.answered(); len(got) > 0 {
		t.Error(got)
	}
	var steps []string
	for _, f := range other.until() {
		if strings.Contains(f, `"notification_changed"`) {
			steps = append(steps, f)
		}
	}
	shown, acknowledged := `{"type":"notification_changed","id":"tea","state":"shown"}`,
		`{"type":"notification_changed","id":"tea","state":"acknowledged"}`
	if !slices.Contains(steps, acknowledged) || slices.Contains(steps, shown) && steps[0] != shown || len(steps) > 2 {
		t.Errorf("%v", steps)
	}
	if open := h.notices.Open(time.Now()); len(open) > 0 {
		t.Errorf("%+v", open)
	}
	one.send(`{"type":"ack","id":"tea"}`)
	if got := one.answered(); len(got) != 1 || !strings.Contains(got[0], "unknown_notification") {
		t.Error(got)
	}
}

// TestNotificationsAreFiltered tests that notifications are filtered by session and robot.
func TestNotificationsAreFiltered(t *testing.T) {
	h := newHarness(t)
	all, some := h.connect(t), h.connect(t)
	some.send(`{"type":"subscribe","session_ids":["s1","robot:a0b1c2d3e4f5"]}`)
	some.answered()
	for _, body := range []string{
		`{"text":"for all","id":"1"}`, `{"text":"for s1","id":"2","session_id":"s1"}`, `{"text":"for s2","id":"3","session_id":"s2"}`,
		`{"text":"for A","id":"4","robot":"A0:B1:C2:D3:E4:F5"}`, `{"text":"for B","id":"5","robot":"a0b1c2d3e4f6"}`,
	} {
		if answer, text := h.ask(t, http.MethodPost, notificationsPath, body); answer.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
	h.happens(robotA, "", event.TimerRang{ID: "t", Text: "Tea is ready.", OnRobot: true})
	h.happens(robotA, "", event.TimerRang{ID: "u", Text: "told by a notification"})
	h.happens(robotA, "s1", event.ThinkingStarted{}, event.Asked{ID: "q", Text: "May I?"})
	frames := some.until()
	joined := strings.Join(frames, "\n")
	for text, want := range map[string]bool{"for all": true, "for s1": true, "for s2": false, "for A": true, "for B": false, "Tea is ready.": true,
		"told by a notification": false,
		`"text":"May I?","urgency":"high","session_id":"s1","robot":"a0b1c2d3e4f5","question_id":"q","speak":false`: true,
		state("notification", ""): true} {
		if strings.Contains(joined, text) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
	if n := len(all.until()); n != len(frames)+2 {
		t.Errorf("one that takes all is sent %d", n)
	}
	// A robot's notification waits until the robot has spoken it.
	for _, n := range h.notices.Open(time.Now()) {
		if n.Robot != "" && n.State != notice.Received {
			t.Errorf("%+v", n)
		}
	}
	h.happens(robotA, "s1", event.Answered{ID: "q", Answer: "yes"})
	some.until()
	late := h.connect(t)
	if frames := strings.Join(late.until(), "\n"); strings.Contains(frames, "May I?") || !strings.Contains(frames, "for A") {
		t.Error(frames)
	}
}

func TestInvalidNotifications(t *testing.T) {
	h := newHarness(t)
	for body, want := range map[string]string{
		`{"text":"tea","robot":"020000000001"}`:              "404 unknown_robot",
		`{"text":"tea","robot":"kitchen"}`:                   "400 bad_robot_id",
		`{"text":"tea","urgency":"HIGH"}`:                    "400 bad_body",
		`{"text":" "}`:                                       "400 bad_body",
		`{"text":"tea","expires_at":"2020-01-01T00:00:00Z"}`: "400 bad_body",
		`{"text":"tea","action_url":"javascript:alert(1)"}`:  "400 bad_body",
		`tea`: "400 bad_body",
		`{"text":"tea"}` + strings.Repeat(" ", 64<<10): "413 body_too_large",
	} {
		status, code, _ := strings.Cut(want, " ")
		answer, text := h.ask(t, http.MethodPost, notificationsPath, body)
		if !strings.HasPrefix(answer.Status, status) || !strings.HasPrefix(text, `{"error":{"code":"`+code+`","message":"`) {
			t.Errorf("%.60s: %s %s, want %s", body, answer.Status, text, want)
		}
	}
	if open := h.notices.Open(time.Now()); len(open) > 0 {
		t.Errorf("kept is %+v", open)
	}
}

// asker has one question, and records the answer.
type asker struct {
	mu      sync.Mutex
	id      string
	answers []bool
}

func (a *asker) Reply(id string, allow bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id != a.id {
		return agent.ErrNoQuestion
	}
	a.id, a.answers = "", append(a.answers, allow)
	return nil
}

// TestQuestionIsAnsweredOnce tests that only the first answer of a skin to a question is accepted.
func TestQuestionIsAnsweredOnce(t *testing.T) {
	for _, allow := range []string{"true", "false"} {
		q := &asker{id: "q7"}
		h := newHarness(t, func(o *Options) { o.Questions = q })
		one, other := h.connect(t), h.connect(t)
		h.happens("", "claude", event.ThinkingStarted{}, event.Asked{ID: "q7", Text: "May I delete this file?"})
		one.expect(`{"type":"agent_state","state":"thinking","session_id":"claude"}`,
			`{"type":"notification","text":"May I delete this file?","urgency":"high","session_id":"claude","question_id":"q7","speak":false}`,
			`{"type":"agent_state","state":"notification","session_id":"claude"}`)
		one.send(`{"type":"answer","id":"q7","allow":` + allow + `}`)
		if got := one.answered(); len(got) > 0 {
			t.Error(got)
		}
		other.until()
		other.send(`{"type":"answer","id":"q7","allow":true}`)
		if got := other.answered(); len(got) != 1 || !strings.Contains(got[0], "unknown_question") {
			t.Error(got)
		}
		if len(q.answers) != 1 || q.answers[0] != (allow == "true") {
			t.Errorf("%v", q.answers)
		}
	}
}
