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
	Check func(context.Context) error // reports whether it works, for the doctor; may be nil
	check func(context.Context) error // the same for the appliance's own checks; may be nil
	// CheckContext reports whether a model's context is long enough, for the doctor; may be nil.
	CheckContext func(context.Context) error
	Warm         func(context.Context) error // makes it ready for the next turn; may be nil
	note         func() string               // describes an engine that works; may be nil, then Where does

	// One of these is set, unless the engine is a server of tools.
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Brain       agent.Brain
	Deep        thinker.Model
}

// shownAddress returns the address of an engine without the parts that may be secret.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return remote.Address(u)
}
