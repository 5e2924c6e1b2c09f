package acp

import (
	"cmp"
	"time"

	"perch/agent"
	"perch/driver"
)

// Driver declares the brain acp. Its setup is an Options; see withSetup.
func Driver() driver.Driver[Options, agent.Brain] {
	return driver.Of(driver.Driver[Options, agent.Brain]{Kind: "acp",
		Runs:    []string{"a coding agent: claude-agent-acp, gemini, codex-acp, goose, zeroclaw"},
		Summary: "A coding agent that is installed on this machine answers.",
		Sample:  `{kind: acp, command: [claude-agent-acp], cwd: /var/lib/perch/agent, env: {NAME: value}, idle: 5m, turns: 50, age: 30m, allow: [read, search]}`},
		Options.withSetup, func(o Options) (agent.Brain, error) { return New(o) })
}

// withSetup returns o with MayAnswer, Tools, Lend, Phrases and Log from setup, and with a start timeout that is
// not longer than the timeout for silence.
func (o Options) withSetup(setup Options) (Options, error) {
	o.MayAnswer, o.Tools, o.Lend, o.Phrases, o.Log = setup.MayAnswer, setup.Tools, setup.Lend, setup.Phrases, setup.Log
	o.Start = min(o.Silence, StartWithin)
	return o, nil
}

// Patience returns how long the agent may be silent before a turn fails.
func (o *Options) Patience() time.Duration { return cmp.Or(o.Silence, 5*time.Minute) }

// Where returns the agent's program.
func (b *Brain) Where() string { return b.o.Command[0] }
