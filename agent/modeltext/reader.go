// Package modeltext separates the text that a language model writes for people from thoughts, from tool
// calls that the server has left in the text, and from control tokens of the model's template. Package
// thinker uses it to read the messages of models. A mark is a bracketed word that models write for programs.
// With few exceptions, the package has no rules for single models: it classifies each mark by its words,
// such as "think", "tool_call" or "channel", in any kind of brackets.
package modeltext

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tool is a tool that the model may call.
type Tool struct {
	Name   string
	Schema json.RawMessage // a JSON Schema object
}

// Call is a tool call in the text of a model.
type Call struct {
	Name      string          // name of the offered tool, or the name that the model wrote if Offered is false
	Arguments json.RawMessage // a JSON object; nil for the tool "?", see Reader.endCall
	Offered   bool            // whether the model may call the tool
}

// maxUndecided is the maximum length of a call, and of text that is held back because it may be a call, in bytes.
const maxUndecided = 16 << 10

// Reader reads a message while a model writes it. The result does not depend on how the text is split.
// A Reader is not safe for concurrent use.
type Reader struct {
	tools   tools
	state   state
	part    string          // bytes of an incomplete UTF-8 sequence at the end of the text
	held    string          // text that has not been interpreted yet
	midway  bool            // whether the current line has text before held
	begun   bool            // whether the message has text or a mark
	spoken  strings.Builder // text for people since takeSpoken
	thought strings.Builder // text of thoughts since Thoughts
	literal int             // number of bytes at the beginning of held where no bracket begins a call

	// The current call, header, thought or possible thought.
	raw    string         // text of the call, header or possible thought
	base   string         // base of the mark that began the call, header or thought
	tool   string         // name of the tool in this mark or in the header
	nested map[string]int // number of open marks within a call; key: base of the marks
	other  bool           // whether the text in stateThought is the message of another role, which is dropped

	calls    []Call // calls since the previous call of Calls
	opened   bool   // whether a thought had a mark at its beginning
	unopened bool   // whether a thought had a mark at its end only
}

// state is the kind of the current text.
type state int

const (
	stateText    state = iota // text for people
	stateMaybe                // text for people, or a thought that the prompt has begun
	stateThought              // a thought, or a message of another role, which is dropped
	stateCall                 // a tool call
	stateHeader               // author and recipient of a message, up to the end of the line or the next mark
)

// NewReader returns a reader of one message of a model that may call the offered tools. If thinking is
// true, the text may begin inside a thought. The reader then holds the text back until a mark shows whether
// the text began inside a thought; text of more than maxUndecided bytes counts as a thought.
func NewReader(offered []Tool, thinking bool) *Reader {
	r := &Reader{tools: newTools(offered)}
	if thinking {
		r.state = stateMaybe
	}
	return r
}

// Unopened reports whether the text had the end of a thought without its beginning.
func (r *Reader) Unopened() bool { return r.unopened }

// Calls returns the calls that were read since the previous call of Calls.
func (r *Reader) Calls() []Call {
	calls := r.calls
	r.calls = nil
	return calls
}

// Thoughts returns the text of thoughts that was read since the previous call of Thoughts. A blank line ends each
// thought.
func (r *Reader) Thoughts() string {
	text := r.thought.String()
	r.thought.Reset()
	return text
}

// think adds text to the thoughts. It drops the text if the thoughts since the previous call of Thoughts
// would become too long.
func (r *Reader) think(text string) {
	if r.thought.Len()+len(text) <= maxUndecided {
		r.thought.WriteString(text)
	}
}

func (r *Reader) endThought() {
	r.think("\n\n")
	r.state = stateText
}

// Write reads more of the message, and returns the text that is now certain to be for people.
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

// Release returns the text that is held back as a possible thought. Callers use it when a server sends
// thoughts in a separate field, so that the text contains none.
func (r *Reader) Release() string {
	if r.state != stateMaybe {
		return ""
	}
	r.held, r.raw, r.state = r.raw+r.held, "", stateText
	return r.read(false)
}

// Flush ends the message, and returns the rest of the text for people. cut reports whether the message was cut
// off. In this case a possible thought counts as a thought, and an incomplete call is dropped.
func (r *Reader) Flush(cut bool) string {
	r.part = ""
	spoken := r.read(true)
	switch {
	case cut && r.state == stateMaybe:
		r.think(r.raw)
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

// read interprets the held text as far as its meaning is certain, and returns the text for people. If end is
// true, no more text follows.
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

// consume removes the first n bytes of held, and returns them.
func (r *Reader) consume(n int) string {
	text := r.held[:n]
	r.held, r.literal = r.held[n:], max(r.literal-n, 0)
	return text
}

// strippedBase is the base of a Harmony message whose control tokens the server has removed.
const strippedBase = "stripped"

// onBeginning handles the beginning of a message in Harmony, the template of gpt-oss. If the prompt ends within
// a header, the message begins with the recipient that belongs to the header. If the server has removed the
// control tokens, a thought begins with the word "analysis". onBeginning returns false if more text is needed.
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
		r.consume(len(r.held) - len(text) + len(analysis))
		r.enter(stateThought, mark{base: strippedBase})
	}
	return true
}

