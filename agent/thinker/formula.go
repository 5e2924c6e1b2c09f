package thinker

import (
	"html"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"perch/agent"
)

// openingDollars returns the number of dollar signs that open the formula at the beginning of held: 1 or 2. It
// returns 0 if no formula begins there, as before an amount of money, and -1 if more text is needed.
func openingDollars(held string, end bool) int {
	body := strings.TrimLeft(held, "$")
	n := len(held) - len(body)
	first, _ := utf8.DecodeRuneInString(body)
	closing := strings.Index(body, "$$"[:min(n, 2)])
	line := strings.IndexByte(body, '\n')
	switch {
	case n > 2, body != "" && (unicode.IsDigit(first) || unicode.IsSpace(first)):
		return 0
	case closing < 0 && line < 0 && !end && len(held) < maxTag:
		return -1
	case closing < 0 || n == 1 && line >= 0 && line < closing:
		return 0
	case n == 1 && !strings.ContainsAny(body[:closing], `\^_={+`) && closing > 3:
		return 0
	}
	return n
}

// formula speaks the LaTeX formula at the beginning of pending, between an opening mark of n bytes and the mark
// closing. If the closing mark is missing, it drops the opening mark only. It returns false if more text is needed.
func (s *Speech) formula(n int, closing string, end bool) bool {
	at := strings.Index(s.pending[n:], closing)
	if at < 0 {
		block := closing == `\]` || closing == "$$"
		if !end && (block && len(s.pending) < maxTarget || len(s.pending) < maxTag && !strings.Contains(s.pending, "\n")) {
			return false
		}
		s.drop(n)
		return true
	}
	formula := plainFormula(s.pending[n : n+at])
	s.drop(n + at + len(closing))
	for _, r := range formula {
		s.emit(r)
	}
	return true
}

// fraction matches a LaTeX fraction, such as \frac{1}{2}, and command matches a LaTeX command, such as \times.
var (
	fraction = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}`) })
	command  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\([A-Za-z]+)\s*`) })
)

// plainFormula returns a LaTeX formula as plain text: \frac{1}{2} becomes 1 / 2.
func plainFormula(text string) string {
	text = fraction().ReplaceAllString(text, "$1 / $2")
	text = command().ReplaceAllStringFunc(text, func(found string) string {
		switch name := strings.TrimSpace(found[1:]); name {
		case "times", "cdot":
			return " × "
		case "div":
			return " / "
		case "pm":
			return " ± "
		case "sqrt":
			return "√"
		case "leq", "le":
			return " ≤ "
		case "geq", "ge":
			return " ≥ "
		case "neq", "ne":
			return " ≠ "
		case "approx":
			return " ≈ "
		case "left", "right", "text", "mathrm", "mathbf", "displaystyle", "quad":
			return ""
		default:
			return name + " "
		}
	})
	text = strings.NewReplacer("^2", "²", "^3", "³", "^{2}", "²", "^{3}", "³").Replace(text)
	text = strings.NewReplacer("_", " ", "^", " ^ ", "{", "", "}", "", "\\", "").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

// entity speaks the character of the HTML entity at the beginning of pending, such as &amp;. An ampersand that begins
// no entity is spoken unchanged. entity returns false if more text is needed.
func (s *Speech) entity(end bool) bool {
	n := strings.IndexByte(s.pending, ';')
	name := s.pending[1:]
	if n > 0 {
		name = s.pending[1:n]
	}
	if len(name) > 10 || strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || !isWord(r) && r != '#' }) || n < 0 && end {
		return s.speakFirst()
	}
	if n < 0 {
		return false
	}
	letter := html.UnescapeString(s.pending[:n+1])
	if letter == s.pending[:n+1] {
		return s.speakFirst()
	}
	s.pending = s.pending[n+1:]
	for _, r := range strings.ReplaceAll(letter, "\u00a0", " ") {
		if r != '`' && !unicode.IsControl(r) && !agent.IsEmoji(r) {
			s.emit(r)
		}
	}
	return true
}

// citation drops a reference to a source, such as 【4†source】. Another text in such brackets is spoken. citation
// returns false if more text is needed.
func (s *Speech) citation(end bool) bool {
	n := strings.Index(s.pending, "】")
	switch {
	case n < 0 && !end && len(s.pending) < maxTag:
		return false
	case n < 0 || !strings.Contains(s.pending[:n], "†"):
		return s.speakFirst()
	}
	s.drop(n + len("】"))
	return true
}

// maxDirection is the maximum length of a stage direction, in words.
const maxDirection = 6

// direction drops a stage direction at the beginning of pending, such as *waves happily* or (smiles), if it
// stands alone between sentences. taken reports whether it has dropped one. If taken is false, sure reports whether
// the text must be spoken; if sure is false, more text is needed.
func (s *Speech) direction(closing string, end bool) (taken, sure bool) {
	n := strings.Index(s.pending[1:], closing)
	switch {
	case !s.cut.betweenSentences() || strings.HasPrefix(s.pending, "**"):
		return false, true
	case n < 0:
		return false, end || len(s.pending) > maxTag || strings.ContainsAny(s.pending, "\n")
	}
	content, after := s.pending[1:1+n], s.pending[2+n:]
	if !isDirection(content) {
		return false, true
	}
	rest := strings.TrimLeft(after, " \t")
	if rest == "" && !end {
		return false, false
	}
	next, _ := utf8.DecodeRuneInString(rest)
	lone := len(rest) < len(after) || rest == "" || next == '\n' // whether a space, the end of the line or nothing follows
	first, _ := utf8.DecodeRuneInString(content)
	switch {
	case !lone, rest != "" && (unicode.IsLower(next) || unicode.IsDigit(next) || strings.ContainsRune(",;:.)*", next)),
		strings.HasPrefix(rest, "I ") && closing == "*", closing == "*" && s.last == 0 && (rest == "" || next == '\n') && s.begun, // a list item
		!unicode.IsLower(first) && rest != "" && next != '\n':
		return false, true
	}
	s.drop(2 + n)
	return true, true
}

// betweenSentences reports whether the text is empty, or ends with a sentence.
func (c *cutter) betweenSentences() bool {
	text := strings.TrimRight(string(c.text), closers+" ")
	last, _ := utf8.DecodeLastRuneInString(text)
	return text == "" || strings.ContainsRune(".!?…。！？", last) || agent.IsEmoji(last)
}
