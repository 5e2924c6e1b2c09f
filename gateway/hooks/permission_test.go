package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/language"
	"perch/must"
)

const wants = `{"session_id":"s1","tool_name":"Bash","tool_input":{"command":"make test"}}`

// permitted asks for a permission. The channel receives the decision, "terminal" without one, or the text of an
// error.
func (h *harness) permitted(ctx context.Context) <-chan string {
	answered := make(chan string, 1)
	go func() {
		a, err := h.api.permit(ctx, "", []byte(wants))
		switch {
		case err != nil:
			answered <- err.Error()
		case a == nil:
			answered <- "terminal"
		default:
			answered <- a.Output.Decision.Behavior
		}
	}()
	return answered
}

// TestAskedAloud checks the results of the answers that people give at a robot.
func TestAskedAloud(t *testing.T) {
	ends := func(outcome agent.Outcome, err error) func(context.Context, device.ID, agent.Question) (agent.Answer, error) {
		return func(context.Context, device.ID, agent.Question) (agent.Answer, error) {
			return agent.Answer{Outcome: outcome}, err
		}
	}
	for name, c := range map[string]struct {
		ask   func(context.Context, device.ID, agent.Question) (agent.Answer, error)
		want  string
		asked int
	}{
		"yes":             {answers("yes, go ahead"), "allow", 1},
		"no":              {answers("no, don't"), "deny", 1},
		"a touch":         {answers("(touch)"), "allow", 1},
		"yes, again":      {answers("the weather", "yes"), "allow", 2},
		"never clear":     {answers("the weather", "what weather"), "terminal", 2},
		"yes and no":      {answers("yes no"), "deny", 1},
		"nobody":          {silent, "terminal", 1},
		"silenced":        {ends(agent.AnswerClosed, nil), "terminal", 1},
		"it broke":        {ends("", errors.New("broken")), "terminal", 1},
		"the owner's yes": {ends(agent.AnswerAllowed, nil), "allow", 1},
		"the owner's no":  {ends(agent.AnswerDenied, nil), "deny", 1},
	} {
		bubble(t, func(t *testing.T, h *harness) {
			h.robots.ask = c.ask
			began := time.Now()
			got := <-h.permitted(t.Context())
			asked := h.robots.questions()
			if got != c.want || len(asked) != c.asked || c.want == "terminal" && time.Since(began) != time.Minute {
				t.Errorf("%s: %s after %s, asked %d times", name, got, time.Since(began), len(asked))
			}
			if len(h.api.Questions()) > 0 {
				t.Errorf("%s: it still waits", name)
			}
			if len(asked) == 2 && !strings.HasPrefix(asked[1].Text, "I did not understand. A coding session asks: May I run a command: make test?") {
				t.Errorf("%s: asked again with %q", name, asked[1].Text)
			}
		})
	}
}

// TestWhichRobotAsks checks that a robot does not ask if no permission may be given at it, and that a robot
// that connects while a permission waits asks then.
func TestWhichRobotAsks(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.robots.opens(robotB)
		h.robots.ask = answers("yes")
		answered := h.permitted(t.Context())
		time.Sleep(10 * time.Second)
		if asked := h.robots.questions(); len(asked) > 0 {
			t.Errorf("asked is %+v", asked)
		}
		h.robots.opens(robotA, robotB)
		h.bus.Publish(robotA, "t1", event.RobotOnline{})
		if got := <-answered; got != "allow" {
			t.Error(got)
		}
		if asked := h.robots.questions(); len(asked) != 1 || asked[0].Robot != robotA {
			t.Errorf("asked is %+v", asked)
		}
	})
	bubble(t, func(t *testing.T, h *harness) {
		h.robots.ask = func(context.Context, device.ID, agent.Question) (agent.Answer, error) {
			if len(h.robots.questions()) == 1 {
				return agent.Answer{Outcome: agent.AnswerClosed}, nil // the robot closes its channel
			}
			return agent.Answer{Outcome: agent.AnswerTouch}, nil
		}
		answered := h.permitted(t.Context())
		time.Sleep(10 * time.Second)
		if asked := h.robots.questions(); len(asked) != 1 {
			t.Errorf("asked is %+v", asked)
		}
		h.bus.Publish(robotA, "t2", event.RobotOnline{})
		if got := <-answered; got != "allow" {
			t.Error(got)
		}
	})
	for name, change := range map[string]func(*Options){
		"none may answer": unspoken, "another is named": func(o *Options) { o.Robots = []device.ID{robotB} },
	} {
		bubble(t, func(t *testing.T, h *harness) {
			h.robots.ask = answers("yes")
			if got := <-h.permitted(t.Context()); got != "terminal" || len(h.robots.questions()) > 0 {
				t.Errorf("%s: %s", name, got)
			}
		}, change)
	}
}

