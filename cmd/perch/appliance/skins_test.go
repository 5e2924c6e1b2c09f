package appliance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/socket"
	"perch/waittest"
)

// TestEveryClientSeesTheSameTurn checks that two skins, MQTT and the owner's feed show the same states of a robot's
// turn with two tool calls. A skin that connects during the turn receives the current state, and a skin that does not
// read delays nothing.
func TestEveryClientSeesTheSameTurn(t *testing.T) {
	t.Parallel()
	p := appliancetest.NewPeers(t)
	p.Calls = `[{"index":0,"id":"c1","type":"function","function":{"name":"self_robot_set_head_angles","arguments":"{\"yaw\":30}"}},` +
		`{"index":1,"id":"c2","type":"function","function":{"name":"self_camera_take_photo","arguments":"{\"question\":\"who?\"}"}}]`
	p.Words = []string{"😊", " It", " is", " three.", " It", " really", " is", " three.", " Quite", " sure", " of", " it."}
	c := appliancetest.WithBroker(t)
	c.Skins.Key = appliancetest.Key
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	mqtt := h.Listen()
	owner := h.ReadEvents("/api/v1/events", "Authorization", "Bearer "+h.OwnerToken())
	one, two := h.Watch(appliancetest.Everything), h.Watch(appliancetest.Everything)
	stalled, err := socket.Dial(t.Context(), strings.Replace(h.URL("/v1/vtuber/ws"), "http", "ws", 1),
		socket.Options{Header: http.Header{"Authorization": {"Bearer " + appliancetest.Key}}})
	must.Succeed(t, err)
	defer stalled.Drop()
	var late *appliancetest.Watcher
	var talking sync.WaitGroup
	talking.Go(func() {
		h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")}).CheckComplete(t)
	})
	h.Eventually("it speaks", func() bool { return slices.Contains(one.Summary(), "state speaking") })
	late = h.Watch(appliancetest.Everything)
	h.Eventually("who comes late is told", func() bool { return len(late.Summary()) > 1 })
	talking.Wait()
	over := func(w *appliancetest.Watcher) func() bool {
		return func() bool {
			s := w.Summary()
			return len(s) > 0 && s[len(s)-1] == "state idle" && slices.Contains(s, "state attention")
		}
	}
	for name, w := range map[string]*appliancetest.Watcher{"one": one, "two": two, "late": late} {
		h.Eventually(name+" sees the end", over(w))
	}
	story := one.Summary()
	if other := two.Summary(); !slices.Equal(story, other) {
		t.Errorf("one skin saw\n%s\nthe other\n%s", strings.Join(story, "\n"), strings.Join(other, "\n"))
	}
	want := []string{"state idle", "state listening", "state thinking",
		"tool self.robot.set_head_angles running", "state working", "tool self.robot.set_head_angles completed", "state thinking",
		"tool self.camera.take_photo running", "state working", "tool self.camera.take_photo completed", "state thinking",
		"emotion happy", "state speaking", "state attention", "state listening", "state idle"}
	if !slices.Equal(story, want) {
		t.Errorf("the skins saw\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(want, "\n"))
	}
	// Before its subscription to all ten states, the late skin receives the seven states of OpenAB's RFC: thinking, not
	// speaking.
	if got, want := late.Summary(), []string{"state thinking", "emotion happy", "state speaking", "state attention", "state listening",
		"state idle"}; !slices.Equal(got, want) {
		t.Errorf("who came late saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var states []string
	for _, line := range story {
		if state, is := strings.CutPrefix(line, "state "); is {
			states = append(states, strings.Fields(state)[0])
		}
	}
	h.Eventually("MQTT is idle", func() bool { s := mqtt.AgentStates(); return slices.Contains(s, "attention") && s[len(s)-1] == "idle" })
	if got := mqtt.AgentStates(); !slices.Equal(slices.Compact(states), got) {
		t.Errorf("skins saw %v, MQTT %v", states, got)
	}
	for _, event := range []string{"listening_started", "heard", "thinking_started", "tool_status", "emotion", "speaking_started", "said",
		"turn_ended"} {
		h.Eventually("the owner's feed has "+event, func() bool { return slices.Contains(owner.Lines(), "event: "+event) })
	}
}

// TestSkinRoutes checks that the routes for skins require the configured key, and are refused if no key is configured.
func TestSkinRoutes(t *testing.T) {
	c := appliancetest.Config()
	h := appliancetest.Start(t, c, t.TempDir())
	h.Expect(http.StatusForbidden, "skins.key", http.MethodGet, "/v1/models", "", "Authorization", "Bearer anything")
	h.Stop()

	c.Skins.Key = appliancetest.Key
	h = appliancetest.Start(t, c, t.TempDir())
	const (
		chat = `{"model":"perch","messages":[{"role":"user","content":"what can you do"}]}`
		mcp  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	)
	for _, route := range []struct{ method, path, body, want string }{
		{"POST", "/v1/chat/completions", chat, `"assistant"`},
		{"GET", "/v1/models", "", `"list"`},
		{"GET", "/v1/vtuber/schema", "", `"agent_state"`},
		{"POST", "/v1/vtuber/notifications", `{"text":"The tea is ready."}`, `"id"`},
		{"POST", "/mcp", mcp, "register-agent"},
		{"GET", "/state", "", "clawd-on-desk"},
		{"POST", "/state", `{"state":"working","session_id":"one","tool_name":"Bash"}`, "ok"},
	} {
		if status, text := h.Request(route.method, route.path, route.body, "Authorization", "Bearer "+appliancetest.Key,
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream"); status >= 300 || !strings.Contains(text, route.want) {
			t.Errorf("%s %s: %d %s", route.method, route.path, status, text)
		}
	}
	shown := h.Watch(appliancetest.Everything)
	h.Eventually("the coding session shows", func() bool { return slices.Contains(shown.Summary(), "tool Bash running") })
	shown.Leave()
	twoCommands(t, h)
}

// twoCommands sends the hooks of Claude Code for two commands, one after the other, and checks the states and tools
// that a skin receives: each command has its own ID and text.
func twoCommands(t *testing.T, h *appliancetest.Appliance) {
	t.Helper()
	skin := h.Watch(`{"type":"subscribe","events":["agent_state","tool_status"]}`)
	h.Eventually("the skin is there", func() bool { return len(skin.Summary()) > 0 }) // it has received the state of the first session
	hooks := func(event, more string) {
		h.Expect(http.StatusNoContent, "", http.MethodPost, "/state",
			`{"session_id":"two","cwd":"/home/ann/shop","permission_mode":"default","hook_event_name":"`+event+`"`+more+`}`,
			"Authorization", "Bearer "+appliancetest.Key, "Content-Type", "application/json")
	}
	hooks("UserPromptSubmit", `,"prompt":"Run the tests twice."`)
	for _, id := range []string{"tu_abc", "tu_xyz"} {
		call := `,"tool_name":"Bash","tool_input":{"command":"npm test","description":"Run the tests"},"tool_use_id":"` + id + `"`
		hooks("PreToolUse", call)
		hooks("PostToolUse", call+`,"tool_response":{"stdout":"ok","stderr":"","interrupted":false}`)
	}
	hooks("Stop", `,"stop_hook_active":false`)
	var got []string
	h.Eventually("it is done", func() bool {
		got = nil
		for _, f := range skin.Frames() {
			if f["session_id"] == "coding-2" {
				got = append(got, strings.TrimSpace(fmt.Sprint(f["type"], " ", f["state"], f["detail"], f["tool_id"], f["status"], f["content"])))
			}
		}
		return len(got) > 0 && strings.Contains(got[len(got)-1], "attention")
	})
	const nothing = "<nil>"
	state := func(state, detail string) string {
		return "agent_state " + state + detail + nothing + nothing + nothing
	}
	tool := func(id, status string) string {
		return "tool_status " + nothing + nothing + id + " " + status + " npm test"
	}
	works, bash := "map[subagent_count:0]", "map[subagent_count:0 tool_name:Bash]"
	want := []string{state("thinking", nothing),
		tool("tu_abc", "running"), state("working", bash), tool("tu_abc", "completed"), state("working", works),
		tool("tu_xyz", "running"), state("working", bash), tool("tu_xyz", "completed"), state("working", works),
		state("attention", nothing)}
	if flat := func(lines []string) string { return strings.ReplaceAll(strings.Join(lines, "\n"), " ", "") }; flat(got) != flat(want) {
		t.Errorf("the skin saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestACodingAgentAsks checks that an adopted robot shows a coding agent's request for permission, and that a touch of
// the head allows it.
func TestACodingAgentAsks(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools("a0b1c2d3e4f5")
	h.Admin(http.MethodPost, "/api/v1/adopt", `{"robot":"a0b1c2d3e4f5"}`, nil)
	answered := make(chan string, 1)
	go func() { answered <- h.AskPermission("make test") }()
	h.Await(robot, "it asks", appliancetest.Match(func(s simrobot.SentenceShown) bool { return strings.Contains(s.Text, "make test") }))
	var open []agent.Question
	h.Admin(http.MethodGet, "/api/v1/permissions", "{}", &open)
	if len(open) != 1 || !strings.Contains(open[0].Text, "make test") {
		t.Errorf("open are %+v", open)
	}
	waittest.For(h.T, "a touch is an answer", func() bool {
		robot.SendSensorEvent("head_pet_started", "{}")
		select {
		case text := <-answered:
			if !strings.Contains(text, `"allow"`) {
				t.Errorf("answered %s", text)
			}
			return true
		default:
			return false
		}
	})
}