// inStripped reads a thought of a Harmony message without control tokens, up to the header of the next message. It
// returns false if more text is needed.
func (r *Reader) inStripped(end bool) bool {
	const final, call = "assistantfinal", "assistantcommentary to=functions."
	for _, header := range []string{final, call} {
		at := strings.Index(r.held, header)
		if at < 0 {
			continue
		}
		r.think(r.consume(at))
		r.consume(len(header))
		if r.endThought(); header == call {
			r.enter(stateCall, mark{})
		}
		return true
	}
	if end {
		r.think(r.consume(len(r.held)))
	} else if keep := len(call); len(r.held) > keep {
		r.think(r.consume(len(r.held) - keep))
	}
	return end
}

// takeSpoken returns and clears the text for people.
func (r *Reader) takeSpoken() string {
	text := r.spoken.String()
	r.spoken.Reset()
	return text
}

// plain returns the length of the held text before the next character at which a mark or a call may begin. In a
// header it is the length up to the end of the line, if that comes first.
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

// onText handles text without marks, depending on the state.
func (r *Reader) onText(text string) {
	switch r.state {
	case stateText:
		r.spoken.WriteString(text)
		line := text[strings.LastIndexByte(text, '\n')+1:]
		r.midway = strings.TrimSpace(line) != "" || r.midway && len(line) == len(text)
	case stateMaybe:
		if r.raw += text; len(r.raw) > maxUndecided { // too long for a spoken reply, so it is a thought
			r.think(r.raw)
			r.state, r.raw = stateThought, ""
		}
	case stateThought:
		if !r.other {
			r.think(text)
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

// append adds text to the current call or header, and drops text beyond maxUndecided.
func (r *Reader) append(text string) {
	if len(r.raw)+len(text) <= maxUndecided {
		r.raw += text
	}
}

// onMark handles a mark of any kind except markText.
func (r *Reader) onMark(m mark, kind markKind) {
	switch r.state {
	case stateMaybe:
		if kind != markThought {
			r.onText(m.text)
			return
		}
		if m.closes {
			r.think(r.raw)
			r.endThought()
			r.raw, r.unopened = "", true
			return
		}
		r.held, r.raw, r.state = r.raw+m.text+r.held, "", stateText
	case stateThought:
		switch {
		case kind == markThought && m.closes, kind == markHeader && m.closes, kind == markEnd && r.base == "channel":
			r.endThought()
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
			r.unopened = r.unopened || !r.opened
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

// onRole starts a message with this role. If the role is not the assistant's, the model has invented the
// message, which is dropped.
func (r *Reader) onRole(role string) {
	switch role {
	case "assistant", "model", "bot":
		r.state, r.raw = stateText, ""
	default:
		r.enter(stateThought, mark{base: "channel"})
		r.other = true
	}
}

// enter changes to a state that a mark begins.
func (r *Reader) enter(s state, m mark) {
	r.state, r.base, r.tool, r.raw, r.nested, r.other = s, m.base, m.value, "", map[string]int{}, false
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
	case kind == markCall && m.base == r.base: // the mark at the end of the previous call is missing
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

// endCall ends a call and parses its text. The result of a tool is dropped. Other text that is not a valid call
// becomes a call of the tool "?", which is not offered.
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

// isResult reports whether the mark with this base begins the result of a tool, which the model has invented or
// repeated.
func isResult(base string) bool {
	return slices.ContainsFunc([]string{"response", "result", "output", "observation", "available"},
		func(word string) bool { return strings.Contains(base, word) })
}

// endHeader parses a header, such as "assistant", "analysis" or "commentary to=functions.volume".
func (r *Reader) endHeader() {
	header := strings.ToLower(r.raw)
	_, to, _ := strings.Cut(r.raw, "to=")
	switch tool := strings.Fields(to); {
	case len(tool) > 0 && tool[0] == "assistant": // an invented result of a tool
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

// structure parses the beginning of held if it is JSON, a code block or a line of Python, which may be calls. n is
// the length of the calls, or of text for people if calls is empty. n is -1 if more text is needed.
func (r *Reader) structure(end bool) (n int, calls []Call) {
	held := r.held[:min(len(r.held), maxUndecided)]
	whole := end || len(held) == maxUndecided
	body := strings.TrimLeft(held[1:], " \t\r\n")
	switch {
	case held[0] == '`':
		return r.codeBlock(whole)
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
			return len(held), []Call{{Name: "?"}} // the message ends within the call
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

// codeBlock parses a code block between three backticks. The code is text for people unless it is a call. The
// results are those of structure; whole reports whether no more text follows.
func (r *Reader) codeBlock(whole bool) (n int, calls []Call) {
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
	if calls = r.tools.calls(code, ""); slices.ContainsFunc(calls, func(c Call) bool { return c.Offered }) || strings.Contains(language, "tool") || r.tools.looksLikeCall(code) {
		return n, calls
	}
	return n, nil
}
