package relay

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
)

// fakeOBS is a fake of OBS, with the part of docs/generated/protocol.md of obs-websocket 5.7 that a relay uses.
type fakeOBS struct {
	password string

	mu     sync.Mutex
	inputs map[string]string          // texts by name of the source
	scenes map[string][]string        // items by scene; the ID of an item is its index
	seen   map[string]map[string]bool // visible items by scene
	air    string                     // name of the program scene
	busy   bool                       // whether OBS is changing scenes
}

func newFakeOBS(password string) *fakeOBS {
	return &fakeOBS{password: password, air: "Talk", inputs: map[string]string{"Stack-chan text": "old"},
		scenes: map[string][]string{"Talk": {"Camera", "Stack-chan"}, "Game": {"Stack-chan", "Thinking"}},
		seen:   map[string]map[string]bool{"Talk": {}, "Game": {}}}
}

const (
	obsSalt      = "lM1GncleQOaCu9lT1yeUZhFYnqhsLLP1G5lAGo3ixaI="
	obsChallenge = "+IxH4CnCiqpX1rM9scsNynZzbOe4KhDeYcTNS3PDaeY="
)

func (o *fakeOBS) greet() any {
	hello := map[string]any{"obsStudioVersion": "32.0.4", "obsWebSocketVersion": "5.7.3", "rpcVersion": 1}
	if o.password != "" {
		hello["authentication"] = map[string]string{"challenge": obsChallenge, "salt": obsSalt}
	}
	return map[string]any{"op": 0, "d": hello}
}

