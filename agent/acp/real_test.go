package acp_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"perch/agent"
	"perch/agent/acp"
	"perch/must"
)

// TestARealAgent runs three conversations at once with the example agent of
// github.com/coder/acp-go-sdk, in the version of go.mod. One conversation allows the agent's
// tool, one refuses it, and one is interrupted.
func TestARealAgent(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "example-agent")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("build the example agent: %v\n%s", err, out)
	}
	r := build(t, "plain", func(o *acp.Options) { o.Command = []string{program}; o.Env = nil })
	must.Succeed(t, r.brain.Check(t.Context()))
	const before = "😐|ACP Go Example Agent — demo only (no AI model).I'll help you with that.|Let me start by reading some files to understand the current situation.|" +
		"<call_1 read running Reading project files>|<call_1 read done Reading project files>|" +
		"Now I understand the project structure.|I need to make some changes to improve it.|" +
		"<call_2 edit running Modifying critical configuration file>|? May I change something: Modifying critical configuration file?|"
	var turns sync.WaitGroup
	for conversation, c := range map[string]struct {
		answer agent.Answer
		want   string
	}{
		"allowed": {agent.Answer{Outcome: agent.AnswerTouch},
			"<call_2 edit done Modifying critical configuration file>|Perfect!|I've successfully updated the configuration.|The changes have been applied.|.done"},
		"refused": {agent.Answer{Outcome: agent.AnswerGiven, Text: "No, thank you."},
			"<call_2 edit failed Modifying critical configuration file>|I understand you prefer not to make that change.|I'll skip the configuration update.|.done"},
	} {
		turns.Go(func() {
			h := &received{answer: []agent.Answer{c.answer}}
			err := r.brain.Think(context.Background(), r.turnOf(conversation, "Hello"), h.take)
			got := strings.ReplaceAll(h.String(), "—|", "— ") // the first sentence may be split after its dash
			if err != nil || got != before+c.want {
				t.Errorf("%s: %v\n%s\nnot\n%s", conversation, err, got, before+c.want)
			}
		})
	}
	turns.Go(func() {
		for range 2 { // the second turn uses the same session
			ctx, cancel := context.WithCancel(context.Background())
			h := &received{on: func(reply agent.Reply) error {
				if _, ok := reply.(agent.Say); ok {
					cancel()
				}
				return nil
			}}
			err := r.brain.Think(ctx, r.turnOf("interrupted", "Hello"), h.take)
			if !errors.Is(err, context.Canceled) || !strings.HasPrefix(h.String(), "😐|ACP Go") {
				t.Errorf("%v: %s", err, h)
			}
		}
		r.eventually("its prompts were answered", func() bool { _, n, _ := r.brain.Open(); return n <= 2 })
	})
	turns.Wait()
	if sessions, requests, _ := r.brain.Open(); sessions != 3 || requests != 0 {
		t.Errorf("there are %d sessions, not 3, and %d requests are open", sessions, requests)
	}
}
