package notice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/device"
	"perch/store/storetest"
)

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
		n, err := notice.ParseBy([]byte(body), device.ParseID)
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
		if _, err := notice.ParseBy([]byte(body), device.ParseID); !errors.Is(err, notice.ErrInvalid) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%.60s\ngave %v\nwant %s", body, err, cause)
		}
	}
}

// FuzzParse: Accept takes all that Parse takes, but for an expiry in the past.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":"Tea","urgency":"high","speak":false,"id":"tea","robot":"a0:b1:c2:d3:e4:f5","expires_at":"2026-01-02T13:00:00Z"}`))
	f.Add([]byte(`{"text":"\ud800","action_url":"https://[::1]:8080/x?y#z","session_id":"s"}`))
	f.Add([]byte(`{"text":"a","expires_at":"9999-12-31T23:59:59Z"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := notice.ParseBy(body, device.ParseID)
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
