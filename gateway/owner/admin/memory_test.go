package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/must"
)

func TestMemory(t *testing.T) {
	h := newAppliance(t)
	h.wants(t, http.MethodGet, "/api/v1/memory", "", 200, "=[]")
	tea, err := h.memory.Remember(agent.Entry{Name: "tea", Body: "Anna drinks green tea"}, started)
	must.Succeed(t, err)
	must.Value(h.memory.Remember(agent.Entry{Name: "cat", Body: "the cat is called Miso"}, started.Add(1)))(t)
	for query, want := range map[string]int{"": 2, "?q=": 2, "?q=TEA+anna": 1, "?q=coffee": 0} {
		if got := get[[]agent.Entry](t, h, "/api/v1/memory"+query); len(got) != want {
			t.Errorf("memory%s: %+v, want %d", query, got, want)
		}
	}
	if got := get[[]agent.Entry](t, h, "/api/agent-memory?q=tea"); len(got) != 1 || got[0].ID != tea.ID {
		t.Errorf("the agent system's memory: %+v", got)
	}
	h.wants(t, http.MethodPost, "/api/agent-memory", `{"type":"user","content":"likes tea","tags":["drinks"]}`, 201, `"body":"likes tea"`)
	h.wants(t, http.MethodDelete, "/api/v1/memory/"+tea.ID, "", 200, `={"ok":true}`)
	if got := get[[]agent.Entry](t, h, "/api/v1/memory"); len(got) != 2 || got[1].Name != "cat" {
		t.Errorf("after forget: %+v", got)
	}
}

// TestEditMemory checks that an entry is stored as one line and is found again, and that each change is published once.
func TestEditMemory(t *testing.T) {
	h := newAppliance(t)
	events := h.bus.Read()
	write := func(method, path, body string, status int) (e agent.Entry) {
		t.Helper()
		got, answer := h.ask(method, "/api/v1/memory"+path, body)
		if err := json.Unmarshal([]byte(answer), &e); err != nil || got != status {
			t.Fatalf("%s %s: %d %s (%v)", method, path, got, answer, err)
		}
		return e
	}
	tea := write(http.MethodPost, "", `{"text":" <b>Anna</b>\ndrinks\u0000 tea "}`, http.StatusCreated)
	if tea.ID == "" || tea.Body != "<b>Anna</b> drinks  tea" || tea.Source != "owner" || tea.Robot != "" || tea.Created.IsZero() {
		t.Errorf("remembered: %+v", tea)
	}
	coffee := write(http.MethodPut, "/"+tea.ID, `{"text":"Anna drinks coffee"}`, http.StatusOK)
	if coffee.ID != tea.ID || coffee.Body != "Anna drinks coffee" || coffee.Name != coffee.Body || !coffee.Created.Equal(tea.Created) {
		t.Errorf("edited: %+v", coffee)
	}
	if got := get[[]agent.Entry](t, h, "/api/v1/memory?q=anna"); len(got) != 1 || got[0].Body != coffee.Body {
		t.Errorf("the memory has %+v", got)
	}
	h.wants(t, http.MethodDelete, "/api/v1/memory/"+tea.ID, "", http.StatusOK, "")
	h.bus.Publish("", "", event.Fault{Part: "last"})
	for _, want := range []event.Event{event.Changed{What: "memory", ID: tea.ID}, event.Changed{What: "memory", ID: tea.ID},
		event.Changed{What: "memory", ID: tea.ID}, event.Fault{Part: "last"}} {
		if e, err := events.Next(t.Context()); err != nil || e.Event != want {
			t.Errorf("published: %+v (%v), want %+v", e.Event, err, want)
		}
	}
}

// TestTheNewestMemories checks that a query with n alone returns the newest entries, with their salience and context.
func TestTheNewestMemories(t *testing.T) {
	h := newAppliance(t)
	for _, body := range []string{`{"text":"first","important":true}`, `{"content":"second","context":{"screen":"desk"}}`, `{"body":"third","type":"reference"}`} {
		h.wants(t, http.MethodPost, "/api/v1/memory", body, http.StatusCreated, "")
	}
	got := get[[]agent.Ranked](t, h, "/api/v1/memory?n=2")
	if len(got) != 2 || got[0].Body != "third" || got[0].Salience != 0.5 || got[1].Body != "second" || string(got[1].Context) != `{"screen":"desk"}` {
		t.Errorf("the newest two are %+v", got)
	}
	if got := get[[]agent.Ranked](t, h, "/api/v1/memory?n=1&q=first"); len(got) != 1 || got[0].Body != "first" || got[0].Salience != 1 {
		t.Errorf("found is %+v", got)
	}
}

