package engines

import (
	"context"
	"net/url"

	"perch/agent"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/remote"
	"perch/voice"
)

// Engine is an engine and its condition.
type Engine struct {
	*condition
	List  string                      // "recognizer", "synthesizer", "brain", "deep" or "tools"
	Kind  string                      // the kind in the configuration; for "tools" the name of the server
	Where string                      // the address or program of the engine; may be empty
	Cost  string                      // the result of config.Engine.Cost
	Check func(context.Context) error // checks thoroughly whether the engine works, for the doctor; may be nil
	Warm  func(context.Context) error // prepares the engine for the next turn; may be nil
	// CheckContext checks whether a model's context is long enough for a conversation, for the doctor; may be nil.
	CheckContext func(context.Context) error

	quickCheck func(context.Context) error // checks the engine while the appliance runs; may be nil
	statusText func() string               // describes the engine while it works; nil if Where says enough
	configured config.Engine               // the engine's configuration; the zero value for "tools"

	voices voices // of a synthesizer

	// One of these is set, unless List is "tools".
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Brain       agent.Brain
	Deep        thinker.Model
}

// publicAddress returns the address of an engine without the parts that may be secret. It returns ""
// if the address has no host.
func publicAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return remote.Address(u)
}
