package agent

import (
	"slices"
	"strings"
)

// The marker of a fact: [REMEMBER: the fact], optionally with its type, tags and
// importance: [REMEMBER feedback #lamp important: no bright light in the evening].
const (
	noteWord  = "remember"
	important = "important"
	mostHead  = 100 // bytes before the colon
)

// ReadNote parses the content of the square brackets around a fact.
func ReadNote(content string) (n Note, is bool) {
	head, fact, found := strings.Cut(content, ":")
	words, begun := markerHead(head)
	if !found || !begun {
		return Note{}, false
	}
	var tags []string
	for _, w := range words {
		tag, tagged := strings.CutPrefix(w, "#")
		switch {
		case tagged && len(tags) < mostTags:
			tags = append(tags, tag)
		case tagged:
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

// NoteBegun reports whether content, the beginning of a bracket's text, may become a note.
func NoteBegun(content string) bool {
	content = strings.ToLower(strings.TrimLeft(content, " *_`"))
	if content != "" && len(content) < len(noteWord) {
		return strings.HasPrefix(noteWord, content)
	}
	words, begun := markerHead(content)
	for i, w := range words {
		open := i == len(words)-1 && strings.HasSuffix(content, w)
		if !isMarkerWord(w, open) {
			return false
		}
	}
	return begun
}

// markerHead returns the words between REMEMBER and the colon, in lower case.
func markerHead(head string) (words []string, begun bool) {
	head = strings.ToLower(strings.TrimLeft(head, " *_`"))
	rest, begun := strings.CutPrefix(head, noteWord)
	if !begun || len(rest) > mostHead || rest != "" && rest[0] != ' ' {
		return nil, false
	}
	words = strings.Fields(rest)
	for _, w := range words {
		if tag, tagged := strings.CutPrefix(w, "#"); tagged && tag != "" && (len(tag) > mostTag || CheckWord(tag) != nil) {
			return nil, false
		}
	}
	return words, true
}

// isMarkerWord reports whether a word may stand before the colon, or, if it is open,
// whether it may begin such a word.
func isMarkerWord(word string, open bool) bool {
	return strings.HasPrefix(word, "#") || slices.ContainsFunc(append(MemoryTypes(), important), func(w string) bool {
		return w == word || open && strings.HasPrefix(w, word)
	})
}
