// Package skill implements the skills of agents: bundles of instructions and tools that an
// owner puts into a folder, and a few built-in skills. It checks which bundles are trusted,
// loads them in the order of their dependencies, and performs skills. A bundle that is
// invalid, not trusted or lacks a dependency is not loaded, see [Refusal].
//
// A Library is immutable and safe for concurrent use. It starts no goroutines: skills run
// on the goroutines of their callers.
package skill

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"sync"
	"time"

	"perch/agent/thinker"
	"perch/device"
	"perch/event"
)

// Skill is a skill of a bundle, or a built-in one.
type Skill struct {
	Name         string
	Version      string              // such as "1.2.0"; empty means 0.0.0
	Description  string              // one line for the model
	Instructions string              // Markdown for the prompt; may be empty
	Gesture      string              // gesture at the start, such as "wave"; may be empty
	Voice        string              // text to speak at the end (see fillPattern); may be empty
	Exposed      bool                // whether other programs may call the skill over MCP, as skill_NAME
	Input        json.RawMessage     // JSON Schema of the arguments; if empty, the schema of the handler applies
	Sentences    map[string][]string // sentences that invoke the skill, in the grammar of the reflex brain; key: language
	Slots        map[string]string   // names of arguments by the names of slots in Sentences, where these differ
	Tools        []Tool
	Needs        map[string]string // version ranges of the dependencies; key: name of the skill
	Handler      string            // name of the tool that implements the skill; if empty, a bundle's skill only gestures and speaks
	Servers      map[string]string // addresses of MCP servers; key: Tool.Server
	Folder       string            // folder of the bundle; empty for a built-in skill
	Digest       string            // digest of the bundle, "sha256:" and hex
	Signature    *Signature        // nil if the bundle is not signed

	builtin func(*Library, *performance) (Result, error) // nil for a bundle
}

// Tool is a tool of a skill. It is implemented by an HTTP endpoint or an MCP server;
// exactly one of URL and Server is set.
type Tool struct {
	thinker.Tool
	URL    string // endpoint that receives {skill, tool, args, agentId} by POST
	Server string // key of an MCP server in Skill.Servers
}

// Call is a request to perform a skill.
type Call struct {
	Agent   string // ID of the character that performs the skill
	Robot   device.ID
	Session string
	Skill   string          // name of the skill
	Args    json.RawMessage // a JSON object; may be empty
	Now     time.Time
	// Language is the language of the output as a BCP 47 tag; empty means the configured language.
	Language string
	// Untrusted limits the call to built-in skills other than sign-action.
	Untrusted bool
	// Exposed marks a call by another program, such as a viewer. It is limited to skills
	// with Skill.Exposed.
	Exposed bool
}

// by returns the field By of the events about the call.
func (c Call) by() string {
	if c.Exposed {
		return event.ByViewer
	}
	return ""
}

// Result is the result of a skill.
type Result struct {
	Success   bool            `json:"success"`
	Output    string          `json:"output,omitempty"`    // text for the agent or to speak
	Sentiment *float64        `json:"sentiment,omitempty"` // from -1 to 1; nil if unknown
	Data      json.RawMessage `json:"data,omitempty"`      // any JSON
	Speech    string          `json:"-"`                   // Skill.Voice with its variables filled in; may be empty
}

// Spoken returns the text that people hear: Speech, or else Output.
func (r Result) Spoken() string { return cmp.Or(r.Speech, r.Output) }

// Limits of bundles.
const (
	maxSkills       = 50
	maxTools        = 20 // of one skill
	maxFiles        = 200
	maxDescription  = 500 // bytes
	maxPattern      = 500 // bytes of Skill.Voice
	maxSentences    = 20  // in one language; also the maximum number of slots
	maxDependencies = 20
	maxNameLength   = 40 // bytes
	maxServers      = 4
	maxRunning      = 4 // concurrently running skills
)

// Errors that callers distinguish.
var (
	// ErrUnknown is wrapped by the error for an unknown skill.
	ErrUnknown = errors.New("there is no such skill")
	// ErrVersion is wrapped by the error for a skill whose version is outside a range.
	ErrVersion = errors.New("the installed version is")
	// ErrBusy is returned while too many skills are running.
	ErrBusy = errors.New("too many skills are running; wait for one to end")
	// ErrTrust is wrapped by the errors for bundles that are not trusted.
	ErrTrust = errors.New("the skill is not trusted")
	// ErrArguments is wrapped by the errors for invalid arguments.
	ErrArguments = errors.New("the arguments are invalid")
	// ErrHidden is returned for a call by another program if the skill is not exposed.
	ErrHidden = errors.New("other programs may use only skills with mcpExposed in their manifest")
	// ErrElsewhere is wrapped by the errors for skills that only viewers implement.
	ErrElsewhere = errors.New("this skill cannot be performed")
	// ErrDenied is returned by Perform for an untrusted call of a bundle's skill or of
	// sign-action, and by Run for any untrusted turn.
	ErrDenied = errors.New("only an adopted robot may do that; run perch robot adopt ROBOT")
)

// nameFormat matches the names of skills, gestures and servers.
var nameFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`) })

// toolNameFormat matches the tool names that all models accept.
var toolNameFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) })

// variableFormat matches a variable in Skill.Voice, such as {{name}}.
var variableFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{.*?\}\}`) })

// isName reports whether name is a valid name of a skill or a gesture.
func isName(name string) bool { return len(name) <= maxNameLength && nameFormat().MatchString(name) }
