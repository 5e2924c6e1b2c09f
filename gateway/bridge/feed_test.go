package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/limit"
	"perch/must"
	"perch/waittest"
)

func TestPerceivedEvents(t *testing.T) {
	h := newHarness(t)
	h.speaks(robotB, "s2")
	server := h.local(t)
	for body, want := range map[string]string{
		`{"name":"face_detected","data":{},"device_id":"A0:B1:C2:D3:E4:F5","session_id":"x","ts":1715000000.0}`: "a0b1c2d3e4f5 face_detected {}",
		`{"name":"room_view","data":{"who":["Anna",null]},"device_id":"02b1c2d3e4ff"}`:                          `02b1c2d3e4ff room_view {"who":["Anna",null]}`,
		`{"name":"head_pet_started","session_id":"s2"}`:                                                         "a0b1c2d3e4f6 head_pet_started {}",
		`{"name":"any name","data":null}`:                                                                       "a0b1c2d3e4f5 any name {}",
	} {
		h.intake.took = nil
		status, answer := ask(t, server, http.MethodPost, "/api/perception/event", body)
		if status != 200 || answer != `{"ok":true}` || !slices.Equal(h.intake.took, []string{want}) {
			t.Errorf("%s: %d %s, took %q", body, status, answer, h.intake.took)
		}
	}
	h.intake.took = nil
	refuses(t, server, "/api/perception/event", map[string]refusal{
		"nothing":            {``, 400, "bad_body"},
		"no name":            {`{"data":{}}`, 400, "bad_body"},
		"a long name":        {`{"name":"` + strings.Repeat("x", 65) + `"}`, 400, "bad_body"},
		"a name of lines":    {`{"name":"a\nb"}`, 400, "bad_body"},
		"data of a list":     {`{"name":"x","data":[]}`, 400, "bad_body"},
		"data of a text":     {`{"name":"x","data":"{}"}`, 400, "bad_body"},
		"a text for a time":  {`{"name":"x","ts":"now"}`, 400, "bad_body"},
		"no robot's id":      {`{"name":"x","device_id":"unknown"}`, 400, "bad_robot_id"},
		"more than is taken": {`{"name":"x","data":{"x":"` + strings.Repeat("x", 64<<10) + `"}}`, 413, "body_too_large"},
	})
	h.intake.err = &httpserver.Fault{Word: "too_many_events", Sentence: "slow down", HTTP: 429}
	if status, answer := ask(t, server, http.MethodPost, "/api/perception/event", `{"name":"x"}`); status != 429 ||
		refused(t, answer) != "too_many_events" {
		t.Errorf("too many: %d %s", status, answer)
	}
	if len(h.intake.took) > 0 {
		t.Errorf("took %q", h.intake.took)
	}
}

// perceives adds events to the states of both robots.
func (h *harness) perceives() {
	for _, e := range []event.Envelope{{Robot: robotA, At: noon, Event: event.Perceived{Name: "sound_event", Data: json.RawMessage(`{"direction":"left"}`)}},
		{Robot: robotA, At: noon.Add(1500 * time.Millisecond), Event: event.Perceived{Name: "face_lost"}},
		{Robot: robotB, At: time.Now(), Event: event.Perceived{Name: "face_detected"}}} {
		h.senses.HandleEvent(e)
	}
}

