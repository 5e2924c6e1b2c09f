// Package limit defines how much is accepted from a robot, a skin, a page, a model's server,
// another program or a file of the owner. Larger texts and messages are refused, or cut if
// they are only displayed. Sizes are in bytes.
package limit

import "time"

// Texts.
const (
	Word         = 64       // an id, a state, a name in one word
	ID           = 128      // an id created by another program
	Name         = 200      // a name, a title
	Session      = 512      // a program's name for a talk
	Line         = 1000     // a sentence, a detail, a fact, an address
	Text         = 2000     // typed to a robot, or said by an action
	Said         = 4000     // said or answered in one turn
	Data         = 4 << 10  // the data of an event, a small form
	Result       = 8 << 10  // the result of a tool, the schema of its arguments
	Question     = 16 << 10 // of a program in one turn
	Instructions = 32 << 10 // a persona, the arguments of a tool
)

// Bodies, messages and files.
const (
	Body    = 64 << 10  // a request; a message of a robot
	List    = 256 << 10 // a list; an MQTT packet; everything a model writes in a turn
	File    = 1 << 20   // a file of the owner; a line or a list of an engine
	Message = 4 << 20   // a picture; a message of a program on this network
	Answer  = 16 << 20  // an answer of an engine; the files of a skill
	Drained = 32 << 20  // read of a refused body, so that its sender reads the error
)

// Counts.
const (
	Turns   = 4   // answered at a time for one kind of program
	Readers = 64  // of one event stream
	Tools   = 256 // used in one turn
	Calls   = 64  // of tools, in one message of a model
	Talks   = 64  // with sessions in another program
	Named   = 8   // listed in a sentence
	Tries   = 5   // of a request, each without what the server refused
)

// Texts in letters.
const (
	Called = 60   // the name of a character
	Spoken = 4096 // what a synthesizer is given at once; the least that OpenAI's models take
)

// Tokens is how many an owner may let a model write, or remember.
const Tokens = 100_000

// Moment is how long a turn waits in all for a server that asks for a moment. A person stands
// in front of the robot, and there may be another brain in the list.
const Moment = 2 * time.Second

// Restart returns how long a program that has ended so many times in a row is not started
// again, or a server not connected again: a second, twice as long each time, at most a minute.
func Restart(failures int) time.Duration { return min(time.Second<<min(failures, 10), time.Minute) }

// First returns the key of the smallest value by compare, which is to be evicted if a map is
// full. Of equal values any may be chosen. It returns the zero key for an empty map.
func First[K comparable, V any](m map[K]V, compare func(a, b V) int) (first K) {
	found := false
	for key, value := range m {
		if !found || compare(value, m[first]) < 0 {
			first, found = key, true
		}
	}
	return first
}
