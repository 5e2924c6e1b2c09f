// Package skill implements the abilities of agents besides conversation: bundles of
// instructions and tools that an owner puts into a folder, and a few built-in ones. It
// decides which bundles are trusted and in what order they are loaded, and performs
// skills. It fails closed: what is missing, unsigned or not understood is refused with
// an error that says why.
//
// A Library is immutable and safe for concurrent use. It starts no goroutines: skills
// run on the goroutines of their callers.
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

// Skill is a skill, described by its bundle or built in.
type Skill struct {
	Name         string
	Version      string // such as "1.2.0"; empty is 0.0.0
	Description  string // one line, shown to the model
	Instructions string // for the prompt; Markdown; may be empty
	Gesture      string // that accompanies it, "wave"; may be empty
	Voice        string // spoken at the end, with {{vars}} of its arguments and its result
	Exposed      bool   // other programs may call it over MCP, as skill_NAME
	Input        json.RawMessage
	Sentences    map[string][]string // by language: sentences that invoke it, in the grammar of the reflex brain
	Slots        map[string]string   // arguments by slot name, where their names differ
	Tools        []Tool
	Needs        map[string]string // dependencies by name, with their version ranges
	Handler      string            // the tool that implements the skill; if empty, it only speaks
	Servers      map[string]string // addresses of MCP servers, by the names that tools use
	Folder       string            // of the bundle; empty if built in
	Digest       string            // of the bundle, "sha256:" and hex
	Signature    *Signature        // nil if the bundle is not signed

	builtin func(*Library, *performance) (Result, error)
}

// Tool is a tool of a skill. It is implemented by an HTTP endpoint or an MCP server;
// exactly one of URL and Server is set.
type Tool struct {
	thinker.Tool
	URL    string // receives {skill, tool, args, agentId} by POST
	Server string // the name of an MCP server in the skill's Servers
}

// Call is a request to perform a skill.
type Call struct {
	Agent   string // the character that performs it
	Robot   device.ID
	Session string
	Skill   string
	Args    json.RawMessage // an object; empty stands for one without keys
	Now     time.Time
	// Language is the language of the output, BCP 47; empty is the household's.
	Language string
	// Untrusted callers may only use skills that only speak.
	Untrusted bool
	// Exposed marks a call by another program, such as a viewer, which may only use
	// skills whose manifest has mcpExposed.
	Exposed bool
}

// by returns who requested the skill, as in events.
func (c Call) by() string {
	if c.Exposed {
		return event.ByViewer
	}
	return ""
}

// Result is the result of a skill.
type Result struct {
	Success   bool            `json:"success"`
	Output    string          `json:"output,omitempty"`    // text for the agent or to be spoken
	Sentiment *float64        `json:"sentiment,omitempty"` // from -1 to 1; nil if unknown
	Data      json.RawMessage `json:"data,omitempty"`      // additional data
}

// Bounds of a bundle, in bytes unless noted.
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
	mostAtOnce      = 4 // concurrently running skills
)

// Errors that callers distinguish.
var (
	// ErrUnknown is wrapped by the error for an unknown skill.
	ErrUnknown = errors.New("there is no such skill")
	// ErrBusy is returned while too many skills are running.
	ErrBusy = errors.New("too many skills are at work; wait for one to end")
	// ErrTrust is wrapped by the errors of bundles that are not trusted.
	ErrTrust = errors.New("the skill is not trusted")
	// ErrArguments is wrapped by the errors of arguments that do not fit.
	ErrArguments = errors.New("the arguments do not fit")
	// ErrHidden is returned to another program for a skill that is not exposed.
	ErrHidden = errors.New("other programs may use the skills alone whose manifest has mcpExposed")
	// ErrElsewhere is wrapped by the errors for skills that only programs that show the agent implement.
	ErrElsewhere = errors.New("this skill is not done")
	// ErrDenied is returned to a stranger.
	ErrDenied = errors.New("a robot that nobody has adopted may not do that; perch robot adopt ROBOT adopts it")
)

// wordOfName matches the names of skills and servers.
var wordOfName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`) })

// toolName matches tool names that every model accepts.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) })

func named(name string) bool { return len(name) <= mostNameLength && wordOfName().MatchString(name) }
