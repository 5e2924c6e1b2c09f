package engines

import (
	"context"
	"net/url"

	"perch/agent"
	"perch/agent/thinker"
	"perch/remote"
	"perch/voice"
)

// Engine is an engine with its condition.
type Engine struct {
	*condition
	List  string // "recognizer", "synthesizer", "brain", "deep" or "tools"
	Kind  string // as the configuration spells it
	Where string
	Check func(context.Context) error // whether it would work now, as the doctor asks
	look  func(context.Context) error // the same, as the appliance asks by itself; nil asks nothing
	Warm  func(context.Context) error // makes it ready for a turn that is about to come; may be nil
	note  func() string               // describes an engine that works; Where does if it is nil

	// What it is, one of these four, where it is in one of their lists.
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Brain       agent.Brain
	Deep        thinker.Model
}

// shownAddress is where an engine is, without what in its address may be a secret.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return remote.Address(u)
}

// watched uses the engine's own check for the doctor and for looks at it.
func (n *Engine) watched(check func(context.Context) error) { n.Check, n.look = check, check }
