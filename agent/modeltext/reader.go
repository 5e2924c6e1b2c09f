// Package modeltext separates what a language model writes for people from what it writes for
// programs: thoughts, calls of tools that a server has left in the text, and control tokens of the
// model's template. It knows classes of such marks rather than models: a mark is recognized by the
// words in it ("think", "tool_call", "channel"), whichever brackets are around it.
package modeltext

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tool is a tool that was offered to the model.
type Tool struct {
	Name   string
	Schema json.RawMessage // a JSON Schema object
}

// Call is a call of a tool that the model has written into its text.
type Call struct {
	Name      string // of an offered tool if Offered, and otherwise as the model wrote it
	Arguments json.RawMessage
	Offered   bool
}

// maxUndecided bounds text that is held until it is known what it is, and a call, in bytes.
const maxUndecided = 16 << 10

// Reader reads a message while it is being written. The result does not depend on how the text is
// split. It is not safe for concurrent use.
type Reader struct {
	tools  tools
	state  state
	part   string // of a letter whose other bytes are missing
	held   string // text whose meaning is not clear yet
	midway bool   // the text is within a line
	begun  bool   // the message has text or a mark
	spoken strings.Builder

	// literal is the length of the text, in bytes, at the beginning of held in which no bracket begins a call:
	// one before it has no end.
	literal int

	raw     string         // of the state: a call, a header, or what may be a thought
	base    string         // of the mark that began the state
	tool    string         // the tool that the mark or the header names
	nested  map[string]int // marks that are open within a call, by their base
	calls   []Call
	opened  bool // a thought had a mark at its beginning
	without bool // one had none
}

// state is what the text is at the moment.
type state int

const (
	stateText    state = iota
	stateMaybe         // text, or a thought that the prompt has opened
	stateThought       // dropped
	stateCall
	stateHeader // who writes, and for whom, up to the end of the line or the next mark
)

// NewReader returns a reader of one message. If thinking is set, the text may begin inside a thought;
// it is then held until a mark shows whether it did.
func NewReader(offered []Tool, thinking bool) *Reader {
	r := &Reader{tools: newTools(offered)}
	if thinking {
		r.state = stateMaybe
	}
	return r
}

// Unopened reports whether the text had the end of a thought without its beginning.
func (r *Reader) Unopened() bool { return r.without }

// Calls returns the calls that have been read since the last time.
func (r *Reader) Calls() []Call {
	calls := r.calls
	r.calls = nil
	return calls
}

// Write reads text of the model, and returns what of it is known to be for people.
func (r *Reader) Write(text string) string {
	text = r.part + text
	whole := len(text)
	for whole > 0 && len(text)-whole < utf8.UTFMax && !utf8.RuneStart(text[whole-1]) {
		whole--
	}
	if whole > 0 && !utf8.FullRuneInString(text[whole-1:]) {
		whole--
	} else {
		whole = len(text)
	}
	r.held, r.part = r.held+text[:whole], text[whole:]
	return r.read(false)
}

// Release returns the text that was held because it might have been a thought: the server sends
// thoughts apart.
func (r *Reader) Release() string {
	if r.state != stateMaybe {
		return ""
	}
	r.held, r.raw, r.state = r.raw+r.held, "", stateText
	return r.read(false)
}

// Flush ends the message, and returns the rest of what is for people. Where a message that was cut
// off may still have been a thought, it counts as one, and its last call does not count.
func (r *Reader) Flush(cut bool) string {
	r.part = "" // a letter that is not complete
	spoken := r.read(true)
	switch {
	case cut:
	case r.state == stateMaybe:
		r.held, r.raw, r.state = r.raw, "", stateText
		spoken += r.read(true)
	case r.state == stateCall:
		r.endCall()
	}
	r.state, r.held, r.raw, r.midway, r.begun, r.literal = stateText, "", "", false, false, 0
	return spoken
}

// read reads as much of the held text as can be decided.
func (r *Reader) read(end bool) string {
	for r.held != "" {
		if !r.begun && r.state == stateText && !r.onBeginning(end) {
			return r.takeSpoken()
		}
		if r.base == strippedBase && r.state == stateThought {
			if !r.inStripped(end) {
				return r.takeSpoken()
			}
			continue
		}
		n := r.plain()
		if n == 0 {
			m, size := readMark(r.held)
			kind := r.kindOf(m)
			switch {
			case size < 0 && !end:
				return r.takeSpoken()
			case size > 0 && kind != markText:
				r.consume(size)
				r.onMark(m, kind)
				continue
			}
			if _, n = utf8.DecodeRuneInString(r.held); r.state == stateText && r.literal == 0 {
				var calls []Call
				if n, calls = r.structure(end); n < 0 {
					return r.takeSpoken()
				}
				if len(calls) > 0 {
					r.calls = append(r.calls, calls...)
					r.consume(n)
					continue
				}
			}
		}
		r.onText(r.consume(n))
	}
	return r.takeSpoken()
}

// consume removes the first n bytes of the held text, and returns them.
func (r *Reader) consume(n int) string {
	text := r.held[:n]
	r.held, r.literal = r.held[n:], max(r.literal-n, 0)
	return text
}

