package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
	"perch/store/storetest"
	"perch/waittest"
)

// fakeVTube is a fake of VTube Studio with a loaded model, as its documentation describes the program.
type fakeVTube struct {
	*fake
	allow chan struct{} // closed once the user has answered the popup
	deny  bool

	mu          sync.Mutex
	known       bool // whether the session is authenticated
	tokens      []string
	popups      int
	model       string
	expressions map[string]bool // whether each expression is active; key: file
	hotkeys     []string        // name, type, file and ID of each hotkey, in turn
	parameters  map[string]float64
	custom      []string
	injected    int
	off         bool // whether the user has withdrawn the permission
}

func newFakeVTube(t testing.TB, address string) *fakeVTube {
	f := &fakeVTube{allow: make(chan struct{}), model: "Hiyori",
		expressions: map[string]bool{"Happy.exp3.json": false, "02_sad.exp3.json": false, "thinking.exp3.json": false, "exp_5.exp3.json": false},
		hotkeys: []string{"Angry", "ToggleExpression", "exp_5.exp3.json", "h1", "Wave", "TriggerAnimation", "wave.motion3.json", "h2",
			"dance", "ChangeVTSModel", "", "h3"},
		parameters: map[string]float64{"MouthOpen": 0, "MouthSmile": 0, "FaceAngleX": 0, "FaceAngleY": 0, "FaceAngleZ": 0, "BrowLeftY": 0,
			"BrowRightY": 0}}
	f.fake = newFake(t, address, f.reply)
	t.Cleanup(func() { // runs before the fake waits for its connections
		select {
		case <-f.allow:
		default:
			close(f.allow)
		}
	})
	return f
}

// allowed makes the user allow every popup.
func (f *fakeVTube) allowed() *fakeVTube {
	close(f.allow)
	return f
}

// again starts the program again, with the same plugins and without active expressions.
func (f *fakeVTube) again() {
	f.known = false
	for file := range f.expressions {
		f.expressions[file] = false
	}
	f.fake.again()
}

type vtubeRefusal struct {
	id   int
	text string
}

func (f *fakeVTube) reply(message []byte) []any {
	var m struct {
		API     string          `json:"apiName"`
		Version string          `json:"apiVersion"`
		ID      string          `json:"requestID"`
		Type    string          `json:"messageType"`
		Data    json.RawMessage `json:"data"`
	}
	answer := func(kind string, data any) []any {
		return []any{map[string]any{"apiName": "VTubeStudioPublicAPI", "apiVersion": "1.0", "timestamp": time.Now().UnixMilli(),
			"requestID": m.ID, "messageType": kind, "data": data}}
	}
	refuse := func(r vtubeRefusal) []any {
		return answer("APIError", map[string]any{"errorID": r.id, "message": r.text})
	}
	if json.Unmarshal(message, &m) != nil {
		return refuse(vtubeRefusal{2, "JSON invalid"})
	}
	switch {
	case m.API != "VTubeStudioPublicAPI":
		return refuse(vtubeRefusal{3, "name"})
	case m.Version != "1.0":
		return refuse(vtubeRefusal{4, "version"})
	case m.ID == "" || len(m.ID) > 64:
		return refuse(vtubeRefusal{5, "id"})
	}
	data, r := f.does(m.Type, m.Data)
	if r.id != 0 {
		return refuse(r)
	}
	return answer(strings.TrimSuffix(m.Type, "Request")+"Response", data)
}

