package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
)

// errOffline is the error of package robot for a closed channel.
var errOffline = &httpserver.Fault{Word: "robot_offline", Sentence: "the robot's channel is closed", HTTP: 409}

// TestOrders tests each command for robots under both prefixes, and its response.
func TestOrders(t *testing.T) {
	h := newHarness(t)
	server := h.local(t)
	for _, c := range []struct{ path, body, answer, asked string }{
		{"inject-text", `{"text":" what\ntime is it "}`, `{"ok":true,"device_id":"` + macA + `"}`, "hear a0b1c2d3e4f5 what time is it"},
		{"inject-text", `{"text":"hi","device_id":"A0-B1-C2-D3-E4-F6"}`, `{"ok":true,"device_id":"` + macB + `"}`, "hear a0b1c2d3e4f6 hi"},
		{"say", `{"text":"Oh, it's Anna!","device_id":""}`, `{"ok":true,"device_id":"` + macA + `"}`, "say a0b1c2d3e4f5 Oh, it's Anna!"},
		{"abort", ``, `{"ok":true,"device_id":"` + macA + `"}`, "abort a0b1c2d3e4f5"},
		{"abort", `{"device_id":" ` + macB + ` "}`, `{"ok":true,"device_id":"` + macB + `"}`, "abort a0b1c2d3e4f6"},
		{"set-head-angles", `{"yaw":-45,"pitch":0}`, `{"ok":true,"device_id":"` + macA + `","yaw":-45,"pitch":0,"speed":250}`,
			`call a0b1c2d3e4f5 self.robot.set_head_angles {"pitch":0,"speed":250,"yaw":-45}`},
		{"set-head-angles", `{"yaw":12.7,"speed":120}`, `{"ok":true,"device_id":"` + macA + `","yaw":12,"speed":120}`,
			`call a0b1c2d3e4f5 self.robot.set_head_angles {"speed":120,"yaw":12}`},
		{"set-state", `{"state":"dance"}`, `{"ok":true,"device_id":"` + macA + `","state":"dance"}`,
			`call a0b1c2d3e4f5 self.robot.set_state {"state":"dance"}`},
		{"set-toggle", `{"name":"kid_mode","enabled":false}`, `{"ok":true,"device_id":"` + macA + `","name":"kid_mode","enabled":false}`,
			`call a0b1c2d3e4f5 self.robot.set_toggle {"enabled":false,"name":"kid_mode"}`},
		{"set-face-identified", `{"device_id":"` + macA + `"}`, `{"ok":true,"device_id":"` + macA + `"}`,
			`call a0b1c2d3e4f5 self.robot.set_face_identified {}`},
		{"take-photo", `{"question":"who is there?"}`, `{"ok":true,"device_id":"` + macA + `","question":"who is there?","result":"true"}`,
			`call a0b1c2d3e4f5 self.camera.take_photo {"question":"who is there?"}`},
		{"play-asset", `{"asset":"purr"}`, `{"ok":true,"device_id":"` + macA + `","asset":"purr"}`, "play a0b1c2d3e4f5 purr"},
		{"play-asset", `{"asset":"/data/sounds/Happy Birthday.wav"}`,
			`{"ok":true,"device_id":"` + macA + `","asset":"/data/sounds/Happy Birthday.wav"}`,
			"play a0b1c2d3e4f5 Happy Birthday.wav"},
	} {
		for _, prefix := range []string{"/admin/", "/xiaozhi/admin/"} {
			status, body := ask(t, server, http.MethodPost, prefix+c.path, c.body)
			if asked := h.robots.requests(); status != 200 || body != c.answer || !slices.Equal(asked, []string{c.asked}) {
				t.Errorf("%s %s: %d %s, asked %q", c.path, c.body, status, body, asked)
			}
		}
	}
	for path, want := range map[string]string{
		"/admin/devices": `{"devices":["` + macA + `","` + macB + `"]}`,
		"/admin/songs":   `{"base":"/data/sounds","files":["Happy Birthday.wav","purr"]}`,
	} {
		for _, prefix := range []string{"", "/xiaozhi"} {
			if status, body := ask(t, server, http.MethodGet, prefix+path, ""); status != 200 || body != want {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
	}
}

// TestRefusedOrders tests that a robot gets no part of a refused command.
func TestRefusedOrders(t *testing.T) {
	long := strings.Repeat("x", limit.Said+1)
	for name, c := range map[string]struct {
		path, body string
		status     int
		code       string
	}{
		"no body":              {"say", ``, 400, "bad_body"},
		"no JSON":              {"say", `text=hi`, 400, "bad_body"},
		"a list":               {"say", `[]`, 400, "bad_body"},
		"half":                 {"say", `{"text":"hi"`, 400, "bad_body"},
		"more":                 {"say", `{"text":"hi"} {}`, 400, "bad_body"},
		"no text":              {"say", `{}`, 400, "bad_body"},
		"null":                 {"inject-text", `null`, 400, "bad_body"},
		"blank text":           {"inject-text", `{"text":" \n "}`, 400, "bad_body"},
		"a number for a text":  {"inject-text", `{"text":5}`, 400, "bad_body"},
		"too long":             {"say", `{"text":"` + long + `"}`, 400, "bad_body"},
		"no robot's id":        {"say", `{"text":"hi","device_id":"kitchen"}`, 400, "bad_robot_id"},
		"a robot not here":     {"say", `{"text":"hi","device_id":"a0b1c2d3e4f7"}`, 503, "no_robot"},
		"no angle":             {"set-head-angles", `{"speed":250}`, 400, "bad_body"},
		"an angle as a text":   {"set-head-angles", `{"yaw":"left"}`, 400, "bad_body"},
		"an angle too far":     {"set-head-angles", `{"yaw":1e9}`, 400, "bad_body"},
		"an endless angle":     {"set-head-angles", `{"yaw":1e999}`, 400, "bad_body"},
		"no speed":             {"set-head-angles", `{"yaw":1,"speed":0}`, 400, "bad_body"},
		"no state":             {"set-state", `{}`, 400, "bad_body"},
		"an unknown state":     {"set-state", `{"state":"party"}`, 400, "bad_body"},
		"an unknown toggle":    {"set-toggle", `{"name":"party","enabled":true}`, 400, "bad_body"},
		"neither on nor off":   {"set-toggle", `{"name":"kid_mode"}`, 400, "bad_body"},
		"a text for a boolean": {"set-toggle", `{"name":"kid_mode","enabled":"true"}`, 400, "bad_body"},
		"no question":          {"take-photo", `{}`, 400, "bad_body"},
		"no asset":             {"play-asset", `{}`, 400, "bad_body"},
		"an unknown asset":     {"play-asset", `{"asset":"roar"}`, 404, "unknown_sound"},
		"outside":              {"play-asset", `{"asset":"/etc/passwd"}`, 403, "outside_roots"},
		"outside by dots":      {"play-asset", `{"asset":"/data/sounds/../perch.db"}`, 403, "outside_roots"},
		"below":                {"play-asset", `{"asset":"/data/sounds/x/y.wav"}`, 403, "outside_roots"},
		"too much":             {"say", `{"text":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_too_large"},
	} {
		h := newHarness(t)
		status, body := ask(t, h.local(t), http.MethodPost, "/admin/"+c.path, c.body)
		if code := refused(t, body); status != c.status || code != c.code || len(body) > 500 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if asked := h.robots.requests(); len(asked) > 0 {
			t.Errorf("%s: asked %q", name, asked)
		}
	}
}

// TestNoRobotIsConnected tests every command and every tool that needs a robot while no robot is connected.
func TestNoRobotIsConnected(t *testing.T) {
	h := newHarness(t)
	h.robots.open = nil
	server := h.local(t)
	for path, body := range map[string]string{
		"/admin/inject-text": `{"text":"hi"}`, "/admin/say": `{"text":"hi"}`, "/admin/abort": ``, "/admin/set-head-angles": `{"yaw":1}`,
		"/admin/set-state": `{"state":"idle"}`, "/admin/set-toggle": `{"name":"kid_mode","enabled":true}`, "/admin/set-face-identified": `{}`,
		"/admin/take-photo": `{"question":"?"}`, "/admin/play-asset": `{"asset":"purr"}`,
		"/api/voice/escalate": `{"tool":"take_photo"}`, "/api/perception/event": `{"name":"face_lost"}`,
	} {
		status, answer := ask(t, server, http.MethodPost, path, body)
		if code := refused(t, answer); status != 503 || code != "no_robot" {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, answer := ask(t, server, http.MethodPost, "/api/voice/escalate", `{"tool":"play_song","args":{"name":"purr"}}`); status != 503 {
		t.Errorf("play_song: %d %s", status, answer)
	}
	if status, body := ask(t, server, http.MethodGet, "/admin/devices", ""); status != 200 || body != `{"devices":[]}` {
		t.Errorf("devices: %d %s", status, body)
	}
}

// TestARobotFails tests the status and the code of the response for each kind of error of a robot.
func TestARobotFails(t *testing.T) {
	h := newHarness(t)
	server := h.local(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{errOffline, 503, "no_robot"},
		{&httpserver.Fault{Word: "tool_failed", Sentence: "it failed", HTTP: 502}, 502, "tool_failed"},
		{fmt.Errorf("yaw: %w", device.ErrArguments), 400, "bad_arguments"},
		{errors.New("no business of theirs"), 500, "internal"},
	} {
		h.robots.err = c.err
		for path, body := range map[string]string{"say": `{"text":"hi"}`, "inject-text": `{"text":"hi"}`, "abort": ``,
			"set-head-angles": `{"yaw":1}`} {
			status, answer := ask(t, server, http.MethodPost, "/xiaozhi/admin/"+path, body)
			if code := refused(t, answer); status != c.status || code != c.code || strings.Contains(answer, "business") {
				t.Errorf("%s, %v: %d %s", path, c.err, status, answer)
			}
		}
	}
	h.robots.err, h.robots.tools = nil, nil
	status, answer := ask(t, server, http.MethodPost, "/admin/set-state", `{"state":"idle"}`)
	if code := refused(t, answer); status != 404 || code != "unknown_tool" {
		t.Errorf("firmware without the tool: %d %s", status, answer)
	}
}

// TestNotOverItsOwnVoice tests that a robot that is speaking plays no sound, while another robot does.
func TestNotOverItsOwnVoice(t *testing.T) {
	h := newHarness(t)
	h.speaks(robotA, "s1")
	server := h.local(t)
	for path, body := range map[string]string{
		"/admin/play-asset":   `{"asset":"purr"}`,
		"/api/voice/escalate": `{"tool":"play_song","args":{"name":"purr"},"session_id":"s1"}`,
	} {
		status, answer := ask(t, server, http.MethodPost, path, body)
		if code := refused(t, answer); status != 409 || code != "robot_speaking" || len(h.robots.requests()) > 0 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, answer := ask(t, server, http.MethodPost, "/admin/play-asset", `{"asset":"purr","device_id":"`+macB+`"}`); status != 200 {
		t.Errorf("the other robot: %d %s", status, answer)
	}
}

// TestNothingToPlay tests the responses of an appliance without sounds.
func TestNothingToPlay(t *testing.T) {
	h := newHarness(t)
	h.player.names = nil
	server := h.local(t)
	if status, body := ask(t, server, http.MethodGet, "/admin/songs", ""); status != 200 || body != `{"base":"/data/sounds","files":[]}` {
		t.Errorf("songs: %d %s", status, body)
	}
	if status, body := ask(t, server, http.MethodPost, "/admin/play-asset", `{"asset":"purr"}`); status != 404 ||
		refused(t, body) != "unknown_sound" {
		t.Errorf("play-asset: %d %s", status, body)
	}
	if _, body := ask(t, server, http.MethodPost, "/api/voice/escalate",
		`{"tool":"play_song","args":{"name":"purr"}}`); body != `{"result":"There are no songs."}` {
		t.Errorf("play_song: %s", body)
	}
}

// TestMessages tests that the reply begins with an emoji for the channel "stackchan", and is a plain text for other
// channels.
func TestMessages(t *testing.T) {
	happy, cool, shy := agent.Emotion{Name: "happy", Emoji: "🙂"}, agent.Emotion{Name: "cool", Emoji: "😎"}, agent.Emotion{Name: "sad", Emoji: "😢"}
	for name, c := range map[string]struct {
		replies []agent.Reply
		channel string
		want    string
	}{
		"a face": {[]agent.Reply{agent.Felt{Emotion: agent.Emotion{Name: "laughing", Emoji: "😆"}}, agent.Say{Text: "Ha."}}, "stackchan", "😆 Ha."},
		"one by its name": {[]agent.Reply{agent.Felt{Emotion: happy}, agent.Say{Text: "Sure."}, agent.Say{Text: "It rains."}}, "stackchan",
			"😊 Sure. It rains."},
		"none of the nine": {[]agent.Reply{agent.Felt{Emotion: cool}, agent.Say{Text: "Sure."}}, "stackchan", "😐 Sure."},
		"no face":          {[]agent.Reply{agent.Say{Text: "Sure."}}, "stackchan", "😐 Sure."},
		"the first": {[]agent.Reply{agent.Felt{Emotion: shy}, agent.Say{Text: "Oh."}, agent.Felt{Emotion: happy}, agent.Say{Text: "Well."}},
			"stackchan", "😢 Oh. Well."},
		"a face on its own":  {[]agent.Reply{agent.Felt{Emotion: shy}}, "stackchan", "😢"},
		"another channel":    {[]agent.Reply{agent.Felt{Emotion: shy}, agent.Say{Text: "Oh."}}, "discord", "Oh."},
		"no channel":         {[]agent.Reply{agent.Felt{Emotion: shy}, agent.Say{Text: "Oh."}}, "", "Oh."},
		"a channel like one": {[]agent.Reply{agent.Felt{Emotion: shy}, agent.Say{Text: "Oh."}}, "Stackchan", "Oh."},
	} {
		h := newHarness(t)
		h.brain.think = replying(c.replies...)
		status, body := ask(t, h.local(t), http.MethodPost, "/api/message", fmt.Sprintf(`{"content":"hi","channel":%q,"session_id":"s1"}`, c.channel))
		if status != 200 || body != fmt.Sprintf(`{"response":%q}`, c.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestMessagesOfASession(t *testing.T) {
	h := newHarness(t)
	h.brain.think = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		if turn.Robot != "" || turn.Session != "" || turn.Body != nil || !turn.Untrusted || turn.Language != "en" || turn.Now.Location() != time.UTC {
			t.Errorf("the turn is %+v", turn)
		}
		return replying(agent.Say{Text: fmt.Sprintf("%d before %q.", len(turn.History), turn.Text)})(ctx, turn, out)
	}
	server := h.local(t)
	for _, c := range []struct{ session, want string }{
		{"s1", `0 before \"hello there\".`}, {"s1", `1 before \"hello there\".`}, {"s2", `0 before \"hello there\".`},
		{"s1", `2 before \"hello there\".`},
		{"", `0 before \"hello there\".`}, {"", `1 before \"hello there\".`}, {"any/thing?", `0 before \"hello there\".`},
		{"any/thing?", `1 before \"hello there\".`},
	} {
		if status, body := ask(t, server, http.MethodPost, "/api/message", fmt.Sprintf(`{"content":" hello\nthere ","session_id":%q}`,
			c.session)); status != 200 || body != `{"response":"`+c.want+`"}` {
			t.Errorf("%q: %d %s", c.session, status, body)
		}
	}
}

// TestMessagesInTheRobotsLanguage tests that the reply is in the language of the session's robot, or in the default
// language if the session has no known robot.
func TestMessagesInTheRobotsLanguage(t *testing.T) {
	h := newHarness(t)
	h.speaks(robotA, "talk")
	h.brain.think = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		return replying(agent.Say{Text: turn.Language + "."})(ctx, turn, out)
	}
	server := h.local(t)
	for session, want := range map[string]string{"talk": "de.", "another": "en.", "": "en."} {
		for path, body := range map[string]string{
			"/api/message":        fmt.Sprintf(`{"content":"hello","session_id":%q}`, session),
			"/api/voice/escalate": fmt.Sprintf(`{"tool":"think_hard","args":{"question":"why"},"session_id":%q}`, session),
		} {
			if status, got := ask(t, server, http.MethodPost, path, body); status != 200 || !strings.Contains(got, `"`+want+`"`) {
				t.Errorf("%s of %q: %d %s", path, session, status, got)
			}
		}
	}
}

func TestMessagesThatAreNotAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":               {``, 400, "bad_body"},
		"no content":            {`{"channel":"stackchan"}`, 400, "bad_body"},
		"blank":                 {`{"content":"\t"}`, 400, "bad_body"},
		"a list for content":    {`{"content":["hi"]}`, 400, "bad_body"},
		"too much content":      {`{"content":"` + strings.Repeat("x", limit.Question+1) + `"}`, 400, "bad_body"},
		"too long a session":    {`{"content":"hi","session_id":"` + strings.Repeat("x", limit.Session+1) + `"}`, 400, "bad_body"},
		"more than is taken":    {`{"content":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_too_large"},
		"a mind that is away":   {`{"content":"hi"}`, 503, "no_brain"},
		"a question of its own": {`{"content":"may you?"}`, 200, ""},
	} {
		h := newHarness(t)
		h.brain.think = func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
			if turn.Text == "hi" {
				return fmt.Errorf("the server at 10.0.0.1 is off: %w", agent.ErrAway)
			}
			var got agent.Answer
			if err := out(agent.Ask{ID: "1", Text: "May I?", Within: time.Minute, Answer: func(a agent.Answer) { got = a }}); err != nil {
				return err
			}
			if got.Outcome != agent.AnswerClosed {
				t.Errorf("the question is answered with %+v", got)
			}
			return out(agent.Done{End: agent.Continue})
		}
		status, body := ask(t, h.local(t), http.MethodPost, "/api/message", c.body)
		if status != c.status || c.code != "" && refused(t, body) != c.code || strings.Contains(body, "10.0.0.1") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if c.code == "no_brain" && !strings.Contains(h.log.String(), "10.0.0.1") {
			t.Errorf("the log does not name the cause: %s", h.log)
		}
	}
}

// TestRobotsByName tests that a name can be used wherever a MAC address can.
func TestRobotsByName(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Find = func(robot string) (device.ID, error) {
			if strings.EqualFold(robot, "kitchen") {
				return device.ParseID(macA)
			}
			return device.ParseID(robot)
		}
	})
	h.perceives()
	server := h.local(t)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/perception/state?device_id=Kitchen", ""}, {"GET", "/api/perception/recent/kitchen", ""},
		{"POST", "/api/perception/event", `{"name":"x","device_id":"kitchen"}`}, {"POST", "/admin/say", `{"text":"hi","device_id":"KITCHEN"}`},
	} {
		status, answer := ask(t, server, c.method, c.path, c.body)
		if status != 200 || c.method == "GET" && !strings.Contains(answer, macA) || strings.Contains(answer, macB) {
			t.Errorf("%s: %d %s", c.path, status, answer)
		}
	}
	if took := h.intake.took; len(took) != 1 || !strings.Contains(took[0], "a0b1c2d3e4f5") {
		t.Errorf("took %q", took)
	}
}
