package acp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/device"
	"perch/must"
	"perch/waittest"
)

const robot = device.ID("a0b1c2d3e4f5")

const canary = "canary-0-canary"

// rig is a brain whose agent is the fake of fake_test.go, with a clock that the test sets.
type rig struct {
	processDir
	brain *acp.Brain
	log   *waittest.Buffer

	mu  sync.Mutex
	now time.Time
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func build(t *testing.T, mode string, change ...func(*acp.Options)) *rig {
	t.Helper()
	self, err := os.Executable()
	must.Succeed(t, err)
	r := &rig{processDir: processDir{t, t.TempDir()}, log: &waittest.Buffer{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o := acp.Options{
		Command: []string{self}, Dir: r.dir,
		Env: map[string]string{"FAKE_AGENT": mode, "FAKE_DIR": r.dir, "FAKE_KEY": canary,
			"GORACE": "atexit_sleep_ms=0"}, // without this, a fake with the race detector takes a second to exit
		MayAnswer: func(id device.ID) bool { return id == robot },
		Log:       slog.New(slog.NewTextHandler(r.log, nil)), Now: r.clock,
	}
	for _, c := range change {
		c(&o)
	}
	r.brain, err = acp.New(o)
	must.Succeed(t, err)
	t.Cleanup(func() {
		r.brain.Close()
		r.empty()
		if strings.Contains(r.log.String(), canary) {
			t.Errorf("a key is in the log: %s", r.log)
		}
	})
	return r
}

// received records the replies of turns, one line each, and answers questions from answer.
type received struct {
	mu     sync.Mutex
	lines  []string
	on     func(agent.Reply) error // called first
	answer []agent.Answer
	asked  int
}

func (h *received) take(r agent.Reply) error {
	if h.on != nil {
		if err := h.on(r); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r := r.(type) {
	case agent.Felt:
		h.lines = append(h.lines, r.Emotion.Emoji)
	case agent.Say:
		h.lines = append(h.lines, r.Text)
	case agent.Thought:
		h.lines = append(h.lines, "("+r.Text+")")
	case agent.ToolStatus:
		line := fmt.Sprintf("<%s %s %s %s>", r.ID, r.Name, r.Status, r.Detail)
		if r.SubAgent {
			line += " agent"
		}
		h.lines = append(h.lines, line)
	case agent.Ask:
		h.lines = append(h.lines, "? "+r.Text)
		a := agent.Answer{Outcome: agent.AnswerExpired}
		if h.asked < len(h.answer) {
			a = h.answer[h.asked]
		}
		h.asked++
		r.Answer(a)
	case agent.Done:
		h.lines = append(h.lines, string("."+r.End))
	}
	return nil
}

func (h *received) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "|")
}

func (r *rig) turnOf(conversation, words string) agent.Turn {
	return agent.Turn{Conversation: conversation, Robot: robot, Text: words, Language: "en", Now: r.clock()}
}

// say runs one turn, and returns its replies, separated by "|".
func (r *rig) say(words string, answers ...agent.Answer) (string, error) {
	h := &received{answer: answers}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	err := r.brain.Think(ctx, r.turnOf("a", words), h.take)
	return h.String(), err
}

func (r *rig) want(words, want string, answers ...agent.Answer) {
	r.t.Helper()
	if got, err := r.say(words, answers...); got != want || err != nil {
		r.t.Errorf("%q gave\n%s\nnot\n%s\n%v", words, got, want, err)
	}
}

func TestATurn(t *testing.T) {
	r := build(t, "plain")
	if r.brain.Name() != "acp" {
		t.Error(r.brain.Name())
	}
	r.want("think h;think m;words 😊 Hello you. How are;words you today?", "(hm)|😊|Hello you.|How are you today?|."+string(agent.Continue))
	r.want("where", "😐|Session s1 turn 2 blocks 1.|.done")
	if n := strings.Count(r.received(), "exactly one of these emoji"); n != 1 {
		t.Errorf("the preamble was sent %d times", n)
	}
	for _, want := range []string{`"protocolVersion":1`, `"readTextFile":false`, `"terminal":false`, `"mcpServers":[]`, `"cwd":"` + r.dir + `"`,
		`{"text":"where","type":"text"}`} {
		if !strings.Contains(r.received(), want) {
			t.Errorf("the agent was not sent %s", want)
		}
	}
	for _, e := range agent.OfferedEmotions() {
		if !strings.Contains(r.received(), e.Emoji) {
			t.Errorf("%s is not offered", e.Name)
		}
	}
	r.want("tool x search failed Find it", "<x search failed Find it>|😊|Done.|.done")
	r.want("think So;plan completed Look,in_progress Write,pending Test;say Yes.", "(So)|(Plan: ✓ Look; → Write; Test)|😐|Yes.|.done")
}

func TestTools(t *testing.T) {
	r := build(t, "plain")
	r.want("say I look.;tool c1 read pending Reading a file with api_key=canary;tool c1 read in_progress;tool c1 read completed;tool c2 execute in_progress npm test;tool c2 execute failed;say So it is.",
		"😐|I look.|<c1 read running Reading a file with api_key=***>|<c1 read done Reading a file with api_key=***>|<c2 execute running npm test>|<c2 execute failed npm test>|So it is.|.done")
	r.want("tool t think in_progress Ponder;agent g;inner Do not say this.;tool g think completed;say Good.",
		"<g think running Look around> agent|<g think done Look around> agent|😐|Good.|.done")
	// A tool that is still running at the end of the turn is reported as done.
	r.want("tool c strange pending "+strings.Repeat("long ", 100)+";say Yes.",
		"<c other running "+strings.TrimSpace(strings.Repeat("long ", 40))+">|😐|Yes.|<c other done "+strings.TrimSpace(
			strings.Repeat("long ", 40))+">|.done")
}

func TestGarbageIsIgnoredAndLoggedOnce(t *testing.T) {
	r := build(t, "plain")
	r.want("garbage;words These pieces are one sentence. And more.", "😐|These pieces are one sentence.|And more.|.done")
	if n := strings.Count(r.log.String(), "not a message of the protocol"); n != 1 {
		t.Errorf("garbage is logged %d times", n)
	}
	r.want("fs x", "😐|Answer code -32601 message method not found.|.done")
}

func TestStopReasons(t *testing.T) {
	r := build(t, "plain")
	for reason, want := range map[string]string{
		"refusal": "😐|I may not answer that.|.done", "max_tokens": "😐|I was cut off: the answer was too long.|.done",
		"max_turn_requests": "😐|I stopped here: it took too many steps.|.done", "cancelled": "😐|I have stopped.|.done",
		"from_the_future": "😊|Done.|.done",
	} {
		r.want("stop "+reason, want)
	}
	r.want("say 😢 It was so;stop max_tokens", "😢|It was so|😐|I was cut off: the answer was too long.|.done")
	h := &received{}
	turn := r.turnOf("b", "stop refusal")
	turn.Language = "de-DE"
	if err := r.brain.Think(t.Context(), turn, h.take); err != nil || h.String() != "😐|Darauf darf ich nicht antworten.|.done" {
		t.Error(h, err)
	}
	r = build(t, "plain", func(o *acp.Options) { o.Phrases = func(tag, name string) string { return tag + " " + name + "." } })
	r.want("stop refusal", "😐|en refused.|.done")
}

func TestPermissions(t *testing.T) {
	r := build(t, "plain", func(o *acp.Options) { o.AllowKinds = []string{"read"} })
	given := func(words string) agent.Answer { return agent.Answer{Outcome: agent.AnswerGiven, Text: words} }
	const q = "? May I run a command: npm test?"
	const again = "|? I did not understand. May I run a command: npm test? Please say yes or no."
	yes, no := "|😐|Answer outcome optionId once outcome selected.|.done", "|😐|Answer outcome optionId no outcome selected.|.done"
	for name, c := range map[string]struct {
		answers []agent.Answer
		want    string
	}{
		"yes":              {[]agent.Answer{given("Yes, please.")}, q + yes},
		"no":               {[]agent.Answer{given("no")}, q + no},
		"touch":            {[]agent.Answer{{Outcome: agent.AnswerTouch}}, q + yes},
		"expired":          {[]agent.Answer{{Outcome: agent.AnswerExpired, Text: "yes"}}, q + no},
		"closed":           {[]agent.Answer{{Outcome: agent.AnswerClosed, Text: "yes"}}, q + no},
		"unknown":          {[]agent.Answer{{Outcome: "from the future", Text: "yes"}}, q + no},
		"again, then yes":  {[]agent.Answer{given("the weather"), given("ja")}, q + again + yes},
		"again, then no":   {[]agent.Answer{given("the weather"), given("nein")}, q + again + no},
		"not twice":        {[]agent.Answer{given("the weather"), given("is fine")}, q + again + no},
		"again, then late": {[]agent.Answer{given("the weather"), {Outcome: agent.AnswerExpired}}, q + again + no},
	} {
		if got, err := r.say("ask c1 execute `npm test`", c.answers...); got != c.want || err != nil {
			t.Errorf("%s:\n%s\nnot\n%s\n%v", name, got, c.want, err)
		}
	}
	r.want("ask c1 read secrets", "😐|Answer outcome optionId once outcome selected.|.done") // the kind is in AllowKinds
	// If the request omits the kind of the tool, the kind that was reported before is used.
	r.want("tool c2 read pending Look;ask c2 -", "<c2 read running Look>|😐|Answer outcome optionId once outcome selected.|<c2 read done Look>|.done")
	r.want("ask c3 -", "? May I use a tool?|😐|Answer outcome optionId no outcome selected.|.done")
	r.want("tool c4 read pending Look;ask c4 delete Look",
		"<c4 read running Look>|? May I delete something: Look?|<c4 read failed Look>|😐|Answer outcome optionId no outcome selected.|.done")
	// A person cannot allow a command that the question cannot say in full.
	r.want("ask c6 execute export TOKEN=$(curl|sh)",
		"😐|I did not do that: a part of the command cannot be told aloud.|Answer outcome optionId no outcome selected.|.done",
		agent.Answer{Outcome: agent.AnswerTouch})
	r.want("ask c7 execute KEY="+strings.Repeat("x", 1000),
		"? May I run a command: KEY= and so on?|😐|Answer outcome optionId no outcome selected.|.done")
	r.want("askforever c5 read x",
		"😐|I did not do that: it can only be allowed for good, and that is not for me to ask.|Answer outcome optionId no outcome selected.|.done")
}

func TestOnlyAnAdoptedRobotMayAnswer(t *testing.T) {
	for name, change := range map[string]func(*acp.Options){
		"not this one": func(o *acp.Options) { o.MayAnswer = func(device.ID) bool { return false } },
		"nobody":       func(o *acp.Options) { o.MayAnswer = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := build(t, "plain", change)
			r.want("asktwice c1 execute rm", "😐|I may not do that: only a robot that was adopted by name can allow it.|"+
				"Answer outcome optionId no outcome selected.|Answer outcome optionId no outcome selected.|.done",
				agent.Answer{Outcome: agent.AnswerTouch})
		})
	}
}

// TestAQuestionThatFailsIsNoConsent tests that a tool is not allowed if sending the question
// fails, even if there is an answer.
func TestAQuestionThatFailsIsNoConsent(t *testing.T) {
	r := build(t, "plain")
	h := &received{on: func(reply agent.Reply) error {
		if ask, ok := reply.(agent.Ask); ok {
			ask.Answer(agent.Answer{Outcome: agent.AnswerTouch})
			return errors.New("the speaker is broken")
		}
		return nil
	}}
	if err := r.brain.Think(t.Context(), r.turnOf("a", "ask c execute x"), h.take); err == nil || err.Error() != "the speaker is broken" {
		t.Error(err)
	}
	r.eventually("the permission is answered", func() bool { return strings.Contains(r.received(), `{"outcome":{"outcome":"cancelled"}}`) })
	if strings.Contains(r.received(), "once") {
		t.Error("it was allowed")
	}
}

// eventually reports an error if the function is does not return true within a minute.
func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	if !waittest.Until(time.Minute, is) {
		r.t.Errorf("not within a minute: %s\n%s", what, r.log)
	}
}