func (f *fakeVTube) does(kind string, text json.RawMessage) (any, vtubeRefusal) {
	var d struct {
		PluginName          string  `json:"pluginName"`
		PluginDeveloper     string  `json:"pluginDeveloper"`
		AuthenticationToken string  `json:"authenticationToken"`
		ExpressionFile      string  `json:"expressionFile"`
		Active              bool    `json:"active"`
		HotkeyID            string  `json:"hotkeyID"`
		Parameter           string  `json:"parameterName"`
		Mode                string  `json:"mode"`
		Values              []value `json:"parameterValues"`
		Event               string  `json:"eventName"`
	}
	if len(text) > 0 && json.Unmarshal(text, &d) != nil {
		return nil, vtubeRefusal{2, "data invalid"}
	}
	if kind == "AuthenticationTokenRequest" {
		if len(d.PluginName) < 3 || len(d.PluginName) > 32 {
			return nil, vtubeRefusal{52, "plugin name"}
		}
		if len(d.PluginDeveloper) < 3 || len(d.PluginDeveloper) > 32 {
			return nil, vtubeRefusal{53, "developer name"}
		}
		f.mu.Lock()
		f.popups++
		f.mu.Unlock()
		<-f.allow
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.deny {
			return nil, vtubeRefusal{50, "User has denied API access for your plugin."}
		}
		token := fmt.Sprintf("token-%d", len(f.tokens))
		f.tokens = append(f.tokens, token)
		return map[string]string{"authenticationToken": token}, vtubeRefusal{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == "AuthenticationRequest" {
		f.known = slices.Contains(f.tokens, d.AuthenticationToken)
		return map[string]any{"authenticated": f.known, "reason": "because"}, vtubeRefusal{}
	}
	if !f.known {
		return nil, vtubeRefusal{8, "This request requires authentication."}
	}
	if f.off {
		return nil, vtubeRefusal{50, "User has denied API access for your plugin."}
	}
	loaded := map[string]any{"modelLoaded": f.model != "", "modelName": f.model, "modelID": f.model + "-id"}
	switch kind {
	case "EventSubscriptionRequest":
		return map[string]any{"subscribedEventCount": 1, "subscribedEvents": []string{d.Event}}, vtubeRefusal{}
	case "HotkeysInCurrentModelRequest":
		all := []any{}
		for h := range slices.Chunk(f.hotkeys, 4) {
			all = append(all, map[string]any{"name": h[0], "type": h[1], "description": "", "file": h[2], "hotkeyID": h[3],
				"keyCombination": []any{}, "onScreenButtonID": -1})
		}
		loaded["availableHotkeys"] = all
		return loaded, vtubeRefusal{}
	case "ExpressionStateRequest":
		all := []any{}
		for file, active := range f.expressions {
			all = append(all, map[string]any{"name": strings.TrimSuffix(file, ".exp3.json"), "file": file, "active": active,
				"deactivateWhenKeyIsLetGo": false, "autoDeactivateAfterSeconds": false, "secondsRemaining": 0,
				"usedInHotkeys": []any{}, "parameters": []any{}})
		}
		loaded["expressions"] = all
		return loaded, vtubeRefusal{}
	case "ExpressionActivationRequest":
		if _, is := f.expressions[d.ExpressionFile]; !is {
			return nil, vtubeRefusal{651, "no such expression"}
		}
		f.expressions[d.ExpressionFile] = d.Active
		return struct{}{}, vtubeRefusal{}
	case "HotkeyTriggerRequest":
		if !slices.Contains(f.hotkeys, d.HotkeyID) {
			return nil, vtubeRefusal{202, "no such hotkey"}
		}
		return map[string]string{"hotkeyID": d.HotkeyID}, vtubeRefusal{}
	case "InputParameterListRequest":
		of := func(names []string) []any {
			all := []any{}
			for _, name := range names {
				all = append(all, map[string]any{"name": name, "addedBy": "VTube Studio", "value": f.parameters[name],
					"min": 0, "max": 1, "defaultValue": 0})
			}
			return all
		}
		loaded["customParameters"] = of(f.custom)
		names := []string{}
		for name := range f.parameters {
			if !slices.Contains(f.custom, name) {
				names = append(names, name)
			}
		}
		loaded["defaultParameters"] = of(names)
		return loaded, vtubeRefusal{}
	case "ParameterCreationRequest":
		if len(d.Parameter) < 4 || len(d.Parameter) > 32 {
			return nil, vtubeRefusal{350, "name"}
		}
		f.custom, f.parameters[d.Parameter] = append(f.custom, d.Parameter), 0
		return map[string]string{"parameterName": d.Parameter}, vtubeRefusal{}
	case "InjectParameterDataRequest":
		if len(d.Values) == 0 {
			return nil, vtubeRefusal{450, "no data"}
		}
		for _, v := range d.Values {
			if _, is := f.parameters[v.ID]; !is {
				return nil, vtubeRefusal{453, "no parameter " + v.ID}
			}
			f.parameters[v.ID] = v.Value
		}
		f.injected++
		return struct{}{}, vtubeRefusal{}
	}
	return nil, vtubeRefusal{7, "unknown request " + kind}
}

// line returns the change of the avatar or its mouth that a message requests, or "".
func (f *fakeVTube) line(message string) string {
	var m struct {
		Type string          `json:"messageType"`
		Data json.RawMessage `json:"data"`
	}
	var d struct {
		Values []value `json:"parameterValues"`
	}
	if json.Unmarshal([]byte(message), &m) != nil || json.Unmarshal(m.Data, &d) != nil {
		return ""
	}
	switch m.Type {
	case "ExpressionActivationRequest", "HotkeyTriggerRequest":
		return m.Type + string(m.Data) // without a space, so that the whole line is the address
	case "InjectParameterDataRequest":
		return mouthOf(d.Values)
	}
	return ""
}

// mouthOf returns a line with the value of the parameter MouthOpen, or "".
func mouthOf(values []value) string {
	for _, v := range values {
		if v.ID == "MouthOpen" {
			return fmt.Sprintf("MouthOpen %.2f", v.Value)
		}
	}
	return ""
}

// active reports whether an expression is active.
func (f *fakeVTube) active(file string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expressions[file]
}

func (f *fakeVTube) at(parameter string) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parameters[parameter]
}

// connections returns the number of connections so far.
func (f *fakeVTube) connections() int {
	f.fake.mu.Lock()
	defer f.fake.mu.Unlock()
	return len(f.conns)
}

// asked returns the number of popups.
func (f *fakeVTube) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.popups
}

