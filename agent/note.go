package agent

import (
	"slices"
	"strings"
)

// A model writes a marker to have a fact remembered: [REMEMBER: the fact], optionally with
// a type, tags and importance before the colon, as in
// [REMEMBER feedback #lamp important: no bright light in the evening].
const (
	noteWord  = "remember"
	important = "important"
	maxHead   = 100 // bytes between noteWord and the colon
)

// ParseNote parses the content of a marker, without its brackets. ok is false if content is
// not the content of a marker. Tags after the first maxTags are dropped.
func ParseNote(content string) (n Note, ok bool) {
	head, fact, hasColon := strings.Cut(content, ":")
	words, ok := parseHead(head)
	if !hasColon || !ok {
		return Note{}, false
	}
	var tags []string
	for _, w := range words {
		tag, isTag := strings.CutPrefix(w, "#")
		switch {
		case isTag && len(tags) < maxTags:
			tags = append(tags, tag)
		case isTag:
		case w == important:
			n.Important = true
		case slices.Contains(MemoryTypes(), w):
			n.Type = w
		default:
			return Note{}, false
		}
	}
	n.Text, n.Tags = strings.Join(strings.Fields(fact), " "), strings.Join(tags, " ")
	return n, true
}

// IsNotePrefix reports whether content, the text after an opening bracket, may be the
// beginning of a marker. It returns false until content has a letter of the marker. content must not contain a
// colon.
func IsNotePrefix(content string) bool {
	content = strings.ToLower(strings.TrimLeft(content, " *_`"))
	if content != "" && len(content) < len(noteWord) {
		return strings.HasPrefix(noteWord, content)
	}
	words, ok := parseHead(content)
	for i, w := range words {
		incomplete := i == len(words)-1 && strings.HasSuffix(content, w)
		if !isHeadWord(w, incomplete) {
			return false
		}
	}
	return ok
}

// parseHead returns the words after noteWord in head, the part of a marker before the
// colon, in lower case. ok is false if head does not begin with noteWord, is too long or
// has an invalid tag.
func parseHead(head string) (words []string, ok bool) {
	head = strings.ToLower(strings.TrimLeft(head, " *_`"))
	rest, ok := strings.CutPrefix(head, noteWord)
	if !ok || len(rest) > maxHead || rest != "" && rest[0] != ' ' {
		return nil, false
	}
	words = strings.Fields(rest)
	for _, w := range words {
		if tag, isTag := strings.CutPrefix(w, "#"); isTag && tag != "" && (len(tag) > maxTag || CheckWord(tag) != nil) {
			return nil, false
		}
	}
	return words, true
}

// isHeadWord reports whether word is a tag, a type or important. If incomplete is true, the
// beginning of a type or of important is sufficient.
func isHeadWord(word string, incomplete bool) bool {
	return strings.HasPrefix(word, "#") || slices.ContainsFunc(append(MemoryTypes(), important), func(w string) bool {
		return w == word || incomplete && strings.HasPrefix(w, word)
	})
}
