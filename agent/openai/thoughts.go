package openai

import "strings"

// The tags that models put around what they think, where the server leaves
// them in the text.
var (
	opening = []string{"<think>", "<thinking>"}
	closing = []string{"</think>", "</thinking>"}
)

// thoughts takes a model's thinking out of its words, however the tags are
// split. A closing tag without an opening one is only the tag: some templates
// open it in the prompt, and by then what came before has been said.
type thoughts struct {
	inside bool
	held   string // may be the beginning of a tag
}

// take returns what of the text is to be said, as far as that is known.
func (t *thoughts) take(text string) string {
	text = t.held + text
	t.held = ""
	var said strings.Builder
	for {
		if t.inside {
			at, length := first(text, closing)
			if at < 0 {
				t.held = text[beginning(text, closing):]
				return said.String()
			}
			text, t.inside = text[at+length:], false
			continue
		}
		at, length := first(text, opening)
		end, endLength := first(text, closing)
		switch {
		case at >= 0 && (end < 0 || at < end):
			said.WriteString(text[:at])
			text, t.inside = text[at+length:], true
		case end >= 0:
			said.WriteString(text[:end])
			text = text[end+endLength:]
		default:
			keep := min(beginning(text, opening), beginning(text, closing))
			said.WriteString(text[:keep])
			t.held = text[keep:]
			return said.String()
		}
	}
}

// rest is what was held back and turned out to be no tag.
func (t *thoughts) rest() string {
	if t.inside {
		return ""
	}
	rest := t.held
	t.held = ""
	return rest
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