func (f *fakeVTube) injections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected
}

// TestVTubeStudio tests that Perch requests one popup, and shows the expressions of hotkeys and a mood.
// TestSpokenTurn tests a turn.
func TestVTubeStudio(t *testing.T) {
	f := newFakeVTube(t, "")
	h := newHarness(t, Target{Kind: "vtube_studio", URL: "ws://" + f.address})
	h.eventually("the owner is told of the popup", func() bool { return strings.Contains(h.note(), "popup") })
	if h.relays.List()[0].OK {
		t.Error("it is connected before somebody has allowed it")
	}
	f.allowed()
	h.eventually("it is connected", func() bool { return h.relays.List()[0].OK })
	if note := h.note(); note != "" {
		t.Errorf("the note is %q", note)
	}
	h.happens(robotA, "s", turn()...)
	h.eventually("it smiles", func() bool { return f.active("Happy.exp3.json") })
	h.happens(robotA, "s", event.Gesture{Name: "dance", By: event.ByModel}, event.Emotion{Name: "angry"})
	h.eventually("the expression of a hotkey", func() bool { return f.active("exp_5.exp3.json") && !f.active("Happy.exp3.json") })
	h.happens(robotA, "s", event.TurnEnded{End: event.EndDone})
	h.happens(robotA, "s", moodFrame("celebration"))
	h.eventually("the mood", func() bool {
		return f.at("MouthSmile") == 1 && f.at("StackchanCelebration") == 1 && f.at("FaceAngleY") == 5
	})
	was := f.injections()
	h.eventually("it is repeated", func() bool { return f.injections() > was+4 }) // two for each repeat: set and add
	h.happens(robotA, "s", moodFrame("curiosity"), event.Mood{Dominant: "neutral", Face: "neutral"})
	h.eventually("it is handed back", func() bool {
		return f.at("MouthSmile") == 0 && f.at("BrowLeftY") == 0 && f.at("StackchanCelebration") == 0 && f.at("StackchanCuriosity") == 0
	})
	was = f.injections()
	if strings.Contains(f.all(), `"h3"`) {
		t.Error("a hotkey that changes the scene was triggered")
	}
	if n := f.asked(); n != 1 {
		t.Errorf("%d popups", n)
	}
	h.stop()
	if n := f.injections() - was; n > 2 { // the last ones of the mood may come late
		t.Errorf("at rest there are %d injections", n)
	}
}