func TestStatesAndRecent(t *testing.T) {
	h := newHarness(t)
	h.perceives()
	server := h.local(t)
	lost := `{"name":"face_lost","data":{},"device_id":"` + macA + `","ts":1785153601.5}`
	all := `[` + lost + `,{"name":"sound_event","data":{"direction":"left"},"device_id":"` + macA + `","ts":1785153600}]`
	stateA, stateB := `{"`+macA+`":{"robot":"`+string(robotA)+`",*`, `"`+macB+`":{"robot":"`+string(robotB)+`",*"face":{"present":true*}}`
	for path, want := range map[string]string{
		"state":                                   stateA + stateB,
		"state?device_id=" + macB:                 `{` + stateB,
		"state?device_id=02b1c2d3e4ff":            `{}`,
		"recent/" + macA:                          all,
		"recent/a0b1c2d3e4f5?limit=1":             `[` + lost + `]`,
		"recent/a0b1c2d3e4f5?limit=9999999999999": all,
	} {
		status, body := ask(t, server, http.MethodGet, "/api/perception/"+path, "")
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, ".*")
		if status != 200 || !regexp.MustCompile("^"+pattern+"$").MatchString(body) || strings.HasPrefix(path, "state") && strings.Contains(body, "recent") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for path, code := range map[string]string{
		"state?device_id=x": "400 bad_robot_id", "recent/x": "400 bad_robot_id", "recent/a0b1c2d3e4f7": "404 unknown_robot",
		"feed?device_id=x":            "400 bad_robot_id",
		"recent/" + macA + "?limit=0": "400 bad_limit", "recent/" + macA + "?limit=-1": "400 bad_limit",
		"recent/" + macA + "?limit=x": "400 bad_limit",
	} {
		status, body := ask(t, server, http.MethodGet, "/api/perception/"+path, "")
		if got := fmt.Sprint(status, " ", refused(t, body)); got != code {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func (h *harness) listen(t testing.TB, query, lastID string) *httpservertest.Reader {
	t.Helper()
	return httpservertest.Listen(t, h.local(t).URL+"/api/perception/feed"+query, lastID)
}

func TestFeed(t *testing.T) {
	h := newHarness(t)
	h.bus.Publish(robotA, "", event.Perceived{Name: "before"})
	all, one := h.listen(t, "", ""), h.listen(t, "?device_id="+macB, "")
	h.bus.Publish(robotA, "s1", event.Heard{Text: "nobody's business"})
	if status, _ := ask(t, h.local(t), http.MethodPost, "/api/perception/event",
		`{"name":"sound_event","data":{"direction":"left"},"device_id":"`+macA+`"}`); status != 200 {
		t.Fatal(status)
	}
	h.bus.Publish(robotB, "s2", event.Perceived{Name: "face_detected"})
	first, second := all.Next(), all.Next()
	var got struct {
		Name, DeviceID string
		Data           map[string]string
		Ts             float64
	}
	if err := json.Unmarshal([]byte(strings.Replace(first.Data, "device_id", "DeviceID", 1)), &got); err != nil || got.Name != "sound_event" ||
		got.DeviceID != macA || got.Data["direction"] != "left" || time.Since(time.UnixMilli(int64(got.Ts*1000))).Abs() > time.Minute {
		t.Errorf("%+v is %+v, %v", first, got, err)
	}
	if first.Event != "message" || first.ID != h.bus.RunID()+".3" || second.ID != h.bus.RunID()+".4" ||
		!strings.Contains(second.Data, `"face_detected","data":{}`) {
		t.Errorf("%+v, %+v", first, second)
	}
	if only := one.Next(); only != second {
		t.Errorf("the reader of one robot has %+v", only)
	}
	h.bus.Close()
	if end := all.Next(); end != (httpservertest.Message{}) || all.Lines.Err() != nil {
		t.Errorf("after the end: %+v, %v", end, all.Lines.Err())
	}
	if h.log.Len() > 0 {
		t.Errorf("logged %s", h.log)
	}
}

// TestFeedResumes tests that the feed continues after the event with the given ID, and after the ID of a state. For an
// invalid ID or the ID of an earlier run, the feed begins with new events.
func TestFeedResumes(t *testing.T) {
	h := newHarness(t)
	for n := range 5 {
		h.bus.Publish(robotA, "", event.Perceived{Name: fmt.Sprint(n + 1)})
	}
	h.senses.HandleEvent(event.Envelope{Seq: h.bus.Seq(), Robot: robotA, Event: event.Perceived{Name: "5"}})
	run := h.bus.RunID()
	if m := h.listen(t, "", run+".3").Next(); m.ID != run+".4" {
		t.Errorf("after 3: %+v", m)
	}
	r, err := h.local(t).Client().Get(h.local(t).URL + "/api/perception/state")
	must.Succeed(t, err)
	_ = r.Body.Close()
	var late []*httpservertest.Reader
	for _, id := range []string{"", "0123456789ab.1", run + ".9", run, run + ".x", run + ".-1", "1", strings.Repeat("9", 4000),
		r.Header.Get("Last-Event-ID")} {
		late = append(late, h.listen(t, "", id))
	}
	h.bus.Publish(robotA, "", event.Perceived{Name: "6"})
	for n, l := range late {
		if m := l.Next(); m.ID != run+".6" {
			t.Errorf("reader %d: %+v", n, m)
		}
	}
}

// TestFeedMissed tests that a client that was away for too long gets the number of events that it has missed.
func TestFeedMissed(t *testing.T) {
	h := newHarness(t)
	for range 3000 {
		h.bus.Publish(robotA, "", event.Perceived{Name: "x"})
	}
	l := h.listen(t, "", h.bus.RunID()+".1")
	if m := l.Next(); m.Event != "missed" || m.Data != fmt.Sprintf(`{"n":%d}`, 3000-1024-1) {
		t.Errorf("the first is %+v", m)
	}
	if m := l.Next(); m.ID != fmt.Sprintf("%s.%d", h.bus.RunID(), 3000-1024+1) {
		t.Errorf("then comes %+v", m)
	}
}

func TestReadersOfTheFeedAreBounded(t *testing.T) {
	h := newHarness(t)
	var all []*httpservertest.Reader
	for range limit.Readers {
		all = append(all, h.listen(t, "", ""))
	}
	server := h.local(t)
	if status, body := ask(t, server, http.MethodGet, "/api/perception/feed", ""); status != 503 || refused(t, body) != "too_many_readers" {
		t.Errorf("one more: %d %s", status, body)
	}
	all[0].Leave()
	waittest.For(t, "the place of a reader that left is free", func() bool { return h.api.readers.Load() < limit.Readers })
	h.listen(t, "", "")
}

// onWire serves the bridge over an in-memory connection, and returns the client's end.
func (h *harness) onWire(t testing.TB) net.Conn {
	t.Helper()
	e := h.engine(t)
	h.api.Routes(e)
	h.api.Admin(e)
	return httpservertest.Serve(t, e)
}

// TestTimeLimits tests the time limits in the document of the API.
func TestTimeLimits(t *testing.T) {
	for _, c := range []struct {
		path, body string
		took       time.Duration
	}{
		{"/api/voice/escalate", `{"tool":"take_photo"}`, 5 * time.Second},
		{"/api/voice/escalate", `{"tool":"think_hard","args":{"question":"why?"}}`, 30 * time.Second},
		{"/api/message", `{"content":"hello"}`, 90 * time.Second},
		{"/admin/set-state", `{"state":"idle"}`, 5 * time.Second},
		{"/admin/take-photo", `{"question":"who?"}`, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t)
			h.robots.answer = func(ctx context.Context, _ string) (device.Result, error) {
				<-ctx.Done()
				return device.Result{}, ctx.Err()
			}
			h.brain.think = func(ctx context.Context, _ agent.Turn, _ func(agent.Reply) error) error {
				<-ctx.Done()
				return ctx.Err()
			}
			client := h.onWire(t)
			began := time.Now()
			if _, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: perch\r\nContent-Length: %d\r\n\r\n%s", c.path, len(c.body),
				c.body); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			must.Succeed(t, err)
			body, err := io.ReadAll(answer.Body)
			if took := time.Since(began); err != nil || answer.StatusCode != 504 || refused(t, string(body)) != "tool_timeout" || took != c.took {
				t.Errorf("%s %s: after %v %d %s", c.path, c.body, took, answer.StatusCode, body)
			}
		})
	}
}

