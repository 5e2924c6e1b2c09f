package thinker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How long what is spoken at a time may get, in bytes. A robot's screen and a
// synthesizer both want less than mostSentence; a first sentence over
// longFirst is begun at a clause, so that speech starts soon. Bytes weigh a
// Chinese character as three letters, which is about how long it takes to say.
const (
	mostSentence = 300
	longFirst    = 60
	leastClause  = 12 // shorter ones sound cut off
)

// Sentences cuts a text into what is spoken at a time: where a sentence ends,
// and at the end of a line. What holds neither letter nor digit is left out.
func Sentences(text string) []string {
	c := newCutter("")
	var all []string
	for _, r := range text {
		if s := c.add(r); s != "" {
			all = append(all, s)
		}
	}
	if s := c.rest(); s != "" {
		all = append(all, s)
	}
	return all
}

// cutter cuts sentences out of a text that comes letter by letter. Where it
// cannot tell whether one has ended, it does not cut: two sentences spoken
// together do no harm.
type cutter struct {
	manners manners
	early   bool // the next is the first, and may be cut at a clause
	text    []byte
	clause  int               // where the last clause in text ends; 0 is nowhere
	doubt   func(r rune) bool // text ends in a dot and a space; the next letter tells
}

func newCutter(language string) *cutter { return &cutter{manners: mannersOf(language)} }

// add takes one letter more and returns the sentence that is complete now, or
// nothing. Spaces are brought to one; a line's end ends a sentence.
func (c *cutter) add(r rune) (sentence string) {
	if r == '\n' {
		return c.rest()
	}
	space := unicode.IsSpace(r)
	if c.ends(r, space) {
		sentence = c.take(len(c.text))
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
	case sentence != "": // what is left is a letter
	case c.early && len(c.text) > longFirst && c.clause >= leastClause:
		sentence = c.take(c.clause)
	case len(c.text) > mostSentence:
		sentence = c.take(c.breath())
	}
	return sentence
}

// rest ends what there is.
func (c *cutter) rest() string { return c.take(len(c.text)) }

// take cuts off the first n bytes.
func (c *cutter) take(n int) string {
	piece := strings.TrimSpace(string(c.text[:n]))
	c.text = []byte(strings.TrimLeft(string(c.text[n:]), " "))
	c.clause, c.doubt = 0, nil
	if !strings.ContainsFunc(piece, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return ""
	}
	c.early = false
	return piece
}

// breath is where to cut a sentence that has become too long: at a clause, at
// a space, or else between two letters.
func (c *cutter) breath() int {
	if c.clause > mostSentence/2 && c.clause <= mostSentence {
		return c.clause
	}
	head := c.text[:mostSentence]
	if space := strings.LastIndexByte(string(head), ' '); space > 0 {
		return space
	}
	for !utf8.RuneStart(c.text[len(head)]) {
		head = head[:len(head)-1]
	}
	return len(head)
}

// ends reports whether the text so far is a sentence, now that r is known to
// come next.
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
		return space && c.full(body[:len(body)-size])
	}
	return false
}

// full reports whether the dot that follows a text ends its sentence, as far
// as that can be told already.
func (c *cutter) full(text string) bool {
	if strings.HasSuffix(text, ".") {
		return false // "..." is a pause
	}
	var ended bool
	ended, c.doubt = c.manners.full(text)
	return ended
}

// closers may stand between the end of a sentence and the space after it.
const closers = `"'”’»«)]}」』）】》〉›“`

// endsClause reports whether a text ends where one may breathe, a space being
// next.
func endsClause(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(",;:–—…", last) || strings.HasSuffix(text, " -") || strings.HasSuffix(text, "...")
}

// tighten takes back a space, where what stood behind it was dropped.
func (c *cutter) tighten() {
	if n := len(c.text); n > 0 && c.text[n-1] == ' ' && c.doubt == nil {
		c.text = c.text[:n-1]
	}
}

// undo takes back a letter that was the last, and reports whether it was.
func (c *cutter) undo(letter byte) bool {
	c.tighten()
	n := len(c.text)
	if n == 0 || c.text[n-1] != letter {
		return false
	}
	c.text = c.text[:n-1]
	return true
}

// open reports whether there is text that a comma can follow.
func (c *cutter) open() bool {
	last, size := utf8.DecodeLastRune(c.text)
	return size > 0 && (unicode.IsLetter(last) || unicode.IsNumber(last) || strings.ContainsRune(closers+"%", last))
}