func (o *fakeOBS) answer(message []byte) []any {
	var m struct {
		Op int `json:"op"`
		D  struct {
			Authentication string `json:"authentication"`
			Kind           string `json:"requestType"`
			ID             string `json:"requestId"`
			Data           struct {
				Input    string            `json:"inputName"`
				Settings map[string]string `json:"inputSettings"`
				Scene    string            `json:"sceneName"`
				Source   string            `json:"sourceName"`
				Item     int               `json:"sceneItemId"`
				Enabled  bool              `json:"sceneItemEnabled"`
			} `json:"requestData"`
		} `json:"d"`
	}
	if json.Unmarshal(message, &m) != nil {
		return []any{hangUp{}}
	}
	if m.Op == 1 {
		if o.password != "" && m.D.Authentication != obsAuthentication(o.password, obsSalt, obsChallenge) {
			return []any{hangUp{}}
		}
		return []any{map[string]any{"op": 2, "d": map[string]int{"negotiatedRpcVersion": 1}}}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	status, data := map[string]any{"result": true, "code": 100}, map[string]any{}
	fail := func(code int, comment string) {
		status = map[string]any{"result": false, "code": code, "comment": comment}
	}
	d := m.D.Data
	items, known := o.scenes[d.Scene]
	switch m.D.Kind {
	case "SetInputSettings":
		if _, is := o.inputs[d.Input]; !is {
			fail(600, "No source was found by the name of `"+d.Input+"`.")
			break
		}
		o.inputs[d.Input] = d.Settings["text"]
	case "GetCurrentProgramScene":
		data["sceneName"], data["currentProgramSceneName"] = o.air, o.air
	case "GetSceneItemId":
		fail(600, "No scene items were found in the specified scene by that name or offset.")
		for i, item := range items {
			if item == d.Source {
				status, data["sceneItemId"] = map[string]any{"result": true, "code": 100}, i
			}
		}
	case "SetSceneItemEnabled":
		if !known || d.Item >= len(items) {
			fail(600, "No scene items were found in the specified scene by that ID.")
			break
		}
		o.seen[d.Scene][items[d.Item]] = d.Enabled
	default:
		fail(204, "Your request type is not valid.")
	}
	if o.busy {
		fail(207, "OBS is not ready to perform the request.")
	}
	return []any{map[string]any{"op": 7, "d": map[string]any{"requestType": m.D.Kind, "requestId": m.D.ID,
		"requestStatus": status, "responseData": data}}}
}

// state returns the text of the text source, and whether an item of a scene is visible.
func (o *fakeOBS) state(scene, item string) (text string, seen bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.inputs["Stack-chan text"], o.seen[scene][item]
}

func (o *fakeOBS) change(change func(*fakeOBS)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

// TestOBS tests that the password is not sent, and that the text source is empty at the beginning and at the
// end. TestSpokenTurn tests a turn.
func TestOBS(t *testing.T) {
	o := newFakeOBS("supersecretpassword")
	f := greetingFake(t, "", o.greet, o.answer)
	h := newConnected(t, Target{Kind: "obs", URL: "ws://" + f.address, Key: o.password})
	h.eventually("the text is empty", func() bool { text, _ := o.state("", ""); return text == "" })
	h.happens(robotA, "s", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("the notification", func() bool { text, _ := o.state("", ""); return text == "Bread is done." })
	if note := h.note(); note != "" {
		t.Errorf("note %q", note)
	}
	if all := f.all(); strings.Contains(all, o.password) {
		t.Errorf("the password was sent:\n%s", all)
	}
	h.stop()
	if text, _ := o.state("", ""); text != "" {
		t.Errorf("the text source is left with %q", text)
	}
}

// TestOBSIsLeftWithoutItems tests that all items are hidden at the end, including the items for an idle agent.
func TestOBSIsLeftWithoutItems(t *testing.T) {
	o := newFakeOBS("")
	f := greetingFake(t, "", o.greet, o.answer)
	h := newHarness(t, Target{Kind: "obs", URL: "ws://" + f.address, Words: map[string]string{"state.idle": "Camera", "face.neutral": "Camera"}})
	h.happens(robotA, "s", event.RobotOnline{})
	h.eventually("the item of rest", func() bool { _, seen := o.state("Talk", "Camera"); return seen })
	h.stop()
	if _, seen := o.state("Talk", "Camera"); seen {
		t.Error("the item of rest is left on the stream")
	}
}

// TestOBSAuthentication compares the response to the challenge in the protocol's documentation with the response
// of obs-websocket-js 5.0.8.
func TestOBSAuthentication(t *testing.T) {
	if got, want := obsAuthentication("supersecretpassword", obsSalt, obsChallenge), "1Ct943GAT+6YQUUX47Ia/ncufilbe6+oD6lY+5kaCu4="; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestOBSPassword tests the notes about a missing and a wrong password.
func TestOBSPassword(t *testing.T) {
	o := newFakeOBS("right")
	f := greetingFake(t, "", o.greet, o.answer)
	for key, want := range map[string]string{"": "OBS requires a password", "wrong-password": "OBS has refused the password"} {
		h := newHarness(t, Target{Kind: "obs", URL: "ws://" + f.address, Key: key})
		h.eventually(want, func() bool { return strings.Contains(h.note(), want) })
		if note := h.note(); key != "" && strings.Contains(note, key) {
			t.Errorf("the note holds the key: %s", note)
		}
	}
}

// TestOBSWithoutItsSources tests that the owner is warned of missing sources, and that sources are used when they
// appear.
func TestOBSWithoutItsSources(t *testing.T) {
	t.Parallel()
	o := newFakeOBS("")
	o.inputs, o.scenes["Talk"] = map[string]string{}, nil
	f := greetingFake(t, "", o.greet, o.answer)
	h := newHarness(t, Target{Kind: "obs", URL: "ws://" + f.address})
	h.eventually("both notes", func() bool {
		note := h.note()
		return h.relays.List()[0].OK && strings.Contains(note, `no source "Stack-chan text"`) &&
			strings.Contains(note, `no source "Stack-chan" in the scene "Talk"`)
	})
	asked := strings.Count(f.all(), "GetSceneItemId")
	h.happens(robotA, "s", turn()...)
	h.eventually("it is told in vain", func() bool { // the two requests may come in either order
		return strings.Contains(f.last("It is warm."), "SetInputSettings") && strings.Count(f.all(), "GetSceneItemId") > asked
	})
	o.change(func(o *fakeOBS) { o.inputs["Stack-chan text"], o.scenes["Talk"] = "", []string{"Stack-chan"} })
	f.send(map[string]any{"op": 5, "d": map[string]any{"eventType": "InputCreated", "eventIntent": 8}})
	h.eventually("what there is", func() bool { text, seen := o.state("Talk", "Stack-chan"); return text == "It is warm." && seen })
	h.eventually("no note", func() bool { return h.note() == "" })
}

// TestOBSChangesItsScene tests that the item becomes visible in a new scene.
func TestOBSChangesItsScene(t *testing.T) {
	t.Parallel()
	o := newFakeOBS("")
	f := greetingFake(t, "", o.greet, o.answer)
	h := newHarness(t, Target{Kind: "obs", URL: "ws://" + f.address})
	h.happens(robotA, "s", turn()...)
	h.eventually("it is seen", func() bool { _, seen := o.state("Talk", "Stack-chan"); return seen })
	o.change(func(o *fakeOBS) { o.air = "Game" })
	f.send(map[string]any{"op": 5, "d": map[string]any{"eventType": "CurrentProgramSceneChanged", "eventIntent": 4}})
	h.eventually("it is seen there", func() bool { _, seen := o.state("Game", "Stack-chan"); return seen })
}

// TestBusyOBS tests that OBS gets everything again after it was changing scenes.
func TestBusyOBS(t *testing.T) {
	t.Parallel()
	o := newFakeOBS("")
	o.busy = true
	f := greetingFake(t, "", o.greet, o.answer)
	h := newConnected(t, Target{Kind: "obs", URL: "ws://" + f.address})
	h.happens(robotA, "s", turn()...)
	h.eventually("it is told", func() bool { return f.last("It is warm.") != "" })
	o.change(func(o *fakeOBS) { o.busy, o.inputs["Stack-chan text"] = false, "" })
	h.eventually("it is told again", func() bool { text, _ := o.state("", ""); return text == "It is warm." })
}

func TestOtherThanOBS(t *testing.T) {
	t.Parallel()
	garbage := func() any { return "good day" }
	f := greetingFake(t, "", garbage, func([]byte) []any { return []any{1, "x"} })
	h := newHarness(t, Target{Kind: "obs", URL: "ws://" + f.address})
	h.eventually("the note", func() bool { return strings.Contains(h.note(), "does not greet as OBS does") })
}

func TestOBSItems(t *testing.T) {
	w := wordsOf(t, obsKind(), map[string]string{"state.thinking": "Dots", "state.listening": "Ear", "face.happy": "Smile",
		"feeling.celebration": "Dots", "item": "Bot", "scene": "Bot"})
	for _, c := range []struct {
		is   Scene
		seen string
	}{
		{Scene{}, ""},
		{Scene{State: agent.Thinking}, "Dots"},
		{Scene{State: agent.Speaking, Face: "happy"}, "Bot Smile"},
		{Scene{State: agent.Idle, Mood: event.Mood{Dominant: "celebration", Face: "happy"}}, "Dots Smile"},
		{Scene{State: agent.Idle, Face: "happy"}, ""}, // an idle agent does not show the face of a conversation
	} {
		items := obsItems(w, c.is)
		if len(items) != 4 {
			t.Errorf("items %v", items)
		}
		maps.DeleteFunc(items, func(_ string, seen bool) bool { return !seen })
		if got := strings.Join(slices.Sorted(maps.Keys(items)), " "); got != c.seen {
			t.Errorf("%+v shows %q, not %q", c.is, got, c.seen)
		}
	}
	if got := obsText(Scene{Question: "q", Said: "s"}, "n") + obsText(Scene{Said: "s"}, "n") + obsText(Scene{}, "n"); got != "qsn" {
		t.Errorf("texts %s", got)
	}
}

// TestOBSRemovesNotification tests that a notification disappears after ten seconds.
func TestOBSRemovesNotification(t *testing.T) {
	o := newFakeOBS("")
	f := greetingFake(t, "", o.greet, o.answer)
	now := time.Now()
	opened, err := obs{&programConfig{Target: Target{URL: "ws://" + f.address}, words: words{table: map[string]string{"input": "Stack-chan text"}}}}.
		open(t.Context(), func(error) {})
	must.Succeed(t, err)
	defer opened.close()
	opened.(*obsLink).now = func() time.Time { return now }
	for i, want := range []string{"Bread.", "Bread.", ""} {
		err := opened.refresh(t.Context(), Scene{})
		if i == 0 {
			err = opened.frame(t.Context(), feed.NewFrame(feed.KindNotice, feed.Notice{Text: "Bread."}), Scene{})
		}
		if text, _ := o.state("", ""); err != nil || text != want {
			t.Errorf("after %d s it shows %q: %v", 6*i, text, err)
		}
		now = now.Add(6 * time.Second)
	}
}