// TestTurnsWaitForASlot tests that at most limit.Turns turns run at a time, and that other turns wait.
func TestTurnsWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.brain.think = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
			time.Sleep(time.Second)
			return replying(agent.Say{Text: "Yes."})(ctx, turn, out)
		}
		began := time.Now()
		var wg sync.WaitGroup
		for n := range 2 * limit.Turns {
			wg.Go(func() {
				if _, err := h.api.message(t.Context(), fmt.Appendf(nil, `{"content":"hi","session_id":"s%d"}`, n)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("%d turns took %v", 2*limit.Turns, took)
		}
	})
}

// TestTheFeedIsKeptAlive tests that the feed sends something every 15 s, even if only events of other kinds are published.
func TestTheFeedIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		client := h.onWire(t)
		if _, err := io.WriteString(client, "GET /api/perception/feed HTTP/1.1\r\nHost: perch\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got bytes.Buffer
		go func() {
			part := make([]byte, 1000)
			for {
				n, err := client.Read(part)
				mu.Lock()
				got.Write(part[:n])
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		for range 310 {
			time.Sleep(100 * time.Millisecond)
			h.bus.Publish(robotA, "s1", event.Misheard{})
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n := strings.Count(got.String(), ": still here"); n != 2 || strings.Contains(got.String(), "event:") {
			t.Errorf("%d signs of life in 31 s: %s", n, &got)
		}
	})
}

// TestStalledReaderIsDropped tests that a client that does not read is disconnected after ten seconds, and counted.
func TestStalledReaderIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		stalled := h.onWire(t)
		if _, err := io.WriteString(stalled, "GET /api/perception/feed HTTP/1.1\r\nHost: perch\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for h.api.Dropped() == 0 && time.Since(began) < time.Minute {
			h.bus.Publish(robotA, "", event.Perceived{Name: "sound_event"})
			time.Sleep(time.Second)
		}
		if took := time.Since(began); h.api.Dropped() != 1 || took > 11*time.Second {
			t.Errorf("%d readers are dropped after %v", h.api.Dropped(), took)
		}
		synctest.Wait() // the reader is counted as dropped before it ends
		if n := h.api.readers.Load(); n != 0 {
			t.Errorf("%d readers are left", n)
		}
		if !strings.Contains(h.log.String(), "it did not read") {
			t.Errorf("logged %s", h.log)
		}
	})
}
