package thinker

import (
	"strconv"
	"strings"
	"unicode"

	"perch/agent"
)

// bracket reads what a square bracket opens, with the exclamation mark before
// it, which may be that of a picture.
func (s *Speech) bracket(end bool) bool {
	at := strings.IndexByte(s.held, '[')
	inner := s.held[at+1:]
	n := strings.IndexByte(inner, ']')
	content := inner
	if n >= 0 {
		content = inner[:n]
	}
	if fact, is := noteOf(content); is {
		return s.remember(at, n, fact, end)
	}
	switch {
	case n < 0 && isNoteBegun(content):
		if end {
			s.taken(at, len(s.held))
		}
		return end
	case strings.ContainsRune(content, '\n'), len(content) > mostTag:
		return s.pass()
	case n < 0:
		return end && s.pass()
	}
	after := inner[n+1:]
	if after == "" && !end {
		return false
	}
	if strings.HasPrefix(after, "(") {
		s.drops(at + 1)
		return true
	}
	if !s.tag(content) {
		return s.pass()
	}
	s.taken(at, at+1+n+1)
	return true
}

// taken drops a tag, and gives on the exclamation mark that stood before it.
func (s *Speech) taken(at, to int) {
	mark := s.held[:at]
	s.drops(to)
	for _, r := range mark {
		s.emit(r)
	}
	s.gap = true
}

// noteOf reads "REMEMBER: ...".
func noteOf(content string) (fact string, is bool) {
	content = strings.TrimLeft(content, " *_`")
	if len(content) < len(noteWord) || !strings.EqualFold(content[:len(noteWord)], noteWord) {
		return "", false
	}
	return strings.TrimSpace(content[len(noteWord):]), true
}

// isNoteBegun reports whether that is what a bracket may become.
func isNoteBegun(content string) bool {
	content = strings.TrimLeft(content, " *_`")
	return content != "" && len(content) < len(noteWord) && strings.EqualFold(content, noteWord[:len(content)])
}

// A note is what stands in [REMEMBER: ...].
const (
	noteWord = "remember:"
	mostNote = 300 // bytes
)

// remember gives out a fact once its bracket is closed. One that never ends,
// or is too long, is neither spoken nor kept.
func (s *Speech) remember(at, n int, fact string, end bool) bool {
	switch {
	case n >= 0:
		s.taken(at, at+1+n+1)
		if s.notes++; fact != "" && s.notes <= mostNotes {
			s.out = append(s.out, agent.Note{Text: strings.Join(strings.Fields(fact), " ")})
		}
	case len(fact) > mostNote:
		s.taken(at, len(s.held))
		s.enter(modeNote)
	case end:
		s.taken(at, len(s.held))
	default:
		return false
	}
	return true
}

// tag reads what stands between square brackets and reports whether it is one.
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
			s.face(agent.Felt{Emotion: agent.Neutral, Intensity: 1, Tag: tagOf(name)}, false)
			return true
		}
	case "", "x": // a box to tick
		return true
	}
	if strings.Trim(content, "^0123456789, ") == "" {
		return true // of a footnote
	}
	e, known := s.table().Face(name)
	if !known {
		return !s.begun && s.unknown(content)
	}
	intensity := intensityOf(value)
	if intensity == 0 {
		e, intensity = agent.Neutral, 1
	}
	s.face(agent.Felt{Emotion: e, Intensity: intensity, Tag: tagOf(name)}, false)
	return true
}

// unknown reads what only looks like a face, at the beginning of a message. It
// is no word of that, and to somebody it may be a face.
func (s *Speech) unknown(content string) bool {
	if content == "" || strings.ContainsFunc(content, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return false
	}
	f := s.worn
	if !s.faced {
		f = agent.Felt{Emotion: agent.Neutral, Intensity: 1}
	}
	f.Tag = tagOf(content)
	s.face(f, false)
	return true
}

// tagOf is a model's own word for a face, or empty where it is no word.
func tagOf(name string) string {
	if name = strings.TrimSpace(name); agent.CheckWord(name) != nil {
		return ""
	}
	return name
}

// intensityOf is 0 to 1, and 1 where nothing sensible is said.
func intensityOf(value string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || f != f {
		return 1
	}
	return min(max(f, 0), 1)
}