// TestVTubeStudioToken tests that the token is used again, and that a new one is requested after a refusal.
func TestVTubeStudioToken(t *testing.T) {
	f := newFakeVTube(t, "").allowed()
	f.tokens = []string{"kept"}
	table := wordsOf(t, vtubeStudioKind(), nil)
	tokens := &storetest.Table[string]{}
	p := &vtubeStudio{programConfig: &programConfig{Target: Target{Name: "v", URL: "ws://" + f.address}, words: table, appliance: "Perch", tokens: tokens}}
	open := func() error {
		l, err := p.open(t.Context(), func(error) {})
		if err == nil {
			l.close()
		}
		return err
	}
	must.Succeed(t, tokens.Put(p.tokenKey(p.URL), "kept"))
	if err := open(); err != nil || f.asked() != 0 {
		t.Errorf("with a token: %v, %d popups", err, f.asked())
	}
	must.Succeed(t, tokens.Put(p.tokenKey(p.URL), "revoked"))
	if err := open(); err != nil || f.asked() != 1 {
		t.Errorf("with one that was revoked: %v, %d popups", err, f.asked())
	}
	if token, _, _ := tokens.Get(p.tokenKey(p.URL)); token != "token-1" {
		t.Errorf("the token that is kept is %q", token)
	}
	f.mu.Lock()
	f.tokens, f.deny = nil, true
	f.mu.Unlock()
	for range 3 {
		if err := open(); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("denied: %v", err)
		}
	}
	if n := f.asked(); n != 2 {
		t.Errorf("%d popups: whoever has denied is asked again at once", n)
	}
	p.tokens, p.deniedAt = &storetest.Table[string]{}, ""
	before := f.connections()
	for range 3 {
		if err := open(); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("denied at first: %v", err)
		}
	}
	if n := f.connections() - before; n != 1 || f.asked() != 3 {
		t.Errorf("it is reached %d times, and there are %d popups: whoever has denied is left alone", n, f.asked())
	}
}

// TestVTubeStudioRemovesPlugin tests that Perch does not request a popup at once after the user has removed Perch.
func TestVTubeStudioRemovesPlugin(t *testing.T) {
	f := newFakeVTube(t, "").allowed()
	h := newConnected(t, Target{Kind: "vtube_studio", URL: "ws://" + f.address})
	f.mu.Lock()
	f.known, f.tokens = false, nil
	f.mu.Unlock()
	h.happens(robotA, "s", event.SpeakingStarted{}, event.Emotion{Name: "happy"})
	h.eventually("it is known", func() bool { return !h.relays.List()[0].OK && strings.Contains(h.note(), "denied") })
	if n := f.asked(); n != 1 {
		t.Errorf("%d popups", n)
	}
}

// TestShortStatePressesHotkey tests that the hotkey of a state is pressed although the next state has come before the
// scene was sent.
func TestShortStatePressesHotkey(t *testing.T) {
	studio, live := newFakeVTube(t, "").allowed(), newFakeNizima(t)
	live.eager = true
	for _, c := range []struct {
		kind, address, press string
		told                 func() string
	}{
		{"vtube_studio", studio.address, "HotkeyTriggerRequest", studio.all}, {"nizima", live.address, "StartMotion", live.all},
	} {
		r, err := newRelay(&Options{Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler), Tokens: &storetest.Table[string]{}},
			Target{Kind: c.kind, URL: "ws://" + c.address, Words: map[string]string{"state.working": "Wave"}})
		must.Succeed(t, err)
		l, err := r.program.open(t.Context(), func(error) {})
		must.Succeed(t, err)
		var s scenes
		must.Succeed(t, l.update(t.Context(), s.front(), Scene{}))
		for _, state := range []agent.Shown{agent.Thinking, agent.Working, agent.Thinking} {
			f := feed.NewFrame(feed.KindState, feed.State{Session: "s", State: state})
			f.Session = "s"
			s.apply(f)
			must.Succeed(t, l.frame(t.Context(), f, s.front()))
		}
		must.Succeed(t, l.update(t.Context(), s.front(), Scene{}))
		if n := strings.Count(c.told(), c.press); n != 1 {
			t.Errorf("%s presses it %d times", c.kind, n)
		}
		l.close()
	}
}

