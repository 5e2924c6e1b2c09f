package thinker

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/agent"
)

// bracket reads a tag, or the opening bracket of a link or picture, at the beginning of pending. It
// returns false if more text is needed.
func (s *Speech) bracket(end bool) bool {
	at := strings.IndexByte(s.pending, '[')
	inner := s.pending[at+1:]
	n := strings.IndexByte(inner, ']')
	content := inner
	if n >= 0 {
		content = inner[:n]
	}
	if note, is := agent.ParseNote(content); is {
		return s.remember(at, n, note, end)
	}
	switch {
	case n < 0 && agent.IsNotePrefix(content):
		if end {
			s.removeTag(at, len(s.pending))
		}
		return end
	case strings.ContainsRune(content, '\n'), len(content) > maxTag:
		return s.speakFirst()
	case n < 0:
		return end && s.speakFirst()
	}
	after := inner[n+1:]
	if after == "" && !end {
		return false
	}
	if strings.HasPrefix(after, "(") {
		s.drop(at + 1)
		return true
	}
	if !s.tag(content) {
		return s.speakFirst()
	}
	s.removeTag(at, at+1+n+1)
	return true
}

// removeTag removes the tag pending[start:end], and speaks the text before it: "" or "!".
func (s *Speech) removeTag(start, end int) {
	mark := s.pending[:start]
	s.drop(end)
	for _, r := range mark {
		s.emit(r)
	}
	s.gap = true
}

// maxNote is the maximum length of a fact in [REMEMBER: ...], in bytes.
const maxNote = 300

// remember adds a fact to the replies once its bracket is closed. The opening bracket is at
// pending[at], and the closing one n bytes after its content begins; n is -1 if it is missing. A
// fact that is too long or has no closing bracket is neither spoken nor remembered. remember
// returns false if more text is needed.
func (s *Speech) remember(at, n int, note agent.Note, end bool) bool {
	switch {
	case n >= 0:
		s.removeTag(at, at+1+n+1)
		if s.notes++; note.Text != "" && s.notes <= maxNotes {
			s.out = append(s.out, note)
		}
	case len(note.Text) > maxNote:
		s.removeTag(at, len(s.pending))
		s.enter(modeNote)
	case end:
		s.removeTag(at, len(s.pending))
	default:
		return false
	}
	return true
}

// tag reads the content of square brackets, and reports whether the brackets must not be spoken: they are a tag, a
// checkbox, the number of a footnote or a stage direction.
func (s *Speech) tag(content string) bool {
	name, value, _ := strings.Cut(strings.TrimSpace(content), ":")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "anim", "pause":
		kind := strings.ToLower(strings.TrimSpace(name))
		s.out = append(s.out, agent.Cue{Kind: kind, Value: strings.TrimSpace(value)})
		return true
	case "face", "emotion":
		name, value, _ = strings.Cut(value, ":")
		if _, known := s.table().Face(name); !known {
			s.face(agent.Felt{Emotion: agent.Neutral, Intensity: 1, Tag: tagOf(name)})
			return true
		}
	case "", "x": // a checkbox
		return true
	}
	if strings.Trim(content, "^0123456789, ") == "" {
		return true // a footnote's number
	}
	e, known := s.table().Face(name)
	if !known {
		return !s.begun && s.unknownTag(content) || s.cut.betweenSentences() && isDirection(content)
	}
	intensity := intensityOf(value)
	if intensity == 0 {
		e, intensity = agent.Neutral, 1
	}
	s.face(agent.Felt{Emotion: e, Intensity: intensity, Tag: tagOf(name)})
	return true
}

// maxCaseless is the maximum length of a stage direction in a script without upper case, in letters.
const maxCaseless = 8

// isDirection reports whether the content of brackets may be a stage direction, such as laughs.
func isDirection(content string) bool {
	words := strings.Fields(content)
	first, _ := utf8.DecodeRuneInString(content)
	return len(words) > 0 && len(words) <= maxDirection && unicode.IsLetter(first) && !unicode.IsUpper(first) &&
		(unicode.IsLower(first) || utf8.RuneCountInString(content) <= maxCaseless) &&
		!strings.ContainsFunc(content, func(r rune) bool { return !unicode.IsLetter(r) && r != ' ' && r != '-' && r != '\'' })
}

// unknownTag handles an unknown word in brackets at the beginning of a message, and reports whether
// it may be a tag. The word becomes the tag of the face, because a skin may have a face with this
// name.
func (s *Speech) unknownTag(content string) bool {
	if content == "" || strings.ContainsFunc(content, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return false
	}
	f := s.felt
	if !s.faced {
		f = agent.Felt{Emotion: agent.Neutral, Intensity: 1}
	}
	f.Tag, f.Assumed = tagOf(content), false
	s.face(f)
	return true
}

// tagOf returns the model's word for a face, or "" if it is not a valid word.
func tagOf(name string) string {
	if name = strings.TrimSpace(name); agent.CheckWord(name) != nil {
		return ""
	}
	return name
}

// intensityOf parses an intensity and limits it to 0 to 1; it returns 1 for an invalid value.
func intensityOf(value string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || f != f {
		return 1
	}
	return min(max(f, 0), 1)
}
