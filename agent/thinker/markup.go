package thinker

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/agent"
)

// mode is the kind of text at the beginning of Speech.pending.
type mode int

const (
	modeText    mode = iota
	modeTicks        // the line after three backticks, which begin a code block or inline code
	modeFence        // code in a code block
	modeTarget       // the address of a link, in brackets
	modeAddress      // an address in the text
	modeLine         // the rest of a line that is dropped
	modeNote         // the rest of a [REMEMBER: ...] that is too long, which is dropped
)

// Maximum lengths of markup: in bytes for markup that pending holds, and in letters for markup that is dropped while it
// arrives (see Speech.long). Longer text counts as plain text.
const (
	maxTag    = 120  // of a tag in any brackets
	maxTarget = 2000 // of the address of a link
	maxRow    = 300  // of a run of characters that form a rule or a table
)

// step reads one element from the beginning of pending. It returns false if more text is needed. If
// end is true, no more text follows, and step returns true.
func (s *Speech) step(end bool) bool {
	switch s.mode {
	case modeTicks, modeFence:
		return s.inFence(end)
	case modeTarget:
		return s.inTarget()
	case modeAddress:
		return s.inAddress(end)
	case modeLine:
		if r := s.skip(); r == '\n' {
			s.mode = modeText
			s.newline()
		}
		return true
	case modeNote:
		if r := s.skip(); r == ']' || s.long > maxTarget {
			s.mode = modeText
		}
		return true
	}
	if s.line {
		if taken, sure := s.lineStart(end); taken || !sure {
			return taken
		}
	}
	return s.inline(end)
}

// skip drops the first letter of pending and returns it.
func (s *Speech) skip() rune {
	r, size := utf8.DecodeRuneInString(s.pending)
	s.pending = s.pending[size:]
	s.gap = true
	s.long++
	return r
}

func (s *Speech) enter(m mode) { s.mode, s.long = m, 0 }

// drop removes the first n bytes of pending without speaking them.
func (s *Speech) drop(n int) { s.pending, s.gap = s.pending[n:], true }

// speakFirst speaks the first letter of pending, and returns true.
func (s *Speech) speakFirst() bool {
	r, size := utf8.DecodeRuneInString(s.pending)
	s.pending = s.pending[size:]
	s.emit(r)
	return true
}

// lineStart reads markup that is only valid at the beginning of a line, and reports whether
// it did. If taken is false, sure reports whether the line is plain text; if sure is false,
// more text is needed.
func (s *Speech) lineStart(end bool) (taken, sure bool) {
	first, size := utf8.DecodeRuneInString(s.pending)
	rest := s.pending[size:]
	run := len(s.pending) - len(strings.TrimLeft(s.pending, string(first)))
	next, _ := utf8.DecodeRuneInString(s.pending[run:])
	unsure := run == len(s.pending) && !end // whether more of the same character may follow
	spaced := run == len(s.pending) || next == ' ' || next == '\n' || next == '\t'
	switch first {
	case ' ', '\t', '>':
		s.drop(size)
		return true, true
	case '`', '~':
		switch {
		case run >= 3:
			s.drop(3)
			s.enter(modeFence)
			if first == '`' {
				s.enter(modeTicks)
			}
			s.line = false
			return true, true
		case unsure:
			return false, false
		}
	case '#':
		switch {
		case unsure && run <= 6:
			return false, false
		case spaced && run <= 6:
			s.drop(run)
			s.line = false
			return true, true
		}
	case '-', '*', '+', '•', '=':
		switch {
		case unsure && run <= maxRow:
			return false, false
		case first == '*' && !spaced: // bold or italics
		case run > size || spaced || first == '•': // a rule, or an item
			s.drop(run)
			return true, true
		}
	case '|':
		switch rule, sure := tableRule(rest, end); {
		case !sure:
			return false, false
		case rule:
			s.enter(modeLine)
			return true, true
		}
		s.drop(size)
		s.line = false
		return true, true
	}
	return false, true
}

// tableRule reports whether rest, a line without its first bar, is the rule between the head and
// the rows of a table. If sure is false, more text is needed.
func tableRule(rest string, end bool) (rule, sure bool) {
	n := len(rest) - len(strings.TrimLeft(rest, "|-: \t"))
	if n == len(rest) && !end && n < maxRow {
		return false, false
	}
	return strings.Contains(rest[:n], "-") && (n == len(rest) || rest[n] == '\n'), true
}

