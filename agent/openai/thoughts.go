package openai

import (
	"strings"

	"perch/limit"
	"perch/remote"
)

// The tags that models put around thinking, if the server leaves them in the text.
var (
	opening = []string{"<think>", "<thinking>"}
	closing = []string{"</think>", "</thinking>"}
)

const longestTag = len("</thinking>")

// thoughts removes a model's thinking from its text, regardless of how tags are split.
// Some templates open a thought in the prompt, so that only its end appears in the
// text. If that is expected, the text is held until the end tag arrives; otherwise the
// text before it has already been spoken.
type thoughts struct {
	inside    bool
	opened    bool   // a thought had an opening tag
	partial   string // may be the beginning of a tag
	expected  bool   // the text may begin inside a thought
	undecided []byte // text held for that reason
	unopened  bool   // it did begin inside a thought
}

// filter returns the part of the text that is known to be spoken text.
func (t *thoughts) filter(text string) string {
	if t.expected {
		return t.unknown(text)
	}
	text = t.partial + text
	t.partial = ""
	var spoken strings.Builder
	for {
		if t.inside {
			at, length := first(text, closing)
			if at < 0 {
				t.partial = text[beginning(text, closing):]
				return spoken.String()
			}
			text, t.inside = text[at+length:], false
			continue
		}
		at, length := first(text, opening)
		end, endLength := first(text, closing)
		switch {
		case at >= 0 && (end < 0 || at < end):
			spoken.WriteString(text[:at])
			text, t.inside, t.opened = text[at+length:], true, true
		case end >= 0: // redundant for models that write opening tags; ignored
			spoken.WriteString(text[:end])
			text, t.unopened = text[end+endLength:], t.unopened || !t.opened
		default:
			keep := min(beginning(text, opening), beginning(text, closing))
			spoken.WriteString(text[:keep])
			t.partial = text[keep:]
			return spoken.String()
		}
	}
}

// unknown holds a text until a tag shows whether it began inside a thought.
func (t *thoughts) unknown(text string) string {
	from := max(0, len(t.undecided)-longestTag) // a split tag begins after it
	t.undecided = append(t.undecided, text...)
	end, length := first(string(t.undecided[from:]), closing)
	begin, _ := first(string(t.undecided[from:]), opening)
	switch {
	case begin >= 0 && (end < 0 || begin < end):
		return t.release()
	case end >= 0:
		rest := string(t.undecided[from+end+length:])
		t.expected, t.undecided, t.unopened = false, nil, true
		return t.filter(rest)
	case len(t.undecided) > limit.List: // longer than any spoken text
		t.expected, t.undecided, t.inside = false, nil, true
	}
	return ""
}

// release returns the held text, which was not a thought.
func (t *thoughts) release() string {
	if !t.expected {
		return ""
	}
	text := string(t.undecided)
	t.expected, t.undecided = false, nil
	return t.filter(text)
}

// rest returns held text that turned out not to be a tag. If the message was cut off
// before that was known, the text is assumed to be a thought.
func (t *thoughts) rest(cut bool) string {
	if t.expected && cut {
		return ""
	}
	spoken := t.release()
	if t.inside {
		return spoken
	}
	spoken += t.partial
	t.partial = ""
	return spoken
}

// first returns the position and length of the earliest of the tags.
func first(text string, tags []string) (at, length int) {
	at = -1
	for _, tag := range tags {
		if i := strings.Index(text, tag); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(tag)
		}
	}
	return at, length
}

// beginning returns where a partial tag at the text's end begins, or the text's length.
func beginning(text string, tags []string) int {
	from := strings.LastIndexByte(text, '<')
	if from < 0 {
		return len(text)
	}
	for _, tag := range tags {
		if strings.HasPrefix(tag, text[from:]) {
			return from
		}
	}
	return len(text)
}

// thoughtStyle is how a model's thoughts arrive.
type thoughtStyle int

const (
	styleUnknown thoughtStyle = iota
	stylePlain                // with both tags, in a separate field, or not at all
	styleOpened               // opened by the prompt
)

// expects reports whether a message may begin inside a thought. Before the first message
// this depends on the model's name; Ollama separates thoughts.
func (e *Engine) expects() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.thinking == styleUnknown && !e.native && !looksLikeOllama(e.base) {
		// Parts of the names of models whose templates open a thought.
		return mentions(strings.ToLower(e.o.Model), "-r1", "qwq", "think", "reason", "magistral", "-z1")
	}
	return e.thinking == styleOpened
}

// learnStyle records how the thoughts of a complete message arrived.
func (e *Engine) learnStyle(a *answer) {
	e.mu.Lock()
	before := e.thinking
	switch {
	case a.thoughts.unopened:
		e.thinking = styleOpened
	case before == styleUnknown && (a.spoken > 0 || len(a.calls) > 0):
		e.thinking = stylePlain
	}
	news := e.thinking == styleOpened && before != styleOpened
	e.mu.Unlock()
	if news {
		e.o.Log.Warn("the server leaves the end of the model's thoughts in its text; "+
			"what stands before it is not spoken from now on, and answers begin later; "+
			"a server that keeps thoughts apart answers sooner (llama.cpp --reasoning-format, vLLM --reasoning-parser)",
			"model", e.o.Model, "url", remote.Address(e.base))
	}
}
