package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/agent/notice"
)

func TestNotifications(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	all := notice.Notification{Text: "tea", Urgency: "normal", Speak: true}
	with := func(change func(*notice.Notification)) *notice.Notification { n := all; change(&n); return &n }
	for _, c := range []struct {
		body   string
		status int
		answer string               // text that the response contains
		kept   *notice.Notification // the stored notification, without its ID, state and times
	}{
		{`{"text":"tea"}`, 202, `{"id":"`, &all},
		{`{"text":" tea ","urgency":"low","speak":false,"more":[]}`, 202, `{"id":"`,
			with(func(n *notice.Notification) { n.Urgency, n.Speak = "low", false })},
		{`{"text":"tea","id":"tea-1","urgency":"high"}`, 202, `{"id":"tea-1"}`,
			with(func(n *notice.Notification) { n.ID, n.Urgency = "tea-1", "high" })},
		{`{"text":"tea","robot":"A0-B1-C2-D3-E4-F5"}`, 202, `{"id":"`, with(func(n *notice.Notification) { n.Robot = robotA })},
		{`{"text":"tea","session_id":"s1"}`, 202, `{"id":"`, with(func(n *notice.Notification) { n.SessionID = "s1" })},
		{`{"text":"tea","action_url":"https://panel.example/tea"}`, 202, `{"id":"`,
			with(func(n *notice.Notification) { n.ActionURL = "https://panel.example/tea" })},
		{`{"text":"tea","expires_at":"` + later.Format(time.RFC3339) + `"}`, 202, `{"id":"`,
			with(func(n *notice.Notification) { n.Expires = later })},

		{`{"text":"tea","robot":"020000000001"}`, 404, `"unknown_robot"`, nil},
		{`{"text":"tea","robot":"kitchen"}`, 400, `"bad_robot_id"`, nil},
		{`{"text":"tea","robot":"a0b1c2d3e4f5","session_id":"s1"}`, 400, `"bad_body"`, nil},
		{`{"text":"tea","expires_at":"2026-07-27T12:00:00Z"}`, 400, `in the past`, nil},
		{`{"text":"tea","robot":"` + string(robotB) + `"}`, 409, `"not_adopted"`, nil},
		{`{"text":"tea","expires_at":"tomorrow"}`, 400, `"bad_body"`, nil},
		{`{"text":"tea","expires_at":3600}`, 400, `"bad_body"`, nil},
		{`{"text":"tea","urgency":"HIGH"}`, 400, `low, normal or high`, nil},
		{`{"text":"tea","urgency":"` + x(10000) + `"}`, 400, `"bad_body"`, nil},
		{`{"text":"tea","speak":"yes"}`, 400, `"bad_body"`, nil},
		{`{"text":"tea","action_url":"javascript:alert(1)"}`, 400, `action_url`, nil},
		{`{"text":"tea","action_url":"https://` + x(10000) + `"}`, 400, `action_url`, nil},
		{`{"text":"tea","id":"` + x(65) + `"}`, 400, `"bad_body"`, nil},
		{`{"text":"` + x(1001) + `"}`, 400, `"bad_body"`, nil},
		{`{"text":" "}`, 400, `"bad_body"`, nil},
		{`{}`, 400, `"bad_body"`, nil},
		{`null`, 400, `"bad_body"`, nil},
		{`["tea"]`, 400, `"bad_body"`, nil},
		{`{"text":"tea"`, 400, `"bad_body"`, nil},
		{`{"text":"tea"}{}`, 400, `"bad_body"`, nil},
		{``, 400, `"bad_body"`, nil},
		{`{"text":"tea"}` + strings.Repeat(" ", 64<<10), 413, `"body_too_large"`, nil},
	} {
		h := newAppliance(t)
		h.adopts(t, robotA, "one")
		h.visit(t, robotB, "two")
		status, body := h.ask(http.MethodPost, "/api/v1/notifications", c.body)
		if status != c.status || !strings.Contains(body, c.answer) || len(body) > 1000 {
			t.Errorf("%.60s: %d %.300s, want %d %s", c.body, status, body, c.status, c.answer)
		}
		kept := h.notices.Open(time.Now())
		if len(kept) > 1 || len(kept) == 1 != (c.kept != nil) {
			t.Errorf("%.60s: kept is %+v", c.body, kept)
			continue
		}
		if c.kept == nil {
			continue
		}
		got := kept[0]
		if !strings.Contains(body, `{"id":"`+got.ID+`"}`) || !c.kept.Expires.IsZero() && !got.Expires.Equal(c.kept.Expires) {
			t.Errorf("%.60s: %s, kept is %+v", c.body, body, got)
		}
		if c.kept.ID == "" {
			got.ID = ""
		}
		got.State, got.Received, got.Expires = "", time.Time{}, c.kept.Expires
		if got != *c.kept {
			t.Errorf("%.60s: kept is %+v, want %+v", c.body, got, *c.kept)
		}
	}
}

// TestNotificationReplacedByID checks that a notification replaces an earlier one with the same ID.
func TestNotificationReplacedByID(t *testing.T) {
	h := newAppliance(t)
	for _, text := range []string{"tea", "cold tea"} {
		h.wants(t, http.MethodPost, "/api/v1/notifications", `{"id":"t","text":"`+text+`"}`, 202, `={"id":"t"}`)
	}
	if kept := get[[]notice.Notification](t, h, "/api/v1/notifications"); len(kept) != 1 || kept[0].Text != "cold tea" {
		t.Errorf("kept is %+v", kept)
	}
}