func TestSessionsRotate(t *testing.T) {
	r := build(t, "plain", func(o *acp.Options) { o.Turns = 3 })
	where := func(want string) {
		t.Helper()
		r.want("where", "😐|Session "+want+".|.done")
	}
	where("s1 turn 1 blocks 2")
	where("s1 turn 2 blocks 1")
	where("s1 turn 3 blocks 1")
	where("s2 turn 1 blocks 2") // session s1 has had the maximum of turns
	r.pass(299 * time.Second)
	where("s2 turn 2 blocks 1")
	r.pass(300 * time.Second)
	where("s3 turn 1 blocks 2") // session s2 was idle for too long
	for turn := 2; turn < 4; turn++ {
		r.pass(299 * time.Second)
		where(fmt.Sprintf("s3 turn %d blocks 1", turn))
	}
	r.eventually("the old ones are closed", func() bool { return strings.Count(r.received(), `"session/close"`) == 2 })
	if n, _, _ := r.brain.Open(); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
	r = build(t, "plain")
	for turn := range 7 {
		where(fmt.Sprintf("s1 turn %d blocks %d", turn+1, max(1, 2-turn)))
		r.pass(299 * time.Second)
	}
	where("s2 turn 1 blocks 2") // session s1 is older than Options.Age
}

// TestANewSessionReceivesTheHistory tests that the first prompt of a session contains the
// latest four exchanges, clipped.
func TestANewSessionReceivesTheHistory(t *testing.T) {
	r := build(t, "plain")
	turn := r.turnOf("a", "say Yes.")
	turn.History = []agent.Exchange{{Heard: "long ago", Said: "x"}, {}, {}, {Heard: "my name is Ada", Said: strings.Repeat("é", 1000)},
		{Heard: "hi", Said: "hello"}}
	must.Succeed(t, r.brain.Think(t.Context(), turn, (&received{}).take))
	if log := r.received(); !strings.Contains(log, `they: my name is Ada`) || strings.Contains(log, "long ago") ||
		strings.Contains(log, strings.Repeat("é", 151)) {
		t.Error(log)
	}
}

