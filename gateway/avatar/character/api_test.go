package character

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/skill"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/must"
)

// harness is an API with fake dependencies.
type harness struct {
	*API
	bus    *event.Bus
	engine *gin.Engine
	said   []string           // calls of Options.Say: robot ID and text
	facts  []event.Remembered // facts of the calls of Options.Remember
}

type trusted device.ID

func (r trusted) Trusts(id device.ID) bool { return id == device.ID(r) }

const viewersKey = "the viewer's" // Authorization header of requests that are not from the owner

const adopted = "a0b1c2d3e4f5"

// FuzzReport checks that any report is accepted or rejected with a status from 400 to 499, that a
// rejected report has no effect, and that the actions of accepted reports are valid JSON.
func FuzzReport(f *testing.F) {
	for _, kind := range action.Types() {
		f.Add([]byte(`{"type":"` + string(kind) + `","payload":{}}`))
	}
	f.Add([]byte(`{"type":"speak","payload":{"text":"hi","sentiment":1e308},"robot":"a0b1c2d3e4f5"}`))
	f.Add([]byte(`{"type":"remember","payload":{"type":"user","content":"tea"},"session_id":"robot:a0b1c2d3e4f5"}`))
	f.Add([]byte(`{"type":"emote","payload":{"trigger":"concern","weight":-1},"agentId":"nobody"}`))
	f.Add([]byte(`{"type":"gesture","payload":{"name":"\u0000","duration":-1},"timestamp":1e30}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t)
			reader := h.bus.Read()
			status, answer := h.report(t, string(body))
			synctest.Wait()
			taken := status == http.StatusAccepted
			if !taken && (status < 400 || status >= 500) || !json.Valid([]byte(answer)) {
				t.Fatalf("%s is answered with %d %s", body, status, answer)
			}
			if !taken && (h.bus.Seq() > 0 || len(h.said) > 0 || len(h.facts) > 0) {
				t.Fatalf("%s is refused, and done", body)
			}
			for range h.bus.Seq() {
				e, err := reader.Next(t.Context())
				must.Succeed(t, err)
				if a, ok := h.o.Log.Of(e); ok && !json.Valid(a.Payload) {
					t.Fatalf("%s is told as %s", body, a.Payload)
				}
			}
		})
	})
}

// newHarness returns a harness with a running API. It must be called in a synctest bubble.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{bus: event.NewBus()}
	log := action.NewLog(func(id device.ID, session string) string {
		switch {
		case id != "":
			return "cook"
		case session == "vtb_kitchen":
			return "butler"
		}
		return "default"
	}, func(text string) float64 { return float64(strings.Count(text, "!")) })
	h.API = New(Options{Bus: h.bus, Log: log, Who: log.Who, Robots: trusted(adopted), Board: agent.NewBoard(), Find: device.ParseID,
		Say: func(_ context.Context, id device.ID, text string) (bool, error) {
			h.said = append(h.said, string(id)+" "+text)
			return false, nil
		},
		Remember: func(e agent.Entry, _ time.Time) (agent.Entry, error) {
			h.facts = append(h.facts, event.Remembered{Type: e.Type, Name: e.Name, Body: e.Body, By: event.ByViewer})
			return e, nil
		}})
	engine, err := httpserver.NewEngine(slog.New(slog.NewTextHandler(io.Discard, nil)))
	must.Succeed(t, err)
	h.Routes(engine, func(r *http.Request) bool { return r.Header.Get("Authorization") != viewersKey })
	h.engine = engine
	ctx, cancel := context.WithCancel(t.Context())
	go h.Run(ctx)
	go log.Run(ctx, h.bus.ReadFrom(1))
	t.Cleanup(func() { cancel(); h.bus.Close(); synctest.Wait() })
	return h
}

func (h *harness) ask(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.engine.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (h *harness) report(t *testing.T, body string) (status int, answer string) {
	t.Helper()
	return h.ask(t, http.MethodPost, "/api/agent-actions", body)
}

func (h *harness) actions(t *testing.T, query string) (all []action.Action) {
	t.Helper()
	synctest.Wait()
	status, answer := h.ask(t, http.MethodGet, "/api/v1/actions?"+query, "")
	if err := json.Unmarshal([]byte(answer), &all); status != 200 || err != nil {
		t.Fatalf("%d %s", status, answer)
	}
	return all
}

func bubble(t *testing.T, test func(t *testing.T, h *harness)) {
	synctest.Test(t, func(t *testing.T) { test(t, newHarness(t)) })
}

func TestActionsAreListed(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.bus.Publish(adopted, "s", event.Said{Text: "Hi!"})
		h.bus.Publish("", "vtb_kitchen", event.Gesture{Name: "bow", By: event.ByModel})
		h.bus.Publish("", "", event.Presence{State: "online"})
		if got := h.actions(t, ""); len(got) != 3 {
			t.Errorf("all: %v", got)
		}
		got := h.actions(t, "type=speak&n=5")
		if len(got) != 1 || got[0].Agent != "cook" || string(got[0].Payload) != `{"text":"Hi!","sentiment":1}` {
			t.Errorf("speak: %+v", got)
		}
		if got := h.actions(t, "agent=butler&type=speak,gesture"); len(got) != 1 || got[0].Type != action.Gesture {
			t.Errorf("the butler's: %v", got)
		}
		for _, query := range []string{"n=0", "n=201", "n=x", "type=dance"} {
			if status, answer := h.ask(t, http.MethodGet, "/api/v1/actions?"+query, ""); status != 400 {
				t.Errorf("%s: %d %s", query, status, answer)
			}
		}
	})
}

// TestPrivateActionsAreHidden checks that viewers get no facts, no signed messages, and no arguments and
// results of skills, neither in the list nor in the stream.
func TestPrivateActionsAreHidden(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		ask := func(ctx context.Context, path, key string) string {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			r.Header.Set("Authorization", key)
			w := httptest.NewRecorder()
			h.engine.ServeHTTP(w, r)
			return w.Body.String()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var streams [2]string
		var readers sync.WaitGroup
		for i, key := range []string{"", viewersKey} {
			readers.Go(func() { streams[i] = ask(ctx, "/api/v1/actions/stream", key) })
		}
		synctest.Wait()
		h.bus.Publish(adopted, "", event.Remembered{Type: "user", Body: "secret fact"})
		h.bus.Publish(adopted, "", event.Signed{Message: "secret message", Address: "ed25519:AAAA"})
		h.bus.Publish(adopted, "", event.SkillStarted{Skill: "greet", Args: json.RawMessage(`{"a":"secret argument"}`)})
		h.bus.Publish(adopted, "", event.SkillDone{Skill: "greet", Output: "secret output", Data: json.RawMessage(`"secret data"`)})
		synctest.Wait()
		cancel()
		readers.Wait()
		for _, c := range []struct {
			who, where, text string
			n, secrets       int
		}{
			{"the owner", "list", ask(t.Context(), "/api/v1/actions", ""), 4, 5},
			{"a viewer", "list", ask(t.Context(), "/api/v1/actions", viewersKey), 2, 0},
			{"a viewer", "list of 2", ask(t.Context(), "/api/v1/actions?n=2", viewersKey), 2, 0},
			{"the owner", "stream", streams[0], 4, 5},
			{"a viewer", "stream", streams[1], 2, 0},
		} {
			if n, secrets := strings.Count(c.text, `"agentId"`), strings.Count(c.text, "secret"); n != c.n || secrets != c.secrets ||
				!strings.Contains(c.text, `{"skill":"greet","result":{"success":true,`) {
				t.Errorf("%s, %s: %s", c.who, c.where, c.text)
			}
		}
		for _, path := range []string{"/api/v1/actions?type=speak,remember", "/api/v1/actions/stream?type=sign"} {
			if text := ask(t.Context(), path, viewersKey); !strings.Contains(text, "owner_only") {
				t.Errorf("%s: %s", path, text)
			}
		}
	})
}

// TestStreamResumes checks that a stream continues after the event in Last-Event-ID.
func TestStreamResumes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		stream := func(query, last string) string {
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/actions/stream?"+query, nil)
			r.Header.Set("Last-Event-ID", last)
			w := httptest.NewRecorder()
			ended := make(chan struct{})
			go func() { defer close(ended); h.engine.ServeHTTP(w, r) }()
			synctest.Wait()
			if last == "" {
				h.bus.Publish("", "", event.Presence{State: "online"})
				h.bus.Publish("", "", event.Heard{Text: "not an action"})
				h.bus.Publish(adopted, "s", event.Said{Text: "Hi"})
			}
			synctest.Wait()
			cancel()
			<-ended
			return w.Body.String()
		}
		first := stream("type=*", "")
		if strings.Count(first, "\nevent: ") != 2 || !strings.Contains(first, `"agentId":"cook"`) {
			t.Errorf("the stream sends %s", first)
		}
		again := stream("type=speak,presence", h.bus.ID(1))
		if strings.Count(again, "\nevent: ") != 1 || !strings.Contains(again, "event: speak") || !strings.Contains(again, "id: "+h.bus.ID(3)) {
			t.Errorf("resumed, the stream sends %s", again)
		}
	})
}

func TestReports(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		for _, c := range []struct {
			body   string
			status int
			says   string
		}{
			{`{"type":"load-start","payload":{"uri":"a.glb"},"session_id":"kitchen"}`, 202, `"agentId":"butler"`},
			{`{"type":"speak","payload":{"text":"hello"},"session_id":"kitchen"}`, 202, `"outcome":"done"`},
			{`{"type":"speak","payload":{"text":"hello"},"robot":"` + adopted + `"}`, 202, `"agentId":"cook"`},
			{`{"type":"remember","payload":{"type":"user","content":"likes tea"}}`, 202, `"done"`},
			{`{"type":"presence","payload":{"state":"x"},"robot":"a0b1c2d3e4f6"}`, 409, "not_adopted"},
			{`{"type":"presence","payload":{"state":"x"},"robot":"nobody"}`, 400, "bad_robot_id"},
			{`{"type":"presence","payload":{"state":"x"},"agentId":"butler"}`, 409, "wrong_agent"},
			{`{"type":"perform-skill","payload":{"skill":"greet"}}`, 404, "no_skills"},
			{`{"type":"dance"}`, 400, "bad_action"},
			{`[]`, 400, "bad_body"},
			{`{"type":"speak","payload":{"text":"` + strings.Repeat("a", limit.Question) + `"}}`, 413, "body_too_large"},
		} {
			if status, answer := h.report(t, c.body); status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("%.90s: %d %s", c.body, status, answer)
			}
		}
		if got := fmt.Sprint(h.said, h.facts); got != "["+adopted+" hello] [{ user  likes tea viewer}]" {
			t.Errorf("said and remembered: %s", got)
		}
		if got := h.actions(t, "n=200"); len(got) != 2 || got[0].Type != action.LoadStart || got[1].Type != action.Speak || got[1].Agent != "butler" {
			t.Errorf("recorded: %+v", got)
		}
	})
}

// TestSkillsSpeak checks that the result of a skill is spoken by the robot, or published as speech in
// the session. Nothing is spoken if the skill fails.
func TestSkillsSpeak(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.o.Language = func(device.ID) string { return "en" }
		h.o.Perform = func(_ context.Context, c skill.Call) (skill.Result, error) {
			if c.Skill == "broken" {
				return skill.Result{}, errors.New("no tide today")
			}
			return skill.Result{Output: "High water\nis at noon."}, nil
		}
		for _, at := range []string{`"robot":"` + adopted + `"`, `"session_id":"kitchen"`} {
			for _, name := range []string{"tide", "broken"} {
				if status, answer := h.report(t, `{"type":"perform-skill","payload":{"skill":"`+name+`"},`+at+`}`); status != 202 {
					t.Errorf("%s: %d %s", name, status, answer)
				}
			}
		}
		if want := []string{adopted + " High water is at noon."}; !slices.Equal(h.said, want) {
			t.Errorf("the robot says %q", h.said)
		}
		if got := h.actions(t, "agent=butler&type=speak"); len(got) != 1 || !strings.Contains(string(got[0].Payload), "High water is at noon.") {
			t.Errorf("the session says %+v", got)
		}
	})
}

// TestRates checks the limits of gestures, emotes and looks at one place.
func TestRates(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		wave := `{"type":"gesture","payload":{"name":"wave"}}`
		refused := 0
		for range 10_000 {
			status, answer := h.report(t, wave)
			if status == 429 {
				if refused++; !strings.Contains(answer, `"rate_limited"`) || !strings.Contains(answer, `"eventType":"gesture"`) {
					t.Fatalf("refused with %s", answer)
				}
			}
		}
		if got := h.actions(t, "type=gesture&n=200"); len(got) != 1 || refused != 9_900 {
			t.Errorf("%d gestures, %d refused", len(got), refused)
		}
		for _, weight := range []string{"0.2", "0.9", "0.4"} {
			h.report(t, `{"type":"emote","payload":{"trigger":"concern","weight":`+weight+`}}`)
		}
		h.report(t, `{"type":"emote","payload":{"trigger":"empathy"}}`)
		for _, target := range []string{"user", "camera", "model"} {
			h.report(t, `{"type":"look-at","payload":{"target":"`+target+`"}}`)
			time.Sleep(90 * time.Millisecond)
		}
		if got := h.actions(t, "type=look-at"); len(got) != 0 {
			t.Errorf("looks within 100 ms: %v", got)
		}
		time.Sleep(100 * time.Millisecond)
		looks, emotes := h.actions(t, "type=look-at"), h.actions(t, "type=emote")
		if len(looks) != 1 || !strings.Contains(string(looks[0].Payload), "model") {
			t.Errorf("looks: %+v", looks)
		}
		if len(emotes) != 2 || !strings.Contains(fmt.Sprintf("%s%s", emotes[0].Payload, emotes[1].Payload), "0.9") {
			t.Errorf("emotes: %+v", emotes)
		}
		if status, _ := h.report(t, wave); status != 429 {
			t.Errorf("a gesture in the cooldown: %d", status)
		}
		time.Sleep(time.Second)
		if status, answer := h.report(t, wave); status != 202 || !strings.Contains(answer, "done") {
			t.Errorf("a gesture after it: %d %s", status, answer)
		}
	})
}

// TestGestureWithoutRobot checks that the outcome of a gesture is noted while the robot is not
// connected.
func TestGestureWithoutRobot(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		wave := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			status, answer := h.report(t, `{"type":"gesture","payload":{"name":"wave"},"robot":"`+adopted+`"}`)
			if status != 202 || !strings.Contains(answer, `"outcome":"`+want+`"`) {
				t.Errorf("%d %s, want %s", status, answer, want)
			}
		}
		wave("noted")
		h.o.Board.HandleEvent(event.Envelope{Seq: 1, At: time.Now(), Robot: adopted, Event: event.RobotConnected{}})
		wave("done")
	})
}

// TestReportsAreBounded checks the limit of events per second in all sessions together.
func TestReportsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.bus.Publish(adopted, "s", event.Said{Text: "Hi"})
		before, taken := h.bus.Seq(), 0
		for i := range 10_000 {
			status, answer := h.report(t, fmt.Sprintf(`{"type":"gesture","payload":{"name":"wave"},"session_id":"s%d"}`, i))
			if status == 202 {
				taken++
			} else if status != 429 || !strings.Contains(answer, "from all viewers together") {
				t.Fatalf("refused with %d %s", status, answer)
			}
		}
		if published := h.bus.Seq() - before; taken != 300 || published != 300 {
			t.Errorf("%d are taken and %d published in a second", taken, published)
		}
		time.Sleep(time.Second)
		if status, answer := h.report(t, `{"type":"gesture","payload":{"name":"wave"}}`); status != 202 {
			t.Errorf("a second later: %d %s", status, answer)
		}
	})
}

// TestStoredReportsAreBounded checks the limit of stored events per minute in all sessions together. It
// does not apply to types of events that are not stored.
func TestStoredReportsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		taken := 0
		for i := range 1000 {
			status, answer := h.report(t, fmt.Sprintf(`{"type":"load-end","payload":{"uri":"x"},"session_id":"s%d"}`, i))
			if status == 202 {
				taken++
			} else if !strings.Contains(answer, `"rate_limited"`) || !strings.Contains(answer, "of the types that are stored") {
				t.Fatalf("refused with %d %s", status, answer)
			}
		}
		if taken != 60 {
			t.Errorf("%d are kept within a minute", taken)
		}
		for kind, payload := range map[string]string{"remember": `{"type":"user","content":"x"}`, "speak": `{"text":"x"}`, "validate": `{}`} {
			if status, answer := h.report(t, `{"type":"`+kind+`","payload":`+payload+`,"session_id":"of `+kind+`"}`); status != 429 {
				t.Errorf("%s: %d %s", kind, status, answer)
			}
		}
		if status, answer := h.report(t, `{"type":"presence","payload":{"state":"online"}}`); status != 202 {
			t.Errorf("what is not kept: %d %s", status, answer)
		}
		time.Sleep(time.Minute)
		if status, answer := h.report(t, `{"type":"speak","payload":{"text":"x"}}`); status != 202 {
			t.Errorf("a minute later: %d %s", status, answer)
		}
	})
}

func TestBurstsOfEachType(t *testing.T) {
	for kind, most := range map[action.Type]int{action.PerformSkill: 10, action.Emote: 20, action.Speak: 5, action.Presence: 100} {
		rates, now := action.NewRates[int](), time.Unix(1, 0)
		for n := range most + 1 {
			if _, err := rates.Admit(now, 0, kind, event.Presence{}); errors.Is(err, action.ErrRate) != (n == most) {
				t.Errorf("%s, number %d: %v", kind, n+1, err)
			}
		}
		if _, err := rates.Admit(now, 1, kind, event.Presence{}); err != nil {
			t.Errorf("%s at another place: %v", kind, err)
		}
		if _, err := rates.Admit(now.Add(999*time.Millisecond), 0, kind, event.Presence{}); err == nil {
			t.Errorf("%s passes before the second is over", kind)
		}
		if _, err := rates.Admit(now.Add(time.Second), 0, kind, event.Presence{}); err != nil {
			t.Errorf("%s after a second: %v", kind, err)
		}
	}
}