// strippedBase is the base of a Harmony message whose control tokens a server has removed.
const strippedBase = "stripped"

// onBeginning handles what a message may only begin with: a recipient, where the prompt of Harmony has
// opened the header, and "analysis" before a thought, where a server has removed Harmony's control tokens.
// It returns false if more text is needed.
func (r *Reader) onBeginning(end bool) bool {
	const recipient, analysis = "to=functions.", "analysis"
	text := strings.TrimLeft(r.held, " ")
	if !end && len(text) <= len(recipient) && (strings.HasPrefix(recipient, text) || strings.HasPrefix(analysis, text)) {
		return false
	}
	r.begun = true
	next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(text, analysis))
	switch {
	case strings.HasPrefix(text, recipient):
		r.enter(stateHeader, mark{})
	case strings.HasPrefix(text, analysis) && (unicode.IsUpper(next) || next == '\''):
		r.opened = true
		r.enter(stateThought, mark{base: strippedBase})
	}
	return true
}

// inStripped drops a thought up to the header of the next message, which has no control tokens either. It
// returns false if more text is needed.
func (r *Reader) inStripped(end bool) bool {
	const final, call = "assistantfinal", "assistantcommentary to=functions."
	for _, header := range []string{final, call} {
		at := strings.Index(r.held, header)
		if at < 0 {
			continue
		}
		r.consume(at + len(header))
		if r.state = stateText; header == call {
			r.enter(stateCall, mark{})
		}
		return true
	}
	if end {
		r.held = ""
	} else if keep := len(call); len(r.held) > keep {
		r.consume(len(r.held) - keep)
	}
	return end
}

// takeSpoken returns the text for people since the last call.
func (r *Reader) takeSpoken() string {
	text := r.spoken.String()
	r.spoken.Reset()
	return text
}

// plain returns the length of the text before the next letter that may begin a mark, or a call.
func (r *Reader) plain() int {
	midway := r.midway
	for i, c := range r.held {
		switch {
		case c == '<' || c == '[' || c == '◁':
			return i
		case r.state != stateText:
			if c == '\n' && r.state == stateHeader {
				return i + 1
			}
			continue
		case c == '{' || c == '`':
			return i
		case c == '\n':
			midway = false
		case !midway && !unicode.IsSpace(c):
			if r.tools.mayBegin(r.held[i:]) {
				return i
			}
			midway = true
		}
	}
	return len(r.held)
}

// onText handles text without marks.
func (r *Reader) onText(text string) {
	switch r.state {
	case stateText:
		r.spoken.WriteString(text)
		line := text[strings.LastIndexByte(text, '\n')+1:]
		r.midway = strings.TrimSpace(line) != "" || r.midway && len(line) == len(text)
	case stateMaybe:
		if r.raw += text; len(r.raw) > maxUndecided { // longer than anything that is spoken
			r.state, r.raw = stateThought, ""
		}
	case stateCall:
		r.append(text)
	case stateHeader:
		r.append(text)
		if strings.HasSuffix(text, "\n") {
			r.endHeader()
		}
	}
}

func (r *Reader) append(text string) {
	if len(r.raw)+len(text) <= maxUndecided {
		r.raw += text
	}
}

// onMark handles a mark that is not text for people.
func (r *Reader) onMark(m mark, kind markKind) {
	switch r.state {
	case stateMaybe:
		if kind != markThought {
			r.onText(m.text)
			return
		}
		if m.closes {
			r.state, r.raw, r.without = stateText, "", true
			return
		}
		r.held, r.raw, r.state = r.raw+m.text+r.held, "", stateText
	case stateThought:
		switch {
		case kind == markThought && m.closes, kind == markHeader && m.closes, kind == markEnd && r.base == "channel":
			r.state = stateText
		case kind == markHeader && r.base == "channel" && isRole(m.base):
			r.onRole(m.base)
		case kind == markHeader && r.base == "channel":
			r.enter(stateHeader, m)
		}
	case stateCall:
		r.inCall(m, kind)
	case stateHeader:
		switch {
		case m.base == "message" || kind == markHeader && m.closes:
			r.endHeader()
		case kind == markHeader:
			_, recipient, found := strings.Cut(r.raw, "to=")
			if r.enter(stateHeader, m); found {
				r.raw = "to=" + recipient + " "
			}
		case kind == markEnd:
			r.state = stateText
		default:
			r.append(" ")
		}
	case stateText:
		switch {
		case kind == markThought && m.closes:
			r.without = r.without || !r.opened // it has been spoken already
		case kind == markThought:
			r.opened = true
			r.enter(stateThought, m)
		case kind == markCall && !m.closes:
			r.enter(stateCall, m)
			r.raw = m.text
		case kind == markHeader && isRole(m.base):
			r.onRole(m.base)
		case kind == markHeader && !m.closes:
			r.enter(stateHeader, m)
		}
	}
}

// isRole reports whether a word is the role of a message.
func isRole(word string) bool {
	switch word {
	case "user", "system", "tool", "observation", "developer", "human", "assistant", "model", "bot":
		return true
	}
	return false
}

