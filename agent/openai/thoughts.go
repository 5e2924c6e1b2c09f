package openai

import (
	"strings"

	"perch/limit"
	"perch/remote"
)

// The tags that models put around what they think, where the server leaves
// them in the text.
var (
	opening = []string{"<think>", "<thinking>"}
	closing = []string{"</think>", "</thinking>"}
)

const longestTag = len("</thinking>")

// thoughts takes a model's thinking out of its words, however the tags are
// split. Some templates open a thought in the prompt, so that its end stands
// alone in the text. Where that is to be expected the text is held until it has
// come; where it is not, what came before has been said by then.
type thoughts struct {
	inside   bool
	opened   bool   // a thought had its beginning
	held     string // may be the beginning of a tag
	expected bool   // the text may have begun inside, which is not known yet
	kept     []byte // of such a text
	unopened bool   // it had begun inside
}

// take returns what of the text is to be said, as far as that is known.
func (t *thoughts) take(text string) string {
	if t.expected {
		return t.unknown(text)
	}
	text = t.held + text
	t.held = ""
	var spoken strings.Builder
	for {
		if t.inside {
			at, length := first(text, closing)
			if at < 0 {
				t.held = text[beginning(text, closing):]
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
		case end >= 0: // of a model that writes beginnings it is one too many, and means nothing
			spoken.WriteString(text[:end])
			text, t.unopened = text[end+endLength:], t.unopened || !t.opened
		default:
			keep := min(beginning(text, opening), beginning(text, closing))
			spoken.WriteString(text[:keep])
			t.held = text[keep:]
			return spoken.String()
		}
	}
}

// unknown holds a text until a tag shows whether it has begun inside.
func (t *thoughts) unknown(text string) string {
	from := max(0, len(t.kept)-longestTag) // a tag that is split begins after it
	t.kept = append(t.kept, text...)
	end, length := first(string(t.kept[from:]), closing)
	begin, _ := first(string(t.kept[from:]), opening)
	switch {
	case begin >= 0 && (end < 0 || begin < end):
		return t.known()
	case end >= 0:
		rest := string(t.kept[from+end+length:])
		t.expected, t.kept, t.unopened = false, nil, true
		return t.take(rest)
	case len(t.kept) > limit.List: // more than is spoken at once
		t.expected, t.kept, t.inside = false, nil, true
	}
	return ""
}

// known says what was held: it was no thought.
func (t *thoughts) known() string {
	if !t.expected {
		return ""
	}
	kept := string(t.kept)
	t.expected, t.kept = false, nil
	return t.take(kept)
}

// rest is what was held back and turned out to be no tag. A text that was cut
// off before that was known is a thought.
func (t *thoughts) rest(cut bool) string {
	if t.expected && cut {
		return ""
	}
	spoken := t.known()
	if t.inside {
		return spoken
	}
	spoken += t.held
	t.held = ""
	return spoken
}

// first finds the earliest of the tags.
func first(text string, tags []string) (at, length int) {
	at = -1
	for _, tag := range tags {
		if i := strings.Index(text, tag); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(tag)
		}
	}
	return at, length
}

// beginning is where the text's end may be the beginning of a tag, or its length.
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

// manner is what is known of how a model's thoughts come.
type manner int

const (
	mannerUnknown manner = iota
	mannerPlain          // whole, apart, or not at all
	mannerOpened         // the prompt opens them
)

// expects reports whether a message may begin inside a thought. Before the
// first message only the model's name is known; Ollama keeps thoughts apart.
func (e *Engine) expects() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.manner == mannerUnknown && !e.native && !looksLikeOllama(e.base) {
		// Parts of the names of models whose templates open a thought.
		return mentions(strings.ToLower(e.o.Model), "-r1", "qwq", "think", "reason", "magistral", "-z1")
	}
	return e.manner == mannerOpened
}

// learnManner takes note of how the thoughts of a whole message came.
func (e *Engine) learnManner(a *answer) {
	e.mu.Lock()
	before := e.manner
	switch {
	case a.thoughts.unopened:
		e.manner = mannerOpened
	case before == mannerUnknown && (a.spoken > 0 || len(a.calls) > 0):
		e.manner = mannerPlain
	}
	news := e.manner == mannerOpened && before != mannerOpened
	e.mu.Unlock()
	if news {
		e.o.Log.Warn("the server leaves the end of the model's thoughts in its text; "+
			"what stands before it is not spoken from now on, and answers begin later; "+
			"a server that keeps thoughts apart answers sooner (llama.cpp --reasoning-format, vLLM --reasoning-parser)",
			"model", e.o.Model, "url", remote.Address(e.base))
	}
}
