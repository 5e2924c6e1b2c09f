package notice_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/device"
	"perch/store/storetest"
)

func TestTheLifeOfANotification(t *testing.T) {
	table := &storetest.Table[notice.Notification]{}
	s := notice.NewStore(table)
	first, err := s.Accept(notice.Notification{Text: " The washing is done. "}, noon)
	if err != nil || first.ID == "" || first.Text != "The washing is done." || first.Urgency != notice.UrgencyNormal ||
		first.State != notice.Received {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := s.Accept(notice.Notification{ID: "door", Text: "The door is open.", Urgency: notice.UrgencyHigh,
		Expires: noon.Add(time.Minute)}, noon.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if open := s.Open(noon.Add(2 * time.Second)); len(open) != 2 || open[0].ID != first.ID || open[1].ID != second.ID {
		t.Errorf("open: %+v", open)
	}
	if n, err := s.Change("door", notice.Spoken); err != nil || n.State != notice.Spoken || len(table.Kept) != 2 {
		t.Errorf("spoken: %+v, %v", n, err)
	}
	if n, err := s.Change("door", notice.Shown); err != nil || n.State != notice.Spoken || table.Kept["door"].State != notice.Spoken {
		t.Errorf("spoken to one, then shown to another: %+v, %v", n, err)
	}
	if open := s.Open(noon.Add(time.Hour)); len(open) != 1 || open[0].ID != first.ID {
		t.Errorf("an hour later %+v are open", open)
	}
	if _, err := s.Change("door", notice.Expired); err != nil {
		t.Error(err)
	}
	if _, err := s.Change(first.ID, notice.Acknowledged); err != nil || len(table.Kept) != 0 {
		t.Errorf("acknowledged: %v, %d kept", err, len(table.Kept))
	}
	if _, err := s.Change(first.ID, notice.Shown); !errors.Is(err, notice.ErrNotFound) {
		t.Errorf("one that is gone: %v", err)
	}
	for _, bad := range []notice.Notification{{}, {Text: string(make([]byte, 1001))}, {Text: "x", Urgency: "now"},
		{Text: "x", ID: string(make([]byte, 65))},
		{Text: "x", Expires: noon}, {Text: "x", Robot: "a0b1c2d3e4f5", SessionID: "s"}, {Text: "x", ActionURL: "ftp://here"}} {
		if _, err := s.Accept(bad, noon); !errors.Is(err, notice.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestTooManyNotifications: 20 wait for one robot, and 500 are stored in all.
func TestTooManyNotifications(t *testing.T) {
	table := &storetest.Table[notice.Notification]{}
	s := notice.NewStore(table)
	accept := func(id string, robot device.ID, urgency string, at time.Duration) {
		t.Helper()
		if _, err := s.Accept(notice.Notification{ID: id, Robot: robot, Text: "x", Urgency: urgency}, noon.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		urgency := notice.UrgencyNormal
		if i == 7 {
			urgency = notice.UrgencyLow
		}
		accept(fmt.Sprint(i), "a0b1c2d3e4f5", urgency, time.Duration(i)*time.Second)
	}
	accept("other", "a0b1c2d3e4f6", "", time.Minute)
	accept("all", "", "", time.Minute)
	if len(table.Kept) != 22 {
		t.Errorf("%d are kept, want 20, one of another robot and one for all", len(table.Kept))
	}
	accept("19", "a0b1c2d3e4f5", "", time.Minute) // in the place of one that is there
	accept("new", "a0b1c2d3e4f5", notice.UrgencyLow, time.Hour)
	accept("newer", "a0b1c2d3e4f5", "", time.Hour)
	accept("newest", "a0b1c2d3e4f5", "", time.Hour)
	for id, want := range map[string]bool{"7": false, "new": false, "0": false, "1": true, "newest": true} {
		if _, there := table.Kept[id]; there != want {
			t.Errorf("%s waits: %v; those of low urgency go first, and then the oldest", id, there)
		}
	}
	if _, err := s.Change("2", notice.Spoken); err != nil {
		t.Fatal(err)
	}
	if accept("more", "a0b1c2d3e4f5", "", 2*time.Hour); len(table.Kept) != 23 {
		t.Errorf("%d are kept; one that was spoken does not wait", len(table.Kept))
	}
	for i := range 600 {
		accept(fmt.Sprint("r", i), device.ID(fmt.Sprintf("b0b1c2%06x", i)), "", 3*time.Hour+time.Duration(i)*time.Second)
	}
	_, newest := table.Kept["r599"]
	if _, oldest := table.Kept["3"]; len(table.Kept) != 500 || oldest || !newest {
		t.Errorf("%d kept; the oldest is there: %v, the newest: %v", len(table.Kept), oldest, newest)
	}
}
