package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/must"
)

// TestStartFailures tests that the error of each failed start is one line that names the cause
// and contains no key.
func TestStartFailures(t *testing.T) {
	soon := func(o *acp.Options) { o.Start = 200 * time.Millisecond }
	text := filepath.Join(t.TempDir(), "notes.txt")
	must.Succeed(t, os.WriteFile(text, []byte("notes"), 0o600))
	for name, c := range map[string]struct {
		mode   string
		change func(*acp.Options)
		want   string
	}{
		"no such program": {"plain", func(o *acp.Options) { o.Command = []string{"no-such-agent", "--key", canary} },
			"no-such-agent is not installed; install it"},
		"no such path":    {"plain", func(o *acp.Options) { o.Command[0] = "/no/such/agent" }, "agent is not installed; install it"},
		"no program":      {"plain", func(o *acp.Options) { o.Command[0] = text }, "notes.txt cannot be started: permission denied"},
		"no folder":       {"plain", func(o *acp.Options) { o.Dir = "/no/such/folder" }, "the folder /no/such/folder for acp.test does not exist; create it"},
		"ends at once":    {"exit", nil, "acp.test ended at once (exit status 3); run it by hand"},
		"says nothing":    {"mute", soon, "does not answer initialize in 200ms; see that its arguments make it an agent"},
		"another version": {"version 2", nil, "speaks version 2 of the Agent Client Protocol, not 1"},
		"refuses":         {"refuses", nil, "refuses to begin: the disk is full, and the key is *** (-32603)"},
		"needs a login":   {"login", nil, "acp.test needs a login; run it once by hand"},
		"no session":      {"no session", nil, "opens no session: pi is not installed, and the key is *** (-32603)"},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*acp.Options) {}
			}
			r := build(t, c.mode, change)
			for what, err := range map[string]error{
				"Think": func() error { _, err := r.say("say No."); return err }(), "Check": r.brain.Check(t.Context()),
			} {
				if !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("%s says %v", what, err)
				}
			}
			r.brain.Close()
			r.empty()
			if n := len(r.pids()); n > 1 {
				t.Errorf("it was started %d times at once", n)
			}
		})
	}
}

// TestLoginRequiredAtTheFirstPrompt tests an agent that reports only on a prompt that it needs
// a login.
func TestLoginRequiredAtTheFirstPrompt(t *testing.T) {
	r := build(t, "plain")
	must.Succeed(t, r.brain.Check(t.Context()))
	if _, err := r.say("fail -32000 Authentication required"); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "needs a login") {
		t.Error(err)
	}
	r.pass(time.Minute)
	if err := r.brain.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "needs a login") {
		t.Error(err)
	}
	r.want("say In.", "😐|In.|.done") // from a new process, which works after the login
	must.Succeed(t, r.brain.Check(t.Context()))
}

// TestNoMoreSessions tests that an agent that refuses another session is not stopped while the
// turn of its first session runs.
func TestNoMoreSessions(t *testing.T) {
	r := build(t, "one session")
	first := make(chan error, 1)
	h := &received{}
	go func() {
		first <- r.brain.Think(context.Background(), r.turnOf("first", "await go;say Whole."), h.take)
	}()
	r.eventually("the first is in its turn", func() bool { return strings.Contains(r.received(), "session/prompt") })
	if _, err := r.say("say No."); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "too many sessions") {
		t.Error(err)
	}
	r.make("go")
	if err := <-first; err != nil || h.String() != "😐|Whole.|.done" {
		t.Error(h, err)
	}
	r.want("where", "😐|Session s3 turn 1 blocks 2.|.done") // a session is requested again
}