// onRole starts a message of a role. A model that writes on after its own message invents those of others,
// which are dropped as thoughts are.
func (r *Reader) onRole(role string) {
	switch role {
	case "assistant", "model", "bot":
		r.state, r.raw = stateText, ""
	default:
		r.enter(stateThought, mark{base: "channel"})
	}
}

// enter changes the state at a mark.
func (r *Reader) enter(s state, m mark) {
	r.state, r.base, r.tool, r.raw, r.nested = s, m.base, m.value, "", map[string]int{}
}

// inCall handles a mark within a call.
func (r *Reader) inCall(m mark, kind markKind) {
	switch {
	case kind == markEnd:
		r.endCall()
	case kind == markCall && m.closes && r.nested[m.base] == 0:
		r.append(m.text)
		r.endCall()
	case kind == markCall && m.closes:
		r.nested[m.base]--
		r.append(m.text)
	case kind == markCall && m.base == r.base: // the end of the one before is missing
		r.endCall()
		r.enter(stateCall, m)
		r.raw = m.text
	case kind == markCall:
		r.nested[m.base]++
		r.append(m.text)
	default:
		r.append(m.text)
	}
}

// endCall reads what a call's region holds. One without a call that can be read counts as a call of no tool.
func (r *Reader) endCall() {
	if !isResult(r.base) {
		calls := r.tools.calls(r.raw, r.tool)
		if len(calls) == 0 {
			calls = []Call{{Name: "?"}}
		}
		r.calls = append(r.calls, calls...)
	}
	r.state, r.raw = stateText, ""
}

// isResult reports whether a mark is around the result of a tool, which a model has invented or echoed.
func isResult(base string) bool {
	for _, word := range []string{"response", "result", "output", "observation", "available"} {
		if strings.Contains(base, word) {
			return true
		}
	}
	return false
}

// endHeader reads a header: "assistant", "analysis", "commentary to=functions.volume".
func (r *Reader) endHeader() {
	header := strings.ToLower(r.raw)
	_, to, _ := strings.Cut(r.raw, "to=")
	switch tool := strings.Fields(to); {
	case len(tool) > 0 && tool[0] == "assistant": // the result of a tool, invented
		r.onRole("tool")
	case len(tool) > 0:
		r.enter(stateCall, mark{base: r.base, value: tool[0]})
	case strings.ContainsFunc(header, unicode.IsLetter) && isThought(strings.FieldsFunc(header, notLetter)):
		r.opened = true
		r.enter(stateThought, mark{base: "channel"})
	default:
		role, _, _ := strings.Cut(strings.TrimSpace(header), " ")
		if !isRole(role) {
			role = "assistant"
		}
		r.onRole(role)
	}
}

// structure reads JSON, a fence or a line of Python that may be a call. n is the length of the call,
// or of text for people; it is -1 if more text is needed.
func (r *Reader) structure(end bool) (n int, calls []Call) {
	held := r.held[:min(len(r.held), maxUndecided)]
	whole := end || len(held) == maxUndecided
	body := strings.TrimLeft(held[1:], " \t\r\n")
	switch {
	case held[0] == '`':
		return r.fence(whole)
	case held[0] == '<':
		return 1, nil
	case strings.HasPrefix(held, "◁"):
		return len("◁"), nil
	case held[0] == '[' && body == "" && !whole:
		return -1, nil
	case held[0] == '{', held[0] == '[' && strings.HasPrefix(body, "{"):
		n = jsonEnd(held)
		switch {
		case n < 0 && whole && r.tools.looksLikeCall(held):
			return len(held), []Call{{Name: "?"}} // it was cut off
		case n > 0:
			if calls = r.tools.inJSON(held[:n], ""); len(calls) == 0 && !json.Valid([]byte(held[:n])) && r.tools.looksLikeCall(held[:n]) {
				calls = []Call{{Name: "?"}}
			}
		}
	default:
		n, calls = r.tools.python(held, whole)
	}
	switch {
	case n < 0 && !whole:
		return -1, nil
	case n < 0:
		r.literal = len(held)
	}
	if len(calls) == 0 {
		return 1, nil
	}
	return n, calls
}

// fence reads code between fences. It stays in the text unless it is a call.
func (r *Reader) fence(whole bool) (n int, calls []Call) {
	const fence = "```"
	switch {
	case strings.HasPrefix(fence, r.held) && !whole:
		return -1, nil
	case !strings.HasPrefix(r.held, fence) || r.midway:
		return 1, nil
	}
	body := r.held[len(fence):]
	if closing := strings.Index(body, fence); closing >= 0 {
		n, body = closing+2*len(fence), body[:closing]
	} else if !whole {
		return -1, nil
	} else {
		n = len(r.held)
	}
	language, code, _ := strings.Cut(body, "\n")
	if calls = r.tools.calls(code, ""); anyOffered(calls) || strings.Contains(language, "tool") || r.tools.looksLikeCall(code) {
		return n, calls
	}
	return n, nil
}

func anyOffered(calls []Call) bool {
	for _, c := range calls {
		if c.Offered {
			return true
		}
	}
	return false
}
