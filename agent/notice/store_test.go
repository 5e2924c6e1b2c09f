package notice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/device"
	"perch/must"
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
	must.Succeed(t, err)
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
	must.Value(s.Change("door", notice.Expired))(t)
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

// TestAnAcknowledgementIsDurable tests that Change waits for the disk for Acknowledged, and that
// after an error the notification is still open.
func TestAnAcknowledgementIsDurable(t *testing.T) {
	table := &storetest.Table[notice.Notification]{}
	s := notice.NewStore(table)
	must.Value(s.Accept(notice.Notification{ID: "door", Text: "The door is open."}, noon))(t)
	full := errors.New("disk full")
	table.RefuseDurable(full)
	if _, err := s.Change("door", notice.Acknowledged); !errors.Is(err, full) || len(s.Open(noon)) != 1 {
		t.Errorf("on a disk that refuses: %v, open %v", err, s.Open(noon))
	}
	table.RefuseDurable(nil)
	if n, err := s.Change("door", notice.Acknowledged); err != nil || n.State != notice.Acknowledged || len(s.Open(noon)) != 0 {
		t.Errorf("%+v, %v, open %v", n, err, s.Open(noon))
	}
}

// TestTooManyNotifications tests that at most 40 notifications wait for one robot, and that at
// most 500 are stored.
func TestTooManyNotifications(t *testing.T) {
	table := &storetest.Table[notice.Notification]{}
	s := notice.NewStore(table)
	accept := func(id string, robot device.ID, urgency string, at time.Duration) {
		t.Helper()
		must.Value(s.Accept(notice.Notification{ID: id, Robot: robot, Text: "x", Urgency: urgency}, noon.Add(at)))(t)
	}
	for i := range 40 {
		urgency := notice.UrgencyNormal
		if i == 7 {
			urgency = notice.UrgencyLow
		}
		accept(fmt.Sprint(i), "a0b1c2d3e4f5", urgency, time.Duration(i)*time.Second)
	}
	accept("other", "a0b1c2d3e4f6", "", time.Minute)
	accept("all", "", "", time.Minute)
	if len(table.Kept) != 42 {
		t.Errorf("%d are kept, want 40, one of another robot and one for all", len(table.Kept))
	}
	accept("39", "a0b1c2d3e4f5", "", time.Minute) // replaces the notification with this ID
	accept("new", "a0b1c2d3e4f5", notice.UrgencyLow, time.Hour)
	accept("newer", "a0b1c2d3e4f5", "", time.Hour)
	accept("newest", "a0b1c2d3e4f5", "", time.Hour)
	for id, want := range map[string]bool{"7": false, "new": false, "0": false, "1": true, "newest": true} {
		if _, there := table.Kept[id]; there != want {
			t.Errorf("%s waits: %v; those of low urgency go first, and then the oldest", id, there)
		}
	}
	must.Value(s.Change("2", notice.Spoken))(t)
	if accept("more", "a0b1c2d3e4f5", "", 2*time.Hour); len(table.Kept) != 43 {
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

func TestParse(t *testing.T) {
	for body, want := range map[string]notice.Notification{
		`{"text":"Tea"}`:               {Text: "Tea", Speak: true},
		`{"text":"Tea","speak":false}`: {Text: "Tea"},
		`{"text":"Tea","speak":null,"urgency":"high","id":"tea","robot":"A0-B1-C2-D3-E4-F5","action_url":"https://example.com/tea",` +
			`"expires_at":"2026-01-02T13:00:00+01:00"}`: {
			Text: "Tea", Speak: true, Urgency: notice.UrgencyHigh, ID: "tea", Robot: "a0b1c2d3e4f5", ActionURL: "https://example.com/tea",
			Expires: time.Date(2026, 1, 2, 13, 0, 0, 0, time.FixedZone("", 3600))},
		`{"text":"Tea","session_id":"s1","colour":"green"}`: {Text: "Tea", Speak: true, SessionID: "s1"},
	} {
		n, err := notice.Parse([]byte(body), device.ParseID)
		same := n.Expires.Equal(want.Expires)
		n.Expires, want.Expires = time.Time{}, time.Time{}
		if err != nil || n != want || !same {
			t.Errorf("%s\ngave %+v, %v\nwant %+v", body, n, err, want)
		}
	}
	for body, cause := range map[string]string{
		`{`:                                    "unexpected end",
		`[]`:                                   "cannot unmarshal array",
		`{}`:                                   "needs a text",
		`{"text":1}`:                           "cannot unmarshal number",
		`{"text":" \u0000\n"}`:                 "needs a text",
		`{"text":"a"} {"text":"b"}`:            "after top-level value",
		`{"text":"a","urgency":"now"}`:         `low, normal or high, not "now"`,
		`{"text":"a","robot":"me"}`:            "not a MAC address",
		`{"text":"a","expires_at":"tomorrow"}`: "2026-05-01T18:30:00Z",
		`{"text":"a","expires_at":"0001-01-01T00:00:00Z"}`:                                "in the past",
		`{"text":"a","action_url":"javascript:alert(1)"}`:                                 "http://",
		`{"text":"a","action_url":"http://"}`:                                             "http://",
		`{"text":"a","action_url":"/door"}`:                                               "http://",
		`{"text":"a","id":"a\u0000b"}`:                                                    "control characters",
		`{"text":"a","speak":"yes"}`:                                                      "cannot unmarshal string",
		`{"text":"a","robot":"a0b1c2d3e4f5","session_id":"s"}`:                            "not both",
		fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1001)):                             "1001 bytes",
		fmt.Sprintf(`{"text":"a","id":%q}`, strings.Repeat("x", 65)):                      "at most 64",
		fmt.Sprintf(`{"text":"a","session_id":%q}`, strings.Repeat("x", 65)):              "at most 64",
		fmt.Sprintf(`{"text":"a","action_url":"http://a/%s"}`, strings.Repeat("x", 2048)): "2057 bytes",
		fmt.Sprintf(`{"text":"a","x":%q}`, strings.Repeat("x", 20000)):                    "its JSON has",
	} {
		if _, err := notice.Parse([]byte(body), device.ParseID); !errors.Is(err, notice.ErrInvalid) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%.60s\ngave %v\nwant %s", body, err, cause)
		}
	}
}

// FuzzParse tests that Accept accepts each result of Parse, unless it expires in the past.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":"Tea","urgency":"high","speak":false,"id":"tea","robot":"a0:b1:c2:d3:e4:f5","expires_at":"2026-01-02T13:00:00Z"}`))
	f.Add([]byte(`{"text":"\ud800","action_url":"https://[::1]:8080/x?y#z","session_id":"s"}`))
	f.Add([]byte(`{"text":"a","expires_at":"9999-12-31T23:59:59Z"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := notice.Parse(body, device.ParseID)
		if err != nil {
			if !errors.Is(err, notice.ErrInvalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		past := !n.Expires.IsZero() && !noon.Before(n.Expires)
		kept, err := notice.NewStore(&storetest.Table[notice.Notification]{}).Accept(n, noon)
		if (err != nil) != past {
			t.Fatalf("%+v: %v", n, err)
		}
		if err == nil && (kept.Text == "" || len(kept.Text) > 1000 || kept.ID == "" || !kept.Expires.After(noon)) {
			t.Fatalf("kept %+v", kept)
		}
	})
}
