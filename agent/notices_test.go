package agent_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"
	"time"

	"perch/agent"
)

// noticeTable is a table in memory.
type noticeTable map[string]agent.Notice

func (t noticeTable) Get(key string) (agent.Notice, bool, error) { n, ok := t[key]; return n, ok, nil }
func (t noticeTable) Put(key string, n agent.Notice) error       { t[key] = n; return nil }
func (t noticeTable) PutSoon(key string, n agent.Notice)         { t[key] = n }
func (t noticeTable) DeleteSoon(key string)                      { delete(t, key) }
func (t noticeTable) All() iter.Seq2[string, agent.Notice]       { return maps.All(maps.Clone(t)) }

func TestNotices(t *testing.T) {
	table := noticeTable{}
	s := agent.NewNotices(table)
	first, err := s.Accept(agent.Notice{Text: " The washing is done. "}, noon)
	if err != nil || first.ID == "" || first.Text != "The washing is done." || first.Urgency != agent.UrgencyNormal || first.State != agent.NoticeReceived {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := s.Accept(agent.Notice{ID: "door", Text: "The door is open.", Urgency: agent.UrgencyHigh, Expires: noon.Add(time.Minute)}, noon.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if open := s.Open(noon.Add(2 * time.Second)); len(open) != 2 || open[0].ID != first.ID || open[1].ID != second.ID {
		t.Errorf("open: %+v", open)
	}
	if n, err := s.Change("door", agent.NoticeSpoken); err != nil || n.State != agent.NoticeSpoken || len(table) != 2 {
		t.Errorf("spoken: %+v, %v", n, err)
	}
	if open := s.Open(noon.Add(time.Hour)); len(open) != 1 || len(table) != 1 {
		t.Errorf("an hour later %+v are open", open)
	}
	if _, err := s.Change(first.ID, agent.NoticeAcknowledged); err != nil || len(table) != 0 {
		t.Errorf("acknowledged: %v, %d kept", err, len(table))
	}
	if _, err := s.Change(first.ID, agent.NoticeShown); !errors.Is(err, agent.ErrNoNotice) {
		t.Errorf("one that is gone: %v", err)
	}
	for _, bad := range []agent.Notice{{}, {Text: string(make([]byte, 1001))}, {Text: "x", Urgency: "now"}, {Text: "x", ID: string(make([]byte, 65))}} {
		if _, err := s.Accept(bad, noon); !errors.Is(err, agent.ErrNotice) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestTooManyNotices(t *testing.T) {
	table := noticeTable{}
	s := agent.NewNotices(table)
	for i := range 500 {
		urgency := agent.UrgencyNormal
		if i == 100 {
			urgency = agent.UrgencyLow
		}
		if _, err := s.Accept(agent.Notice{ID: fmt.Sprint(i), Text: "x", Urgency: urgency}, noon.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"new", "newer"} {
		if _, err := s.Accept(agent.Notice{ID: id, Text: "x"}, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	_, low := table["100"]
	_, oldest := table["0"]
	_, second := table["1"]
	if len(table) != 500 || low || oldest || !second {
		t.Errorf("%d kept; the low one is there: %v, the oldest: %v, the second: %v", len(table), low, oldest, second)
	}
}