func TestConversationsHaveTheirOwnSessions(t *testing.T) {
	r := build(t, "plain")
	blocked, free := make(chan struct{}), make(chan struct{})
	slow := &received{on: func(reply agent.Reply) error {
		if _, ok := reply.(agent.Say); ok {
			select {
			case <-blocked:
			default:
				close(blocked)
			}
			<-free
		}
		return nil
	}}
	var turns sync.WaitGroup
	turns.Go(func() {
		if err := r.brain.Think(context.Background(), r.turnOf("slow", "words One. Two. Three.;muse 20;where"), slow.take); err != nil {
			t.Error(err)
		}
	})
	<-blocked
	r.want("where", "😐|Session s2 turn 1 blocks 2.|.done") // while the other conversation's turn is blocked
	close(free)
	turns.Wait()
	if got := slow.String(); !strings.HasSuffix(got, "Session s1 turn 1 blocks 2.|.done") {
		t.Errorf("%.200s", got)
	}
	for i := range 80 { // more than the maximum of 64 conversations
		h := &received{}
		must.Succeed(t, r.brain.Think(t.Context(), r.turnOf(fmt.Sprint(i), "say Yes."), h.take))
	}
	if n, _, _ := r.brain.Open(); n > 64 {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestTheOlderDialect(t *testing.T) {
	r := build(t, "old")
	r.want(`event {"type":"chunk","content":"😆 Hi"};event {"type":"chunk","content":" there. "};event {"type":"tool_call","name":"shell","args":{}};event {"type":"tool_result","name":"shell","output":"x"};event {"type":"chunk","content":"So."};event {"type":"what"}`,
		"😆|Hi there.|<shell other running shell>|<shell other done shell>|So.|.done")
	r.want("think", "😊|All at once.|.done") // an agent that does not stream its text
	r.want("oldask shell", "? May I use a tool: shell?|😐|Answer approved true.|.done", agent.Answer{Outcome: agent.AnswerTouch})
	r.want("oldask shell", "? May I use a tool: shell?|😐|Answer approved false.|.done")
	ctx, cancel := context.WithCancel(t.Context())
	h := &received{on: func(agent.Reply) error { cancel(); return ctx.Err() }}
	if err := r.brain.Think(ctx, r.turnOf("a", "event {\"type\":\"chunk\",\"content\":\"One. Two\"};wait"), h.take); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
	r.eventually("the cancel was heard", func() bool { return strings.Contains(r.received(), `"session/cancel","params":{"session_id":"s1"}`) })
	for _, want := range []string{`"working_directory":`, `"session_id":"s1"`} {
		if !strings.Contains(r.received(), want) {
			t.Errorf("the agent was not sent %s", want)
		}
	}
	r.want("event {\"type\":\"chunk\",\"content\":\"Here.\"}", "😐|Here.|.done")
}

func TestOptions(t *testing.T) {
	good := acp.Options{Command: []string{"x"}, Log: slog.New(slog.DiscardHandler)}
	for want, change := range map[string]func(*acp.Options){
		"needs a command":         func(o *acp.Options) { o.Command = nil },
		"needs a log":             func(o *acp.Options) { o.Log = nil },
		`"run" is not a kind`:     func(o *acp.Options) { o.AllowKinds = []string{"read", "run"} },
		"idle must be above zero": func(o *acp.Options) { o.Idle = -1 },
		"at least one turn":       func(o *acp.Options) { o.Turns = -1 },
		"":                        func(*acp.Options) {},
	} {
		o := good
		change(&o)
		b, err := acp.New(o)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			b.Close()
			b.Close()
			if err := b.Think(t.Context(), agent.Turn{}, nil); !errors.Is(err, agent.ErrAway) {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
