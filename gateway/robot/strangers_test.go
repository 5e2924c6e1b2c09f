package robot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/vision"
	"perch/limit"
	"perch/must"
	"perch/voice"
)

// strangers makes all robots strangers.
func strangers(o *Options) { o.Robots.(*registry).stranger.Store(true) }

// strangersMind returns a mind that records for each turn whether it is a stranger's.
func strangersMind(turns *[]bool) *scriptedMind {
	return &scriptedMind{answer: func(_ context.Context, t agent.Turn, out func(agent.Reply) error) error {
		*turns = append(*turns, t.Untrusted)
		return errors.Join(out(agent.Say{Text: "It is late."}), out(agent.Done{End: agent.Continue}))
	}}
}

// listTool responds as the robot to the request with an ID, with a list of one tool.
func (k *talk) listTool(id int) {
	k.say(xiaozhi.FromMCP{Payload: []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"self.get_device_status"}]}}`, id))})
	synctest.Wait()
}

// kept describes the data that was stored.
func (k *talk) kept() string {
	synctest.Wait()
	return fmt.Sprintf("%d tools, echo %v, %d sessions, %d turns, %d waiting", len(k.robots.kept), k.robots.echo, len(k.sessions.Kept),
		len(k.turns.Kept), len(k.waiting.Kept))
}

// TestAStrangerLeavesNothing checks that a stranger can talk, that nothing about it is stored, and that no sentence is
// stored for it.
func TestAStrangerLeavesNothing(t *testing.T) {
	const nothing = "0 tools, echo [], 0 sessions, 0 turns, 0 waiting"
	var turns []bool
	talking(t, strangersMind(&turns), func(k *talk) {
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket", Features: xiaozhi.Features{MCP: true, AEC: true}})
		k.listTool(2)
		if got := len(k.server.Tools(robotID)); got != 1 {
			t.Errorf("it has %d tools in its own talk", got)
		}
		k.hears(xiaozhi.Auto, "what time is it")
		k.pass(5 * time.Second)
		if !slices.Equal(turns, []bool{true}) || len(k.mind.remembered) != 1 {
			t.Errorf("turns as a stranger: %v, of which %d are remembered in its own talk", turns, len(k.mind.remembered))
		}
		for range 3 { // two are not spoken yet when the channel closes
			if queued, err := k.server.Speak(k.t.Context(), robotID, "A long sentence for everybody to hear."); queued || err != nil {
				t.Errorf("to an open channel: %v, %v", queued, err)
			}
		}
		k.leave()
		if queued, err := k.server.Speak(k.t.Context(), robotID, "Later."); queued || !errors.Is(err, errNotAdopted) {
			t.Errorf("to a closed channel: %v, %v", queued, err)
		}
		if got := k.kept(); got != nothing {
			t.Errorf("kept are %s", got)
		}
	}, strangers)
}

// TestAdoptedInTheMiddle checks that a robot that is adopted during a session counts as adopted from its next turn on, and
// that the earlier data of the session is then stored too.
func TestAdoptedInTheMiddle(t *testing.T) {
	var turns []bool
	talking(t, strangersMind(&turns), func(k *talk) {
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket", Features: xiaozhi.Features{MCP: true, AEC: true}})
		k.listTool(2)
		speak := func() {
			k.hears(xiaozhi.Auto, "what time is it")
			time.Sleep(5 * time.Second)
		}
		speak()
		k.robots.stranger.Store(false)
		speak()
		speak()
		synctest.Wait()
		if want := []bool{true, false, false}; !slices.Equal(turns, want) {
			t.Errorf("turns as a stranger: %v, want %v", turns, want)
		}
		if got, want := k.kept(), "1 tools, echo [true], 1 sessions, 2 turns, 0 waiting"; got != want {
			t.Errorf("kept are %s, want %s", got, want)
		}
		k.robots.stranger.Store(true) // the robot is forgotten
		speak()
		if got := k.kept(); !turns[3] || !strings.Contains(got, "2 turns") {
			t.Errorf("after it was forgotten: a stranger is %v, kept are %s", turns[3], got)
		}
	}, strangers)
}

// TestWhatWaitsIsNotForStrangers checks that a stranger that uses the MAC address of a forgotten robot does not get the
// sentences stored for that robot.
func TestWhatWaitsIsNotForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer(), xiaozhi.Framing1, func(k *talk) {
			if _, err := NewCommandQueue(k.waiting).add(robotID, time.Now(),
				Command{Thing: dialogue.CommandSay, Text: "The key is under the mat."}); err != nil {
				t.Fatal(err)
			}
		}, strangers)
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket"})
		time.Sleep(10 * time.Second)
		k.wantStory("hello")
		k.close()
	})
}

// TestToolsAreBoundedInBytes checks that tools beyond 64 KB are left out, which is logged once, and that smaller tools after
// them are accepted.
func TestToolsAreBoundedInBytes(t *testing.T) {
	var log bytes.Buffer
	talking(t, answer(), func(k *talk) {
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket", Features: xiaozhi.Features{MCP: true}})
		id := 2
		for range 2 { // the robot lists its tools twice
			for n := range 20 {
				var tools []device.Tool
				for i := range 10 {
					properties := map[string]device.Argument{}
					for p := range 20 {
						properties[strings.Repeat("<", 20)+fmt.Sprint(p)] = device.Argument{Type: "string"}
					}
					tools = append(tools, device.Tool{Name: fmt.Sprint("tool ", n, i), Description: strings.Repeat("<&>", 100),
						Schema: device.Schema{Properties: properties}})
				}
				if n == 19 {
					tools[9] = device.Tool{Name: "small"}
				}
				next := "more"
				if n == 19 {
					next = ""
				}
				body := must.Value(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
					"result": map[string]any{"tools": tools, "nextCursor": next}}))(t)
				k.send(uplink{raw: fmt.Appendf(nil, `{"type":"mcp","payload":%s}`, body)})
				id++
			}
			id++ // the request initialize of the next hello
			k.say(xiaozhi.Hello{Version: 1, Transport: "websocket", Features: xiaozhi.Features{MCP: true}})
		}
		kept := must.Value(json.Marshal(k.robots.kept))(t)
		_, small := device.FindTool(k.robots.kept, "small")
		if len(kept) > limit.Body || len(kept) < limit.Body/2 || !small {
			t.Errorf("%d tools of %d bytes are kept, the small one: %v", len(k.robots.kept), len(kept), small)
		}
		if n := strings.Count(log.String(), "more tools than the appliance accepts"); n != 1 || !strings.Contains(log.String(), "left out") {
			t.Errorf("logged %d times: %s", n, &log)
		}
	}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
}

// gauge counts concurrent calls: the present number, the maximum and the total.
type gauge struct {
	mu              sync.Mutex
	now, most, ever int
}

// enter counts a call until leave is called.
func (g *gauge) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.ever++
	g.most = max(g.most, g.now)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now--
	}
}

// limitedRecognizer is a recognizer that waits for strangers until let is closed.
type limitedRecognizer struct {
	let             chan struct{}
	strangers, ours gauge
}

func (*limitedRecognizer) Name() string { return "limited" }

func (c *limitedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if !o.Stranger {
		defer c.ours.enter()()
		return voice.Transcript{Text: "what time is it"}, u.Wait(ctx)
	}
	defer c.strangers.enter()()
	select {
	case <-c.let:
	case <-ctx.Done():
	}
	return voice.Transcript{Text: "let me in"}, ctx.Err()
}

// connectStrangers connects strangers, each of which sends a hello and another message. leave closes their channels and
// waits for the ends of their sessions.
func (k *talk) connectStrangers(many int, then xiaozhi.FromRobot) (lines []*fakeChannel, leave func()) {
	var ended []chan struct{}
	for i := range many {
		l := newFakeChannel()
		lines, ended = append(lines, l), append(ended, k.connect(l, device.ID(fmt.Sprintf("02000000%04x", i))))
		l.up <- uplink{frame: frame{message: xiaozhi.Hello{Version: 1, Transport: "websocket"}}}
		l.up <- uplink{frame: frame{message: then}}
	}
	return lines, func() {
		for i, l := range lines {
			l.Close(0, "")
			<-ended[i]
		}
	}
}

// TestStrangersDoNotKeepTheOwnerWaiting checks that the owner's robot is answered at once while people talk to 190
// strangers. Only a few strangers' utterances are recognized; the other strangers speak a phrase.
func TestStrangersDoNotKeepTheOwnerWaiting(t *testing.T) {
	const many = 190
	recognizer := &limitedRecognizer{}
	talking(t, answer("It is late."), func(k *talk) {
		lines, leave := k.connectStrangers(many, xiaozhi.ListenStart{Mode: xiaozhi.Auto})
		for _, p := range append(slices.Clone(k.packets), k.silence[:15]...) {
			for _, l := range lines {
				l.up <- uplink{frame: frame{audio: xiaozhi.Audio{Opus: p}}}
			}
			time.Sleep(voice.FrameDuration)
		}
		synctest.Wait()
		k.answers()
		time.Sleep(3 * time.Second)
		k.wantStory("hello, stt what time is it, face happy, tts start, sentence It is late., 19 packets, tts stop")
		synctest.Wait()
		refused := 0
		for _, l := range lines {
			if strings.Contains(l.story(), "sentence Sorry.") {
				refused++
			}
		}
		if theirs := &recognizer.strangers; recognizer.ours.ever != 1 || theirs.now != maxStrangerTurns || theirs.most != maxStrangerTurns ||
			refused != many-maxStrangerTurns {
			t.Errorf("%d of the owner and %d strangers are listened to, at most %d; %d were refused", recognizer.ours.ever, theirs.now,
				theirs.most, refused)
		}
		close(recognizer.let) // releases the slots
		k.pass(5 * time.Second)
		if recognizer.strangers.now != 0 || len(k.server.strangers.utterances) != 0 {
			t.Errorf("%d are still listened to", recognizer.strangers.now)
		}
		leave()
	}, strangers, func(o *Options) {
		o.Robots.(*registry).adopted = robotID
		recognizer.let = make(chan struct{}) // must be made in this bubble
		o.Recognizer = recognizer
		o.Phrases = func(_, name string) string {
			if name == phraseFailed {
				return "Sorry."
			}
			return ""
		}
	})
}

// slow is a mind that waits until let is closed before it answers.
type slow struct {
	mind
	let   chan struct{}
	turns gauge
}

func (s *slow) AnswerDrafted(ctx context.Context, d *agent.Draft, t agent.Turn, out func(agent.Reply) error) error {
	defer s.turns.enter()()
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return s.mind.AnswerDrafted(ctx, d, t, out)
}

// TestStrangersThinkInMeasure checks that only a few strangers' turns are answered at a time, and the owner's turn in
// addition.
func TestStrangersThinkInMeasure(t *testing.T) {
	const many = 50
	late := answer("It is late.")
	agents := &slow{mind: late}
	talking(t, late, func(k *talk) {
		_, leave := k.connectStrangers(many, xiaozhi.ListenDetect{Text: "what time is it", Typed: true})
		k.say(xiaozhi.ListenDetect{Text: "what time is it", Typed: true})
		k.pass(3 * time.Second)
		if turns := &agents.turns; turns.most != maxStrangerTurns+1 || turns.ever != maxStrangerTurns+1 {
			t.Errorf("%d turns are answered at a time, %d in all, want %d strangers and the owner", turns.most, turns.ever, maxStrangerTurns)
		}
		close(agents.let)
		time.Sleep(5 * time.Second)
		if len(k.server.strangers.turns) != 0 {
			t.Error("their slots are not free")
		}
		leave()
	}, strangers, func(o *Options) {
		o.Robots.(*registry).adopted = robotID
		agents.let = make(chan struct{}) // must be made in this bubble
		o.Mind = agents
	})
}

// TestStrangersFillNoLog checks that strangers cannot fill the log, whatever they repeat and however many IDs they use.
func TestStrangersFillNoLog(t *testing.T) {
	for name, annoy := range map[string]func(k *talk){
		"one hello after the other": func(k *talk) {
			for range 3000 {
				k.put(frame{message: xiaozhi.Hello{Version: 1, Transport: "websocket", Features: xiaozhi.Features{AEC: true}}})
			}
		},
		"one channel after the other": func(k *talk) {
			for i := range 300 {
				l := newFakeChannel()
				ended := k.connect(l, device.ID(fmt.Sprintf("02000000%04x", i)))
				l.up <- uplink{raw: []byte("this is no JSON\n")}
				l.up <- uplink{frame: frame{audio: xiaozhi.Audio{Opus: make([]byte, voice.MaxPacket+1)}}}
				l.Close(0, "")
				<-ended
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			talking(t, answer(), func(k *talk) {
				log.Reset()
				annoy(k)
				synctest.Wait()
				if n := strings.Count(log.String(), "\n"); n > 60 || n == 0 {
					t.Errorf("%d lines", n)
				}
			}, strangers, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		})
	}
}

// TestStrangersChannelsAreBounded checks that the number of strangers' channels is bounded, and that adopted robots are not
// affected.
func TestStrangersChannelsAreBounded(t *testing.T) {
	robots := &registry{adopted: robotID}
	robots.stranger.Store(true)
	s, engine := watching(t, robots)
	var leave []func()
	for range maxStrangers {
		l := must.Value(s.strangers.reserve("020000000001"))(t)
		leave = append(leave, l)
	}
	ask := func(id device.ID) int {
		r, w := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil), httptest.NewRecorder()
		r.Header.Set("Device-Id", string(id))
		engine.ServeHTTP(w, r)
		return w.Code
	}
	if got := ask("020000000002"); got != http.StatusServiceUnavailable {
		t.Errorf("one more stranger: %d", got)
	}
	if got := ask(robotID); got != http.StatusUpgradeRequired { // admitted; the request is then refused because it is no upgrade
		t.Errorf("the owner's robot: %d", got)
	}
	leave[0]()
	if got := ask("020000000002"); got != http.StatusUpgradeRequired {
		t.Errorf("once one has gone: %d", got)
	}
}

// TestStrangersPicturesAreNotKept checks that a stranger's picture is described but not stored.
func TestStrangersPicturesAreNotKept(t *testing.T) {
	robots := &registry{adopted: robotID}
	robots.stranger.Store(true)
	s, engine := watching(t, robots)
	for id, kept := range map[device.ID]bool{robotID: true, "020000000001": false} {
		_, token := s.vision.Issue(device.Robot{ID: id, BaseURL: "http://perch.local:8003"}, string(id), time.Now())
		body, kind := form(t, "file", jpeg)
		r, w := httptest.NewRequest(http.MethodPost, vision.Path, body), httptest.NewRecorder()
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+token)
		engine.ServeHTTP(w, r)
		if _, there := s.Picture(id); w.Code != http.StatusOK || there != kept {
			t.Errorf("%s: %d, kept is %v", id, w.Code, there)
		}
	}
}