func TestAPromptThatFails(t *testing.T) {
	r := build(t, "plain")
	if _, err := r.say("fail -32603 Internal error with token=" + canary); !errors.Is(err, agent.ErrAway) ||
		!strings.HasSuffix(err.Error(), "could not answer: Internal error with token=*** (-32603)") {
		t.Error(err)
	}
	if _, err := r.say("fail -32002 busy"); !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
	r.want("where", "😐|Session s1 turn 3 blocks 1.|.done")
	// A session that the agent has forgotten is replaced within the turn.
	r.want("forgetfirst;where", "😐|Session s2 turn 1 blocks 2.|.done")
	if _, err := r.say("fail -32000 Session not found: x"); !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

func TestDeathInTheMiddle(t *testing.T) {
	for words, want := range map[string]string{
		"say One. Two. Thr;die":                              "ended (exit status 4)",
		"say One. Two. Thr;crash":                            "ended (signal: killed)",
		"say One. Two. Thr;half Never.":                      "ended (exit status 0)",
		"say One. Two. Thr;shut":                             "ended (",
		"say One. Two. Thr;spawn;die":                        "ended (exit status 4)",
		"tool c execute in_progress x;say One. Two. Thr;die": "ended (exit status 4)",
		"muse 20;say One. Two. Thr;die":                      "ended (exit status 4)", // with 400 kB of thoughts in front
	} {
		t.Run(words, func(t *testing.T) {
			r := build(t, "plain")
			got, err := r.say(words)
			if !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if !strings.HasSuffix(got, "😐|One.|Two.") {
				t.Errorf("what was said before it is lost: %s", got)
			}
			if _, err := r.say("say No."); !errors.Is(err, agent.ErrAway) {
				t.Errorf("it is started again at once: %v", err)
			}
			r.pass(time.Second)
			r.want("where", "😐|Session s1 turn 1 blocks 2.|.done")
			r.eventually("its last words are logged, without the key", func() bool {
				return strings.Contains(r.log.String(), "last words of the fake, with key ***")
			})
		})
	}
}

// TestDeathWhileAsking tests that a turn fails if the agent ends while the person is asked.
func TestDeathWhileAsking(t *testing.T) {
	r := build(t, "plain")
	h := &received{on: func(reply agent.Reply) error {
		if _, ok := reply.(agent.Ask); ok {
			r.brain.Close()
		}
		return nil
	}, answer: []agent.Answer{{Outcome: agent.AnswerTouch}}}
	if err := r.brain.Think(t.Context(), r.turnOf("a", "ask c execute x"), h.take); !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

func TestRestartsBackOff(t *testing.T) {
	r := build(t, "exit")
	want := []string{"1s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"}
	for i, pause := range want {
		if _, err := r.say("say No."); err == nil {
			t.Fatal("it answered")
		}
		if got := r.brain.Mute(); got != pause {
			t.Errorf("after %d failures it waits %s, not %s", i+1, got, pause)
		}
		_, err := r.say("say No.")
		if err == nil || !strings.Contains(err.Error(), "ended at once") {
			t.Errorf("while it waits it says %v", err)
		}
		d, _ := time.ParseDuration(pause)
		r.pass(d)
	}
	if n := len(r.pids()); n != len(want) {
		t.Errorf("it was started %d times, not %d", n, len(want))
	}
}

func TestSuccessResetsTheBackOff(t *testing.T) {
	r := build(t, "plain")
	for range 3 {
		if _, err := r.say("die"); err == nil {
			t.Fatal("it lives")
		}
		r.pass(time.Minute)
	}
	if _, err := r.say("die"); err == nil || r.brain.Mute() != "8s" {
		t.Error(r.brain.Mute())
	}
	r.pass(time.Minute)
	r.want("say Back.", "😐|Back.|.done")
	if _, err := r.say("die"); err == nil || r.brain.Mute() != "1s" {
		t.Error(r.brain.Mute())
	}
}

// TestAgentThatDoesNotReadIsStopped tests that an agent that sends many requests and reads no
// response is stopped.
func TestAgentThatDoesNotReadIsStopped(t *testing.T) {
	r := build(t, "deaf")
	if _, err := r.say("flood 20000;hang"); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "does not read") {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	t.Run("in a turn, with a child", func(t *testing.T) {
		r := build(t, "plain")
		ended := make(chan error, 1)
		go func() {
			ended <- r.brain.Think(context.Background(), r.turnOf("a", "spawn;say Up.;hang"), (&received{}).take)
		}()
		r.eventually("it is in the turn, and has a child", func() bool { return len(r.pids()) == 2 })
		r.brain.Close()
		if err := <-ended; !errors.Is(err, agent.ErrAway) {
			t.Error(err)
		}
		r.empty()
	})
	t.Run("while it starts", func(t *testing.T) {
		r := build(t, "mute")
		ended := make(chan error, 1)
		go func() { ended <- r.brain.Check(context.Background()) }()
		r.eventually("it has started", func() bool { return len(r.pids()) == 1 })
		r.brain.Close()
		if err := <-ended; !errors.Is(err, agent.ErrAway) {
			t.Error(err)
		}
		r.empty()
	})
}

// TestCheckOpensASession tests that Check opens a session and closes it.
func TestCheckOpensASession(t *testing.T) {
	r := build(t, "plain")
	for range 2 {
		must.Succeed(t, r.brain.Check(t.Context()))
	}
	r.want("where", "😐|Session s3 turn 1 blocks 2.|.done")
	r.eventually("the sessions are closed", func() bool { return strings.Count(r.received(), `"session/close"`) == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.brain.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
