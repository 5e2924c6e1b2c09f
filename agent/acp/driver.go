package acp

import (
	"cmp"
	"time"

	"perch/agent"
	"perch/driver"
)

// Driver declares the brain acp. Its setup is the options that are no keys.
func Driver() driver.Driver[Options, agent.Brain] {
	return driver.Of(driver.Driver[Options, agent.Brain]{Kind: "acp",
		Runs:   []string{"a coding agent: claude-agent-acp, gemini, codex-acp, goose, zeroclaw"},
		Sample: `{kind: acp, command: [claude-agent-acp], cwd: /var/lib/perch/agent, env: {NAME: value}, idle: 5m, turns: 50, age: 30m, allow: [read, search]}`},
		Options.with, func(o Options) (agent.Brain, error) { return New(o) })
}

func (o Options) with(s Options) (Options, error) {
	o.MayAnswer, o.Tools, o.Lend, o.Phrases, o.Log = s.MayAnswer, s.Tools, s.Lend, s.Phrases, s.Log
	o.Start = min(o.Silence, StartWithin)
	return o, nil
}

// Patience is how long the agent may be silent: its tools may take long.
func (o *Options) Patience() time.Duration { return cmp.Or(o.Silence, 5*time.Minute) }

// Where returns the agent's program.
func (b *Brain) Where() string { return b.o.Command[0] }
