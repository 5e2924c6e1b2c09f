package acp

import (
	"cmp"
	"time"

	"perch/agent"
	"perch/agent/program"
	"perch/driver"
)

// Keys are the keys of a brain of kind acp.
type Keys struct {
	Command []string          `yaml:"command" doc:"The agent's program and its arguments."`
	Cwd     string            `yaml:"cwd" doc:"The folder it works in."`
	Env     map[string]string `yaml:"env" doc:"Variables that are added to its environment."`
	Idle    time.Duration     `yaml:"idle" doc:"A new session begins after this time without a turn. If 0s, 5m."`
	Turns   int               `yaml:"turns" doc:"A new session begins after so many turns. If 0, 50."`
	Age     time.Duration     `yaml:"age" doc:"A new session begins after this time. If 0s, 30m."`
	Allow   []string          `yaml:"allow" doc:"Kinds of tools that need no permission: read, edit, delete, move, search, execute, think, fetch, switch_mode, other."`
	Within  time.Duration     `yaml:"within" doc:"The longest time without a sign of life. If 0s, 5m."`
}

// Driver declares the brain acp. Its setup are the options that are no keys.
func Driver() driver.Driver[Options, agent.Brain] {
	return driver.Of(driver.Driver[Options, agent.Brain]{Kind: "acp",
		Runs:   []string{"a coding agent: claude-agent-acp, gemini, codex-acp, goose, zeroclaw"},
		Sample: `{kind: acp, command: [claude-agent-acp], cwd: /var/lib/perch/agent, env: {NAME: value}, idle: 5m, turns: 50, age: 30m, allow: [read, search]}`},
		Keys.options, func(o Options) (agent.Brain, error) { return New(o) })
}

func (k Keys) options(o Options) (Options, error) {
	o.Command, o.Dir, o.Env, o.AllowKinds = k.Command, k.Cwd, program.Environ(k.Env), k.Allow
	o.Idle, o.Turns, o.Age, o.Start, o.Silence = k.Idle, k.Turns, k.Age, min(k.Within, StartWithin), k.Within
	return o, nil
}

// Patience is how long the agent may be silent: its tools may take long.
func (k *Keys) Patience() time.Duration { return cmp.Or(k.Within, 5*time.Minute) }

// Where returns the agent's program.
func (b *Brain) Where() string { return b.o.Command[0] }
