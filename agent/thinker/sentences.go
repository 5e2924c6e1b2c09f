package thinker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a spoken sentence, in bytes. Robots' screens and synthesizers both
// need less than maxSentence. A first sentence longer than longFirst is cut at a
// clause, so that speech starts soon. Bytes count a Chinese character as three
// letters, which is about how long it takes to speak.
const (
	maxSentence = 300
	// fullClause takes about two seconds to speak. A model that writes no slower than
	// speech has the next clause by then, so the first sentence is cut after a clause of
	// this length.
	fullClause = 30
	longFirst  = 60
	minClause  = 12 // shorter clauses sound cut off
)

// Sentences splits a text into sentences to be spoken one at a time. The end of a
// line ends a sentence. Pieces without a letter or digit are left out.
func Sentences(text string) []string {
	c := newCutter("")
	var all []string
	for _, r := range text {
		if s := c.add(r); s != "" {
			all = append(all, s)
		}
	}
	if s := c.flush(); s != "" {
		all = append(all, s)
	}
	return all
}

// cutter splits a text that arrives letter by letter into sentences. In doubt it
// does not split: two sentences spoken together do no harm.
type cutter struct {
	rules  dotRules
	early  bool // the next sentence is the first, and may be cut at a clause
	text   []byte
	clause int               // the end of the last clause in text; 0 before the first
	doubt  func(r rune) bool // text ends in a dot and a space; the next letter decides
}

func newCutter(language string) *cutter { return &cutter{rules: dotRulesOf(language)} }

// add adds a letter and returns the sentence that is now complete, or
// nothing. Runs of spaces become one space; the end of a line ends a sentence.
func (c *cutter) add(r rune) (sentence string) {
	if r == '\n' {
		return c.flush()
	}
	space := unicode.IsSpace(r)
	if c.ends(r, space) {
		sentence = c.cutAt(len(c.text))
	}
	switch {
	case !space:
		c.text = utf8.AppendRune(c.text, r)
		if strings.ContainsRune("，、；：", r) {
			c.clause = len(c.text)
		}
	case len(c.text) > 0 && c.text[len(c.text)-1] != ' ':
		if endsClause(string(c.text)) {
			c.clause = len(c.text)
		}
		c.text = append(c.text, ' ')
	}
	switch {
	case sentence != "": // one letter is left
	case c.early && (c.clause >= fullClause || c.clause >= minClause && len(c.text) > longFirst):
		sentence = c.cutAt(c.clause)
	case len(c.text) > maxSentence:
		sentence = c.cutAt(c.cutPoint())
	}
	return sentence
}

// flush ends the current sentence.
func (c *cutter) flush() string { return c.cutAt(len(c.text)) }

// cutAt removes and returns the first n bytes.
func (c *cutter) cutAt(n int) string {
	piece := strings.TrimSpace(string(c.text[:n]))
	c.text = []byte(strings.TrimLeft(string(c.text[n:]), " "))
	c.clause, c.doubt = 0, nil
	if !strings.ContainsFunc(piece, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return ""
	}
	c.early = false
	return piece
}

// cutPoint returns where to split a sentence that is too long: at a clause, at a space,
// or else between two letters.
func (c *cutter) cutPoint() int {
	if c.clause > maxSentence/2 && c.clause <= maxSentence {
		return c.clause
	}
	head := c.text[:maxSentence]
	if space := strings.LastIndexByte(string(head), ' '); space > 0 {
		return space
	}
	for !utf8.RuneStart(c.text[len(head)]) {
		head = head[:len(head)-1]
	}
	return len(head)
}

// ends reports whether the text so far is a sentence, given that r comes next.
func (c *cutter) ends(r rune, space bool) bool {
	if c.doubt != nil {
		if space {
			return false
		}
		ended := c.doubt(r)
		c.doubt = nil
		return ended
	}
	body := strings.TrimRight(string(c.text), closers)
	last, size := utf8.DecodeLastRuneInString(body)
	switch last {
	case '。', '！', '？', '｡':
		return !strings.ContainsRune(closers+"。！？｡!?", r)
	case '!', '?':
		return space || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
	case '.':
		return space && c.endsSentence(body[:len(body)-size])
	}
	return false
}

// endsSentence reports whether the dot after a text ends the sentence.
func (c *cutter) endsSentence(text string) bool {
	if strings.HasSuffix(text, ".") {
		return false // "..." is a pause
	}
	var ended bool
	ended, c.doubt = c.rules.endsSentence(text)
	return ended
}

// closers are allowed between the end of a sentence and the space after it.
const closers = `"'”’»«)]}」』）】》〉›“`

// endsClause reports whether a text, followed by a space, ends a clause.
func endsClause(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(",;:–—…", last) || strings.HasSuffix(text, " -") || strings.HasSuffix(text, "...")
}

// tighten removes a trailing space after dropped letters.
func (c *cutter) tighten() {
	if n := len(c.text); n > 0 && c.text[n-1] == ' ' && c.doubt == nil {
		c.text = c.text[:n-1]
	}
}

// undo removes a trailing letter, and reports whether it was there.
func (c *cutter) undo(letter byte) bool {
	c.tighten()
	n := len(c.text)
	if n == 0 || c.text[n-1] != letter {
		return false
	}
	c.text = c.text[:n-1]
	return true
}

// open reports whether a comma may follow the text.
func (c *cutter) open() bool {
	last, size := utf8.DecodeLastRune(c.text)
	return size > 0 && (unicode.IsLetter(last) || unicode.IsNumber(last) || strings.ContainsRune(closers+"%", last))
}