// TestMemoryTypesAndTags checks the types, tags and times of expiry of entries, and queries by type and tag.
func TestMemoryTypesAndTags(t *testing.T) {
	h := newAppliance(t)
	for body, want := range map[string]int{
		`{"text":"no bright light","type":"feedback","tags":["#Lamp","evening"],"important":true}`: http.StatusCreated,
		`{"text":"x","context":"y"}`: http.StatusBadRequest, `{"text":" "}`: http.StatusBadRequest,
		`{"text":"x","type":"fact"}`:                            http.StatusBadRequest,
		`{"text":"x","tags":["two words"]}`:                     http.StatusBadRequest,
		`{"text":"x","expires":"9999-12-31T00:00:00Z"}`:         http.StatusBadRequest,
		`{"text":"x","expires":"2001-01-01T00:00:00Z"}`:         http.StatusBadRequest,
		`{"text":"a place","type":"reference","tags":["lamp"]}`: http.StatusCreated,
	} {
		h.wants(t, http.MethodPost, "/api/v1/memory", body, want, "")
	}
	for query, want := range map[string]int{"?type=feedback": 1, "?tag=lamp": 2, "?tag=lamp&tag=evening": 1, "?tag=lamp&n=1": 1, "?type=user": 0} {
		got := get[[]agent.Ranked](t, h, "/api/v1/memory"+query)
		if len(got) != want || query == "?tag=lamp&n=1" && (got[0].Body != "no bright light" || got[0].Score < 0.99) {
			t.Errorf("memory%s: %+v, want %d", query, got, want)
		}
	}
	for _, query := range []string{"?n=0", "?n=x", "?n=10001", "?n=-1", "?n=99999999999999999999", "?type=fact", "?tag=two+words", "?tag=",
		"?tag=" + strings.Repeat("x", 10<<10),
		strings.Replace(strings.Repeat("&tag=a&tag=b&tag=c&tag=d&tag=e&tag=f&tag=g&tag=h&tag=i", 100), "&", "?", 1),
		"?q=" + strings.Repeat("x", 501), "?q=" + strings.Repeat("a+", 17), "?type=" + strings.Repeat("user", 1000)} {
		h.wants(t, http.MethodGet, "/api/v1/memory"+query, "", http.StatusBadRequest, "")
	}
	for _, query := range []string{"?q=%00", "?q=%ff%fe", "?q=%2e%2e%2f", "?q=%25", "?unknown=1&q=lamp+nothing"} { // texts without a special meaning
		h.wants(t, http.MethodGet, "/api/v1/memory"+query, "", http.StatusOK, "=[]")
	}
	if s := get[agent.MemoryStats](t, h, "/api/v1/memory/stats?type=fact&tag=two+words&n=x"); s.Entries != 2 { // stats ignores the query
		t.Errorf("stats: %+v", s)
	}
	if s := get[agent.MemoryStats](t, h, "/api/v1/memory/stats"); s.Entries != 2 || s.Important != 1 || s.Tags["lamp"] != 2 {
		t.Errorf("stats: %+v", s)
	}
}

// TestAcknowledgeNotification checks that an acknowledged notification is no longer listed.
func TestAcknowledgeNotification(t *testing.T) {
	h := newAppliance(t)
	must.Value(h.notices.Accept(notice.Notification{ID: "tea-1", Text: "tea"}, time.Now()))(t)
	h.wants(t, http.MethodPost, "/api/v1/notifications/tea-1/ack", "", http.StatusOK, `={"ok":true}`)
	if got := get[[]notice.Notification](t, h, "/api/v1/notifications"); len(got) != 0 {
		t.Errorf("it is still open: %+v", got)
	}
}
