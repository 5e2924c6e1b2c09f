// Package skill is what an agent knows how to do beside talking: bundles of
// instructions and tools that an owner puts into a folder, and a few built in. It
// decides which bundles are trusted, in which order they are loaded, and carries
// skills out. It fails closed: what is missing, unsigned or not understood is
// refused with a sentence that says why.
//
// A Library does not change once it is made, so that all its methods may be called
// at a time. It has no goroutine: whoever performs a skill waits for it.
package skill

import (
	"encoding/json"
	"errors"
	"regexp"
	"sync"
	"time"

	"perch/agent/thinker"
	"perch/device"
	"perch/event"
)

// Skill is one skill, as its bundle describes it or as it is built in.
type Skill struct {
	Name         string
	Version      string // such as "1.2.0"; empty is 0.0.0
	Description  string // one line, shown to the model
	Instructions string // for the prompt; Markdown; empty if it adds none
	Gesture      string // that goes with it, "wave"; empty is none
	Voice        string // what is said once it is done, with {{vars}} of its arguments and of its result
	Exposed      bool   // other programs may call it over MCP, as skill_NAME
	Input        json.RawMessage
	Sentences    map[string][]string // by language: what a person says to have it done, in the grammar of the reflex brain
	Slots        map[string]string   // the arguments that slots of the sentences fill, where their names differ
	Tools        []Tool
	Needs        map[string]string // other skills by name, with the versions that will do
	Handler      string            // the tool that carries the skill out; empty: it only speaks
	Servers      map[string]string // addresses of MCP servers, by the name that tools call them
	Folder       string            // of the bundle; empty if built in
	Digest       string            // of the bundle, "sha256:" and hex
	Signature    *Signature        // nil if the bundle is not signed

	builtin func(*Library, *performance) (Result, error)
}

// Tool is a tool of a skill. It is carried out by an HTTP endpoint or by an MCP
// server; exactly one of URL and Server is set.
type Tool struct {
	thinker.Tool
	URL    string // takes {skill, tool, args, agentId} by POST
	Server string // the name of an MCP server in the skill's Servers
}

// Call asks for a skill.
type Call struct {
	Agent   string // the character that performs it
	Robot   device.ID
	Session string
	Skill   string
	Args    json.RawMessage // an object; empty stands for one without keys
	Now     time.Time
	// Language is that of what is said, BCP 47; empty is the household's.
	Language string
	// Untrusted callers get the skills that only speak.
	Untrusted bool
	// Exposed is a call by another program, such as a viewer: it gets the skills alone
	// whose manifest has mcpExposed.
	Exposed bool
}

// by is who has asked for the skill, as its events tell it.
func (c Call) by() string {
	if c.Exposed {
		return event.ByViewer
	}
	return ""
}

// Result is what came of a skill.
type Result struct {
	Success   bool            `json:"success"`
	Output    string          `json:"output,omitempty"`    // text for the agent, or to be said
	Sentiment *float64        `json:"sentiment,omitempty"` // from -1 to 1; nil if the skill does not say
	Data      json.RawMessage `json:"data,omitempty"`      // whatever else it found out
}

// Bounds of a bundle and of what it may say, in bytes unless noted.
const (
	mostSkills      = 50
	mostTools       = 20 // of one skill
	mostFiles       = 200
	mostDescription = 500
	mostPattern     = 500
	mostSentences   = 20 // in one language
	mostNeeds       = 20
	mostNameLength  = 40
	mostServers     = 4
	mostAtOnce      = 4 // skills at work
)

// Errors that callers tell apart.
var (
	// ErrUnknown is wrapped by the error of a skill that is not there.
	ErrUnknown = errors.New("there is no such skill")
	// ErrBusy is returned while too many skills are at work.
	ErrBusy = errors.New("too many skills are at work; wait for one to end")
	// ErrTrust is wrapped by the errors of bundles that are not trusted.
	ErrTrust error = errors.New("the skill is not trusted")
	// ErrArguments is wrapped by the errors of arguments that do not fit.
	ErrArguments error = errors.New("the arguments do not fit")
	// ErrHidden is returned to another program for a skill that is not for it.
	ErrHidden = errors.New("other programs may use the skills alone whose manifest has mcpExposed")
	// ErrElsewhere is wrapped by the errors of skills that a program does which shows the agent.
	ErrElsewhere = errors.New("this skill is not done")
	// ErrDenied is returned to a stranger.
	ErrDenied = errors.New("a robot that nobody has adopted may not do that; perch robot adopt ROBOT adopts it")
)

// wordOfName is what skills and servers may be called.
var wordOfName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`) })

// toolName is what tools may be called, so that every model accepts it.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) })

func named(name string) bool { return len(name) <= mostNameLength && wordOfName().MatchString(name) }
