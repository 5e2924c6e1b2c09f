// Package limit defines the maximum sizes and counts of input from robots, skins, web pages,
// servers of models, other programs and the owner's files. Larger input is refused, or truncated
// if it is only displayed.
package limit

import "time"

// Maximum sizes of texts, in bytes.
const (
	Word         = 64       // an ID, a state, a name of one word
	ID           = 128      // an ID created by another program
	Name         = 200      // a name, a title
	Session      = 512      // another program's ID of a conversation
	Line         = 1000     // a sentence, a detail, a fact, an address
	Text         = 2000     // a text typed to a robot, or spoken by an action
	Said         = 4000     // an utterance, or the reply of a turn
	Data         = 4 << 10  // the data of an event, a small form
	Result       = 8 << 10  // the result of a tool, the schema of its arguments
	Question     = 16 << 10 // the prompt that another program sends for a turn
	Instructions = 32 << 10 // a persona, the arguments of a tool
)

// Maximum sizes of bodies, messages and files, in bytes.
const (
	Body    = 64 << 10  // a request; a message from a robot
	List    = 256 << 10 // a list; an MQTT packet; all output of a model in a turn
	File    = 1 << 20   // a file of the owner; a line or a list from an engine
	Message = 4 << 20   // a picture; a message from a program on this network
	Answer  = 16 << 20  // a response from an engine; the files of a skill
	Drained = 32 << 20  // how much of a refused body is read, since many clients read the error only after sending all
)

// Maximum counts.
const (
	Turns   = 4   // concurrent turns of all programs of one kind, such as skins
	Readers = 64  // readers of one event stream
	Tools   = 256 // tools offered in one turn
	Calls   = 64  // tool calls in one message of a model
	Talks   = 64  // sessions of another program, one for each conversation
	Named   = 8   // names listed in a sentence
	Tries   = 5   // attempts of a request; each attempt leaves out the parameters that the server has refused
)

// Maximum lengths of texts, in runes.
const (
	Called = 60   // the name of a character
	Spoken = 4096 // a text for one call of a synthesizer; the smallest limit of OpenAI's models
)

// Tokens is the maximum that an owner can configure for a model's output and for memory.
const Tokens = 100_000

// Moment is how long a turn waits in total before it repeats requests to servers that respond that they
// are busy. This time is short because a person is waiting, and because another brain may be configured.
const Moment = 2 * time.Second

// Restart returns the delay before a program is started again, or a server connected again, after a
// number of failures in a row: 1 s for 0 failures, doubled for each failure, at most a minute.
func Restart(failures int) time.Duration { return min(time.Second<<min(failures, 10), time.Minute) }

// First returns the key of the smallest value by compare. Callers use it to choose the entry to remove from
// a full map. If several values are equally small, it returns any of their keys, and for an empty map the
// zero key.
func First[K comparable, V any](m map[K]V, compare func(a, b V) int) (smallest K) {
	found := false
	for key, value := range m {
		if !found || compare(value, m[smallest]) < 0 {
			smallest, found = key, true
		}
	}
	return smallest
}