// TestPermissionShows checks that the session is shown as waiting, even if it reports another state, and is
// shown as working afterwards, and that the question is published.
func TestPermissionShows(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.reports(t, `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Bash"}`)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		answered := h.permitted(ctx)
		synctest.Wait()
		if got := h.shows("coding-1"); got != agent.Notification {
			t.Errorf("it shows %s", got)
		}
		h.reports(t, `{"hook_event_name":"Notification","session_id":"s1"}`)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := h.shows("coding-1"); got != agent.Notification {
			t.Errorf("after it reported that it waits it shows %s", got)
		}
		h.reports(t, `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Bash"}`)
		leave()
		if got := <-answered; got != "terminal" {
			t.Error(got)
		}
		synctest.Wait()
		if got := h.shows("coding-1"); got != agent.Working {
			t.Errorf("then it shows %s", got)
		}
		want := []string{"coding-1 tool_status", "coding-1 state_told", "coding-1 asked", "coding-1 tool_status", "coding-1 answered"}
		if got := h.happened(); !slices.Equal(got, want) {
			t.Errorf("happened is %q", got)
		}
	})
}

// TestTooMany checks that further permissions must be asked for in the terminal while maxWaiting permissions wait.
func TestTooMany(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		var all []<-chan string
		for range maxWaiting {
			all = append(all, h.permitted(t.Context()))
		}
		synctest.Wait()
		began := time.Now()
		if got := <-h.permitted(t.Context()); got != "terminal" || time.Since(began) > 0 {
			t.Errorf("one more: %s after %s", got, time.Since(began))
		}
		open := h.api.Questions()
		if len(open) != maxWaiting {
			t.Errorf("%d wait", len(open))
		}
		for _, q := range open {
			if err := h.api.Reply(q.ID, true); err != nil {
				t.Error(err)
			}
		}
		for _, answered := range all {
			if got := <-answered; got != "allow" {
				t.Error(got)
			}
		}
	})
}

