package thinker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a spoken sentence, in bytes. A Chinese character has three bytes, and takes
// about as long to speak as three letters.
const (
	maxSentence = 300 // fits the robots' screens and the synthesizers
	// The first sentence of a turn is cut after a clause, so that speech starts soon: after
	// a clause of fullClause bytes, or after one of minClause bytes if the sentence is
	// longer than longFirst. To speak fullClause bytes takes about two seconds, long enough
	// for most models to write the next clause. Clauses shorter than minClause sound cut off.
	fullClause = 30
	longFirst  = 60
	minClause  = 12
)

// Sentences splits a text into sentences, to be spoken one after the other. The end of a
// line ends a sentence. Sentences without a letter or digit are left out.
func Sentences(text string) []string {
	c := newCutter("")
	var sentences []string
	for _, r := range text {
		if s := c.add(r); s != "" {
			sentences = append(sentences, s)
		}
	}
	if s := c.flush(); s != "" {
		sentences = append(sentences, s)
	}
	return sentences
}

// cutter splits a text that arrives letter by letter into sentences. If it is uncertain
// whether a sentence has ended, it does not split.
type cutter struct {
	rules  dotRules
	early  bool   // whether the next sentence is the first of the turn
	text   []byte // the current sentence
	clause int    // end of the last clause in text; 0 if no clause has ended
	// doubt is not nil if text ends with a dot and a space, and the next letter decides
	// whether the dot ends the sentence. doubt returns the decision.
	doubt func(r rune) bool
}

// newCutter returns a cutter for the language with a BCP 47 tag.
func newCutter(language string) *cutter { return &cutter{rules: dotRulesOf(language)} }

// add adds a letter, and returns the sentence that ends before or with it, or "" if no
// sentence ends there. Several spaces become one; the end of a line ends a sentence.
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
	case sentence != "": // the next sentence has only r
	case c.early && (c.clause >= fullClause || c.clause >= minClause && len(c.text) > longFirst):
		sentence = c.cutAt(c.clause)
	case len(c.text) > maxSentence:
		sentence = c.cutAt(c.cutPoint())
	}
	return sentence
}

// flush ends the current sentence and returns it.
func (c *cutter) flush() string { return c.cutAt(len(c.text)) }

// cutAt removes the first n bytes of text and returns them, or "" if they have no letter or digit.
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

// ends reports whether the text is a complete sentence if r is the next letter. space reports
// whether r is a space.
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

// endsSentence reports whether the dot after a text ends the sentence. It sets doubt if the next
// letter decides that.
func (c *cutter) endsSentence(text string) bool {
	if strings.HasSuffix(text, ".") {
		return false // "..." is a pause
	}
	var ended bool
	ended, c.doubt = c.rules.endsSentence(text)
	return ended
}

// closers are the characters that may stand between the punctuation at the end of a sentence and the next space.
const closers = `"'”’»«)]}」』）】》〉›“`

// endsClause reports whether a text, followed by a space, ends a clause.
func endsClause(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(",;:–—…", last) || strings.HasSuffix(text, " -") || strings.HasSuffix(text, "...")
}

// trimSpace removes a space at the end of the text, unless the space may end a sentence (see doubt). It is called
// where letters of the text were dropped.
func (c *cutter) trimSpace() {
	if n := len(c.text); n > 0 && c.text[n-1] == ' ' && c.doubt == nil {
		c.text = c.text[:n-1]
	}
}

// removeLast removes letter from the end of the text, and reports whether the text ended with it.
func (c *cutter) removeLast(letter byte) bool {
	c.trimSpace()
	n := len(c.text)
	if n == 0 || c.text[n-1] != letter {
		return false
	}
	c.text = c.text[:n-1]
	return true
}

// canTakeComma reports whether a comma may follow the text.
func (c *cutter) canTakeComma() bool {
	last, size := utf8.DecodeLastRune(c.text)
	return size > 0 && (unicode.IsLetter(last) || unicode.IsNumber(last) || strings.ContainsRune(closers+"%", last))
}