// inline reads an element from the beginning of pending, within a line. It returns false if more
// text is needed.
func (s *Speech) inline(end bool) bool {
	first, size := utf8.DecodeRuneInString(s.pending)
	rest := s.pending[size:]
	next, _ := utf8.DecodeRuneInString(rest)
	if rest == "" {
		if !end && strings.ContainsRune(`\*_~]!<|$&(`, first) {
			return false
		}
		next = '\n'
	}
	switch first {
	case '\n':
		s.skip()
		s.newline()
		return true
	case '`':
		s.skip()
		return true
	case '\\':
		if next == '(' || next == '[' {
			return s.formula(2, map[rune]string{'(': `\)`, '[': `\]`}[next], end)
		}
		if next < utf8.RuneSelf && (unicode.IsPunct(next) || unicode.IsSymbol(next)) {
			s.skip()
		}
		if next == '`' {
			return true // not spoken, escaped or not
		}
		return s.speakFirst()
	case '$':
		if n := openingDollars(s.pending, end); n != 0 {
			return n > 0 && s.formula(n, "$$"[:n], end)
		}
	case '&':
		return s.entity(end)
	case '【':
		return s.citation(end)
	case '(':
		if taken, sure := s.direction(")", end); taken || !sure {
			return taken
		}
	case '*':
		if taken, sure := s.direction("*", end); taken || !sure {
			return taken
		}
		if !s.gap && (s.between(unicode.IsSpace, next) || s.between(unicode.IsDigit, next)) {
			return s.speakFirst() // a multiplication sign
		}
		s.skip()
		return true
	case '_':
		if s.between(isWord, next) {
			s.emit(' ')
		}
		s.skip()
		return true
	case '~':
		if next == '~' {
			s.drop(2)
			return true
		}
	case '|':
		return s.cell(rest, end)
	case '[', '!':
		if first == '[' || next == '[' {
			return s.bracket(end)
		}
	case ']':
		if next == '(' { // the end of a link's text, which has been spoken; its address follows
			s.nested = 0
			s.drop(2)
			s.enter(modeTarget)
			return true
		}
	case '<':
		return s.angle(end)
	case 'h', 'H', 'w', 'W':
		if taken, sure := s.startAddress(end); taken || !sure {
			return taken
		}
	}
	if agent.IsEmoji(first) {
		s.skip()
		if e, found := agent.EmotionOf(first); found && !s.begun {
			e, _ = s.table().Face(e.Name) // the emotion with its standard emoji
			s.face(agent.Felt{Emotion: e, Intensity: 1})
		}
		return true
	}
	return s.speakFirst()
}

// between reports whether kind is true for the letters before and after the first letter of pending.
// next is the letter after it.
func (s *Speech) between(kind func(rune) bool, next rune) bool { return kind(s.last) && kind(next) }

// isWord reports whether a word may contain r.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// cell reads the bar between two cells of a table, or at the end of a row. It returns false if
// more text is needed.
func (s *Speech) cell(rest string, end bool) bool {
	after := strings.TrimLeft(rest, " \t|")
	if after == "" && !end && len(rest) < maxRow {
		return false
	}
	s.drop(len(s.pending) - len(after))
	if after != "" && after[0] != '\n' {
		s.comma()
	}
	return true
}

// inFence drops code, and ends the mode at the end of the code. It returns false if more text is needed.
func (s *Speech) inFence(end bool) bool {
	if s.line && (s.pending[0] == '`' || s.pending[0] == '~') {
		run := len(s.pending) - len(strings.TrimLeft(s.pending, s.pending[:1]))
		if run < 3 && run == len(s.pending) && !end {
			return false
		}
		if run >= 3 {
			s.enter(modeLine)
			return true
		}
	}
	switch r := s.skip(); {
	case r == '\n':
		s.line, s.mode = true, modeFence
	case r == '`' && s.mode == modeTicks:
		s.mode = modeText // inline code has ended, and its line continues
	case r != ' ' && r != '\t':
		s.line = false
	}
	return true
}

// inTarget drops a link's address up to its closing bracket.
func (s *Speech) inTarget() bool {
	switch r := s.skip(); {
	case r == '\n':
		s.mode = modeText
		s.newline()
	case r == '(':
		s.nested++
	case r == ')' && s.nested > 0:
		s.nested--
	case r == ')', s.long > maxTarget:
		s.mode = modeText
	}
	return true
}

// startAddress enters modeAddress if pending begins with an address, and reports whether it did. If taken is
// false, sure reports whether pending is plain text; if sure is false, more text is needed.
func (s *Speech) startAddress(end bool) (taken, sure bool) {
	if isWord(s.last) && !s.gap {
		return false, true
	}
	lower := strings.ToLower(s.pending)
	for _, begin := range []string{"https://", "http://", "www."} {
		switch {
		case strings.HasPrefix(lower, begin):
			s.drop(len(begin))
			s.enter(modeAddress)
			return true, true
		case !end && strings.HasPrefix(begin, lower):
			return false, false
		}
	}
	return false, true
}

// inAddress drops the next part of an address. Punctuation after the address belongs to the sentence. It
// returns false if more text is needed.
func (s *Speech) inAddress(end bool) bool {
	after := strings.TrimLeft(s.pending, ".,;:!?'*_~")
	next, _ := utf8.DecodeRuneInString(after)
	switch {
	case after == "" && !end && len(s.pending) < maxTag:
		return false
	case after == "" || next >= utf8.RuneSelf && !unicode.IsLetter(next) || next <= ' ' || strings.ContainsRune("<>[]()\"`{}|\\^", next) ||
		unicode.In(next, unicode.Han, unicode.Hiragana, unicode.Katakana):
		s.mode = modeText
		return true
	}
	s.drop(len(s.pending) - len(after) + utf8.RuneLen(next))
	return true
}

// angle drops an HTML tag, which becomes a space, or an address in angle brackets. Another < is spoken. angle returns
// false if more text is needed.
func (s *Speech) angle(end bool) bool {
	next, _ := utf8.DecodeRuneInString(s.pending[1:])
	if !unicode.IsLetter(next) && next != '/' && next != '!' {
		return s.speakFirst()
	}
	n := strings.IndexAny(s.pending, ">\n")
	switch {
	case n < 0 && !end && len(s.pending) < maxTag:
		return false
	case n < 0 || s.pending[n] == '\n':
		return s.speakFirst()
	}
	address := strings.Contains(s.pending[:n], "://")
	if s.drop(n + 1); !address {
		s.emit(' ')
	}
	return true
}