// TestQuestions checks the words of the questions, which must be suitable for speech.
func TestQuestions(t *testing.T) {
	long := strings.Repeat("all of it ", 50)
	for _, c := range []struct{ language, body, want string }{
		{"en", `{"tool_name":"Bash","tool_input":{"command":"rm -rf \"build\""},"cwd":"/home/ann/my app"}`,
			"A coding session in my app asks: May I run a command: rm -rf build?"},
		{"en", `{"tool_name":"Bash","tool_input":{"command":"TOKEN=abcdef make"}}`, "A coding session asks: May I run a command: TOKEN= make?"},
		{"en", `{"tool_name":"Write","tool_input":{"file_path":"/etc/hosts","content":"x"}}`,
			"A coding session asks: May I change a file: /etc/hosts?"},
		{"de-DE", `{"tool_name":"WebFetch","tool_input":{"url":"https://user:pw@example.org/x?key=1"},"cwd":"/"}`,
			"Eine Programmiersitzung fragt: Darf ich etwas aus dem Netz holen: example.org?"},
		{"en", `{"tool_name":"mcp__files__read","tool_input":[]}`, "A coding session asks: May I use a tool: mcp files read?"},
		{"en", `{"tool_name":"Bash","tool_input":{"command":"` + long + `"}}`, "A coding session asks: May I run a command: " + strings.TrimSpace(
			long[:160]) + " and so on?"},
		{"en", `{"tool_name":"Bash","tool_input":{"command":"curl x | sh > a\nrm -rf <b"}}`,
			"A coding session asks: May I run a command: curl x pipe sh into a then rm -rf from b?"},
		{"de", `{"tool_name":"Bash","tool_input":{"command":"echo x >> y"}}`,
			"Eine Programmiersitzung fragt: Darf ich einen Befehl ausführen: echo x hinten an y?"},
		{"en", `{"tool_name":"Bash","tool_input":{"command":"cat \u202e/x\u2066"}}`, "A coding session asks: May I run a command: cat /x?"},
		{"en", `{"tool_name":"Bash","tool_input":{"command":"KEY=` + strings.Repeat("a", 3000) + `; rm -rf ~"}}`,
			"A coding session asks: May I run a command: KEY= and so on?"},
	} {
		var w permissionRequest
		must.Succeed(t, json.Unmarshal([]byte(c.body), &w))
		if got := question(new(language.Catalogue).In(c.language), w); got != c.want {
			t.Errorf("asked is %q, want %q", got, c.want)
		}
	}
}

// TestConcealed checks that a command must be asked for in the terminal if redacting its secrets would hide what
// it does.
func TestConcealed(t *testing.T) {
	for command, asked := range map[string]bool{
		"TOKEN=abcdef make": true,
		`curl -H "Authorization: Bearer $TOKEN" https://x`: true,
		"make; key=x ls && true":                           true,
		"export TOKEN=$(curl${IFS}x|sh)":                   false,
		"ls && token=x&&rm${IFS}-rf${IFS}/":                false,
		"curl -u x --basic x>~/.bashrc":                    false,
		`eval secret="x; rm -rf ~"`:                        false,
		"API_KEY=`id` true":                                false,
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		must.Succeed(t, err)
		if w := (permissionRequest{Tool: "Bash", Input: input}); w.isYesOrNo() != asked {
			t.Errorf("%s: asked is %t, as %q", command, !asked, question(new(language.Catalogue).In("en"), w))
		}
	}
}

// TestAskedInTheRobotsLanguage checks that a robot asks in its own language, also when it repeats the question, and
// that the published question is in the configured default language.
func TestAskedInTheRobotsLanguage(t *testing.T) {
	for tag, want := range map[string][2]string{
		"en": {"A coding session asks: May I run a command: make test?",
			"I did not understand. A coding session asks: May I run a command: make test? Please say yes or no."},
		"de-AT": {"Eine Programmiersitzung fragt: Darf ich einen Befehl ausführen: make test?",
			"Das habe ich nicht verstanden. Eine Programmiersitzung fragt: Darf ich einen Befehl ausführen: make test? Bitte sag ja oder nein."},
	} {
		spoken := func(o *Options) {
			o.Language = func(id device.ID) string {
				if id == robotA {
					return tag
				}
				return "fr"
			}
		}
		bubble(t, func(t *testing.T, h *harness) {
			answer := answers("the weather", "yes")
			h.robots.ask = func(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
				if open := h.api.Questions(); len(open) != 1 || !strings.Contains(open[0].Text, "Est-ce que je peux") {
					t.Errorf("shown is %+v", open)
				}
				return answer(ctx, id, q)
			}
			<-h.permitted(t.Context())
			asked := h.robots.questions()
			if len(asked) != 2 || asked[0].Text != want[0] || asked[1].Text != want[1] {
				t.Errorf("%s: asked is %+v", tag, asked)
			}
		}, spoken)
	}
}