// TestVTubeStudioModels tests that Perch uses a newly loaded model, and warns of a model without expressions.
func TestVTubeStudioModels(t *testing.T) {
	f := newFakeVTube(t, "").allowed()
	h := newConnected(t, Target{Kind: "vtube_studio", URL: "ws://" + f.address})
	h.happens(robotA, "s", turn()...)
	h.eventually("it smiles", func() bool { return f.active("Happy.exp3.json") })
	f.mu.Lock()
	f.model, f.hotkeys, f.expressions = "Akari", nil, map[string]bool{"Joy.exp3.json": false}
	f.mu.Unlock()
	f.send(json.RawMessage(`{"apiName":"VTubeStudioPublicAPI","apiVersion":"1.0","requestID":"x","messageType":"ModelLoadedEvent",
		"data":{"modelLoaded":true}}`))
	h.eventually("the other model smiles, in its own word", func() bool { return f.active("Joy.exp3.json") })
	f.mu.Lock()
	f.expressions = map[string]bool{}
	f.mu.Unlock()
	f.send(json.RawMessage(`{"messageType":"ModelLoadedEvent"}`))
	h.eventually("a model without expressions is spoken of",
		func() bool { return strings.Contains(h.note(), `"Akari" has no expressions`) })
	f.mu.Lock()
	f.off = true
	f.mu.Unlock()
	f.send(json.RawMessage(`{"messageType":"ModelConfigChangedEvent"}`))
	h.eventually("it is gone", func() bool { return !h.relays.List()[0].OK && strings.Contains(h.note(), "denied") })
}

// TestWarningIsCleared tests that a warning is removed when the same kind of request is accepted.
func TestWarningIsCleared(t *testing.T) {
	f := newFakeVTube(t, "").allowed()
	h := newConnected(t, Target{Kind: "vtube_studio", URL: "ws://" + f.address})
	f.mu.Lock()
	delete(f.expressions, "Happy.exp3.json")
	f.mu.Unlock()
	h.happens(robotA, "s", event.SpeakingStarted{}, event.Emotion{Name: "happy"})
	h.eventually("the refusal is noted", func() bool { return strings.Contains(h.note(), "VTube Studio refuses") })
	h.happens(robotA, "s", event.Emotion{Name: "sad"})
	h.eventually("another is shown", func() bool { return f.active("02_sad.exp3.json") })
	h.happens(robotA, "s", event.Emotion{Name: "neutral"}) // deactivates only the sad expression, and not the missing one
	h.eventually("the note is gone", func() bool { return h.note() == "" })
}

// vtubeSays returns a broadcast of VTube Studio.
func vtubeSays(active bool, port int) string {
	return fmt.Sprintf(`{"apiName":"VTubeStudioPublicAPI","apiVersion":"1.0","timestamp":1630159656406,`+
		`"messageType":"VTubeStudioAPIStateBroadcast","requestID":"VTubeStudioAPIStateBroadcast",`+
		`"data":{"active":%t,"port":%d,"instanceID":"93aa0d","windowTitle":"VTube Studio"}}`, active, port)
}

