package modeltext

import (
	"slices"
	"strings"
	"unicode"
)

// mark is a bracketed word that models write for programs: <think>, </tool_call>, <|im_end|>,
// <｜tool▁calls▁begin｜>, ◁think▷, [TOOL_CALLS], <function=volume>, <invoke name="volume">.
type mark struct {
	text   string   // the whole mark, with its brackets
	words  []string // words of the mark's name, in lower case
	base   string   // the words, joined by underscores, without begin, end and similar words
	value  string   // what follows = or name= in the mark, in a call the name of the tool; or ""
	closes bool     // whether the mark ends an element
	token  bool     // whether the mark has bars or square brackets
	empty  bool     // whether the element has no content, such as <think/>
}

// markKind is what a mark does in a message.
type markKind int

// The kinds of marks.
const (
	markText    markKind = iota // not a mark but text in brackets, such as <b>
	markThought                 // begins or ends a thought
	markCall                    // begins or ends a call, or the result of a call
	markHeader                  // begins or ends a header, which names a role or channel
	markEnd                     // ends a message
	markToken                   // another control token
)

// maxMark is the maximum length of the text between a mark's brackets, in bytes.
const maxMark = 200

// readMark parses the mark at the beginning of text. n is the length of the mark in bytes, 0 if there is no mark,
// or -1 if more text is needed.
func readMark(text string) (m mark, n int) {
	opening, closing := "<", ">"
	switch {
	case strings.HasPrefix(text, "◁"):
		opening, closing = "◁", "▷"
	case strings.HasPrefix(text, "["):
		opening, closing = "[", "]"
	case !strings.HasPrefix(text, "<"):
		return m, 0
	}
	inner := text[len(opening):]
	at := strings.Index(inner[:min(len(inner), maxMark+len(closing))], closing)
	body := inner
	if at >= 0 {
		body = inner[:at]
	}
	if !mayBeMark(opening, body) {
		return m, 0
	}
	if at < 0 {
		return m, -1
	}
	return newMark(text[:len(opening)+at+len(closing)], body, opening == "["), len(opening) + at + len(closing)
}

// mayBeMark reports whether body, the text after the opening bracket, can be the beginning of a mark.
func mayBeMark(opening, body string) bool {
	if len(body) > maxMark || strings.ContainsAny(body, "\n<") {
		return false
	}
	name := strings.TrimLeft(body, "/|｜‖")
	if opening == "[" {
		return slices.ContainsFunc(squareMarks(), func(mark string) bool { return strings.HasPrefix(mark, name) })
	}
	first := []rune(name + "a")[0]
	return unicode.IsLetter(first) || first == '_' || first == '"' // Gemma's <|"|>
}

// squareMarks returns the names of marks in square brackets, which the templates of Mistral and Llama 2 have.
func squareMarks() []string {
	return []string{"TOOL_CALLS", "TOOL_RESULTS", "AVAILABLE_TOOLS", "ARGS", "CALL_ID", "THINK", "INST", "SYSTEM_PROMPT"}
}

// newMark parses a mark. body is the text between the brackets, and square reports whether the brackets are square.
func newMark(text, body string, square bool) mark {
	m := mark{text: text, token: square || strings.ContainsAny(body, "|｜‖"), empty: !square && strings.HasSuffix(body, "/")}
	m.closes = strings.HasPrefix(strings.TrimLeft(body, "|｜‖"), "/") || strings.HasSuffix(body, "|") && !strings.HasPrefix(body, "|")
	name := strings.Trim(namespace().ReplaceAllString("<"+body, "$1$2"), "</|｜‖ ")
	name, attributes, _ := strings.Cut(name, " ")
	name, m.value, _ = strings.Cut(name, "=")
	if _, value, found := strings.Cut(attributes, "name="); found && m.value == "" {
		m.value = value
	}
	m.value = strings.Trim(m.value, `"'/ `)
	m.words = strings.FieldsFunc(strings.ToLower(name), notLetter)
	var base []string
	for _, word := range m.words {
		switch word {
		case "end":
			m.closes = true
		case "begin", "start", "of", "section", "id":
		default:
			base = append(base, word)
		}
	}
	m.base = strings.Join(base, "_")
	return m
}

func notLetter(c rune) bool { return !unicode.IsLetter(c) }

// kindOf returns the kind of a mark. It depends on the reader's state and tools.
func (r *Reader) kindOf(m mark) markKind {
	has := func(words ...string) bool {
		return slices.ContainsFunc(m.words, func(w string) bool { return slices.Contains(words, w) })
	}
	is := func(names ...string) bool { return slices.Contains(names, strings.Join(m.words, "_")) }
	switch {
	case m.text == "":
		return markText
	case is("im_end", "eot_id", "eom_id", "eot", "eos", "end", "return", "end_of_turn", "turn", "endoftext", "end_of_text", "end_of_sentence") && (m.token || has("end", "eos")),
		is("call") && m.token, m.text == "</s>":
		return markEnd
	case m.empty:
		return markToken
	case isThought(m.words) && (m.token || !is("reason", "analysis", "reflection", "plan", "rationale") || r.state == stateThought):
		return markThought
	case m.token && m.text[0] != '[' && is("user", "system", "tool", "observation", "assistant", "developer"):
		return markHeader
	case has("tool", "tools", "function", "functions", "invoke", "toolcall", "toolcalls") && (m.token || len(m.words) > 1 || m.value != "" || is("tools", "toolcall", "toolcalls") || r.state == stateCall),
		is("python_tag"), m.token && is("calls"),
		len(m.words) > 0 && r.tools.has(strings.Trim(m.text, "</> ")):
		return markCall
	case m.token && has("channel", "role") || is("start", "im_start", "start_of_turn", "start_header_id", "end_header_id") && (m.token || m.base == "turn"):
		return markHeader
	case m.token && (m.text[0] != '[' || is("inst", "sys", "args", "system", "bos", "eos", "pad", "unk", "img")), is("bos", "pad", "unk", "s"):
		return markToken
	}
	return markText
}

// isThought reports whether one of the words means thinking.
func isThought(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "think", "thinking", "thinks", "thought", "thoughts", "reasoning", "reason", "reflection", "analysis", "scratchpad", "scratch", "monologue", "antthinking",
			"rationale", "plan":
			return true
		}
		return false
	})
}