// broadcasts sends packets to a free address repeatedly until stop is called or the test ends.
func broadcasts(t *testing.T, packets ...string) (address string, stop func()) {
	t.Helper()
	address = somewhere(t, anywhere, func(address string) error {
		probe, err := net.ListenPacket("udp4", address)
		if err == nil {
			err = probe.Close()
		}
		return err
	})
	from, err := net.Dial("udp4", address)
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		defer from.Close()
		for ctx.Err() == nil {
			for _, packet := range packets {
				_, _ = from.Write([]byte(packet)) // fails if no program listens yet
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	stop = func() {
		cancel()
		sending.Wait()
	}
	t.Cleanup(stop)
	return address, stop
}

// TestVTubeStudioTrustsNoBroadcast tests that Perch does not connect to a program that broadcasts from another machine,
// and names its address to the owner. A program on this machine is connected and named too, but it does not get the token
// of another program, and Perch returns to the default address when a program listens there again.
func TestVTubeStudioTrustsNoBroadcast(t *testing.T) {
	good, bad := newFakeVTube(t, "").allowed(), newFakeVTube(t, "").allowed()
	bad.tokens, bad.deny = []string{"one of its own"}, true
	_, port, err := net.SplitHostPort(bad.address)
	must.Succeed(t, err)
	at, err := strconv.Atoi(port)
	must.Succeed(t, err)
	address, _ := broadcasts(t, vtubeSays(true, at))
	p := &vtubeStudio{programConfig: &programConfig{Target: Target{Kind: "vtube_studio", Name: "v"}, words: words{names: agent.StockWords()},
		appliance: "Perch", tokens: &storetest.Table[string]{}}, defaultURL: "ws://" + good.address, broadcasts: address, isLocal: isThisMachine}
	open := func() (note string, err error) {
		l, err := p.open(t.Context(), func(error) {})
		if err != nil {
			return "", err
		}
		defer l.close()
		return text(l.warning()), nil
	}
	heard := func(is func(note string, err error) bool) { // tries again, because a broadcast may come late on a busy machine
		t.Helper()
		waittest.For(t, "the broadcast is heard", func() bool { return is(open()) })
	}
	if note, err := open(); err != nil || strings.Contains(note, "found") {
		t.Fatalf("at the usual address: %q, %v", note, err)
	}
	good.stop()
	p.isLocal = func(net.IP) bool { return false }
	p.lastFound = "ws://" + bad.address // an address that belonged to this machine before
	heard(func(_ string, err error) bool {
		return err != nil && strings.Contains(err.Error(), "another machine announces") && strings.HasSuffix(err.Error(), "set url: ws://"+bad.address)
	})
	bad.fake.mu.Lock()
	if len(bad.conns) > 0 {
		t.Error("Perch connects to a machine of the network that its owner has not named")
	}
	bad.fake.mu.Unlock()
	p.isLocal, p.lastFound = isThisMachine, ""
	heard(func(_ string, err error) bool { return errors.Is(err, errDenied) })
	if p.lastFound != "" {
		t.Errorf("one that denies is remembered at %q", p.lastFound)
	}
	bad.mu.Lock()
	bad.deny = false
	bad.mu.Unlock()
	p.deniedAt = ""
	heard(func(note string, err error) bool {
		return err == nil && strings.Contains(note, "found at ws://"+bad.address)
	})
	if p.lastFound != "ws://"+bad.address {
		t.Errorf("one that lets us in is remembered at %q", p.lastFound)
	}
	if strings.Contains(bad.all(), good.tokens[0]) {
		t.Errorf("it was given another's token:\n%s", bad.all())
	}
	again := newFakeVTube(t, good.address).allowed()
	again.tokens = good.tokens
	if note, err := open(); err != nil || strings.Contains(note, "found") || again.asked() != 0 {
		t.Errorf("back at the usual address: %q, %v, %d popups", note, err, again.asked())
	}
}

// TestBroadcastsOfFarMachines tests that broadcasts from outside of the local network are ignored.
func TestBroadcastsOfFarMachines(t *testing.T) {
	for sender, near := range map[string]bool{"127.0.0.1": true, "192.168.1.7": true, "10.0.0.2": true, "169.254.3.4": true,
		"203.0.113.5": false, "8.8.8.8": false} {
		if url := parseBroadcast([]byte(vtubeSays(true, 8001)), net.ParseIP(sender)); (url != "") != near {
			t.Errorf("%s: %q", sender, url)
		}
	}
}

// TestOfThisMachine tests that isThisMachine is true of loopback addresses and of the addresses of the machine's
// interfaces.
func TestOfThisMachine(t *testing.T) {
	own, err := net.InterfaceAddrs()
	must.Succeed(t, err)
	for _, a := range own {
		if ip, _, err := net.ParseCIDR(a.String()); err != nil || !isThisMachine(ip) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for address, is := range map[string]bool{"ws://127.0.0.1:8001": true, "ws://127.9.9.9:8001": true, "ws://[::1]:8001": true,
		"ws://192.0.2.7:8001": false, "ws://host:8001": false, "": false} {
		if isThisMachine(hostOf(address)) != is {
			t.Errorf("%q is of this machine: %t", address, !is)
		}
	}
}

// TestFindVTube tests that only valid broadcasts are used.
func TestFindVTube(t *testing.T) {
	t.Parallel()
	address, stop := broadcasts(t, "garbage", vtubeSays(false, 8002), vtubeSays(true, 0), vtubeSays(true, 80),
		`{"data":{"active":true,"port":8003}}`, vtubeSays(true, 8005), vtubeSays(true, 8004), vtubeSays(true, 8006))
	find := func(ctx context.Context, here bool) string {
		found, elsewhere := findVTube(ctx, address, func(net.IP) bool { return here })
		return found + "|" + elsewhere
	}
	waittest.For(t, "it is found here", func() bool { return strings.HasPrefix(find(t.Context(), true), "ws://127.0.0.1:800") })
	waittest.For(t, "it is found elsewhere", func() bool { return find(t.Context(), false) == "|ws://127.0.0.1:8004" })
	stop()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := find(ended, true); got != "|" {
		t.Errorf("nobody broadcasts: %q", got)
	}
}

func TestVTubeSteps(t *testing.T) {
	changed := map[string]string{"face.sad": "", "state.working": "dance", "face.angry": "F03"}
	table := wordsOf(t, vtubeStudioKind(), changed)
	m := vtubeModel{words: table, Loaded: true,
		Expressions: []vtubeExpression{{"F01", "F01.exp3.json"}, {"sad", "sad.exp3.json"}, {"Joy", "Joy.exp3.json"}, {"f03", "F03.exp3.json"},
			{"curiosity", "c.exp3.json"}},
		Hotkeys: []vtubeHotkey{{"Listening pose", "TriggerAnimation", "l.motion3.json", "L"}, {"dance", "ToggleItemScene", "", "D"},
			{"laughing", "MoveModel", "", "M"}}}
	happy := Scene{State: agent.Speaking, Face: "happy"}
	for _, c := range []struct {
		is, was Scene
		want    string
	}{
		{Scene{}, Scene{}, "[]"},
		{happy, Scene{}, "[{ExpressionActivation {Joy.exp3.json true}}]"},
		{happy, happy, "[]"},
		{Scene{State: agent.Speaking, Face: "angry"}, happy,
			"[{ExpressionActivation {F03.exp3.json true}} {ExpressionActivation {Joy.exp3.json false}}]"},
		{Scene{State: agent.Speaking, Face: "sad"}, happy, "[{ExpressionActivation {Joy.exp3.json false}}]"}, // the owner has set the word for sad to ""
		{Scene{State: agent.Listening}, Scene{State: agent.Idle}, "[{HotkeyTrigger {L}}]"},
		{Scene{State: agent.Working}, Scene{State: agent.Idle}, "[{HotkeyTrigger {D}}]"}, // the owner has set this word
		{Scene{State: agent.Idle, Mood: moodOf("curiosity")}, Scene{State: agent.Idle}, "[{ExpressionActivation {c.exp3.json true}}]"},
		{Scene{}, happy, "[{ExpressionActivation {Joy.exp3.json false}}]"},
	} {
		if got := fmt.Sprint(m.steps(c.is, c.was)); got != c.want {
			t.Errorf("%+v after %+v: %s and not %s", c.is, c.was, got, c.want)
		}
	}
	if _, hotkey := m.match("gesture", "laughing"); hotkey != "" {
		t.Error("a hotkey that moves the model is a gesture")
	}
}

// TestHeldParameters tests that parameters are sent when they change, repeated while they do not change, and sent as 0
// when they are released.
func TestHeldParameters(t *testing.T) {
	var h sentParameters
	at := time.Unix(0, 0)
	a := []value{{"A", 1}, {"B", 2}}
	for i, c := range []struct {
		after  time.Duration
		values []value
		want   string
	}{
		{0, nil, "[]"},
		{0, a, "[{A 1} {B 2}]"},
		{moveEvery, a, "[]"},
		{repeatEvery, a, "[{A 1} {B 2}]"},
		{moveEvery, a[:1], "[{A 1} {B 0}]"},
		{moveEvery, nil, "[{A 0}]"},
		{time.Hour, nil, "[]"},
	} {
		at = at.Add(c.after)
		if got := fmt.Sprint(h.next(c.values, at)); got != c.want {
			t.Errorf("%d: %s and not %s", i, got, c.want)
		}
	}
}

// TestHeldParametersAreRepeatedInTime tests that parameters are repeated before the programs drop them: VTube Studio
// after a second, nizima LIVE after half a second.
func TestHeldParametersAreRepeatedInTime(t *testing.T) {
	var h sentParameters
	told, now := time.Unix(0, 0), time.Unix(0, 0)
	for range 1000 { // with ticks at an interval that makes the repeats as late as possible
		if len(h.next([]value{{"A", 1}}, now)) > 0 {
			if gap := now.Sub(told); gap >= 500*time.Millisecond {
				t.Fatalf("nothing is said for %s", gap)
			}
			told = now
		}
		now = now.Add(moveEvery - time.Millisecond)
	}
}

// moodFrame returns the event of a mood with one feeling.
func moodFrame(feeling string) event.Event { return moodOf(feeling) }
