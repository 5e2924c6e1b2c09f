package thinker

import (
	"unicode"
	"unicode/utf8"

	"perch/agent"
)

// Speech makes replies of what a model writes, while it is being written. It
// finds the face, takes out what is not for the ear, and cuts sentences, the
// first of them early. It goes letter by letter, so what comes out does not
// depend on how the text was split.
//
// The face is the leading emoji, or a tag such as [happy] or [excited:0.8]; it
// is always one of Emotions, and keeps the word it was written with. Later emoji are dropped, later tags change
// the face. [REMEMBER: ...] becomes a Note, [anim:...] and [pause:...] become
// a Cue. Markdown, code, addresses and tables are brought to plain words.
//
// A Speech has an end: what is said after mostSpoken letters or mostSentences
// sentences, or after mostWritten letters of any kind, is left out, and Full
// tells so.
//
// A Speech is for one turn, and for one goroutine.
type Speech struct {
	cut   *cutter
	words *agent.Words // see table
	part  []byte       // of a letter that is split between two deltas
	held  string       // what cannot be told yet; see markup.go
	mode  mode
	line  bool // at the beginning of a line

	nested int  // brackets within a link's address
	long   int  // letters dropped in the present mode
	last   rune // the one before held, of what is spoken; 0 at the beginning of a line
	gap    bool // something was dropped after it

	faced bool       // this turn has a face
	worn  agent.Felt // which
	begun bool       // this message has its face, or words
	out   []agent.Reply

	read      int // letters, whatever becomes of them
	spoken    int // letters
	sentences int
	notes     int
}

// What a turn's speech may hold. A robot speaks for eight minutes at 8000
// letters.
const (
	mostSpoken    = 8000
	mostSentences = 100
	mostNotes     = 20
)

// Full reports whether the turn has said all that it may, so that whoever brings
// the words can be told to stop.
func (s *Speech) Full() bool {
	return s.spoken >= mostSpoken || s.sentences >= mostSentences || s.read >= mostWritten
}

// table is how tags are read. Few turns have some.
func (s *Speech) table() *agent.Words {
	if s.words == nil {
		s.words = agent.StockWords()
	}
	return s.words
}

// NewSpeech returns the pass over one turn's text, in a language of BCP 47.
func NewSpeech(language string) *Speech {
	s := &Speech{cut: newCutter(language), line: true}
	s.cut.early = true
	return s
}

// Write takes what the model wrote next, and returns what can be told by now:
// Felt, Say, Cue and Note.
func (s *Speech) Write(delta string) []agent.Reply {
	s.part = append(s.part, delta...)
	for len(s.part) > 0 && utf8.FullRune(s.part) && !s.Full() {
		r, size := utf8.DecodeRune(s.part)
		s.part = s.part[size:]
		s.letter(r)
	}
	return s.told()
}

// End ends a message and returns what is left of it. Another message of the
// same turn may follow, as after a tool: it keeps the face that is shown
// unless it brings its own.
func (s *Speech) End() []agent.Reply {
	s.part = nil
	for s.held != "" {
		s.step(true)
	}
	s.say(s.cut.rest())
	s.mode, s.line, s.last, s.gap, s.begun = modeText, true, 0, false, false
	return s.told()
}

func (s *Speech) told() []agent.Reply {
	out := s.out
	s.out = nil
	return out
}

func (s *Speech) letter(r rune) {
	s.read++
	if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) {
		return
	}
	s.held += string(r)
	for s.held != "" && s.step(false) {
	}
}

// emit gives a letter on to be spoken.
func (s *Speech) emit(r rune) {
	if !unicode.IsSpace(r) {
		s.face(agent.Felt{Emotion: agent.Neutral, Intensity: 1}, true)
	}
	if s.gap && r == ')' && s.cut.undo('(') {
		return // an address stood in brackets
	}
	if s.gap && (r == '.' || r == ',' || r == '!' || r == '?' || r == ';' || r == ':') {
		s.cut.tighten()
	}
	s.gap, s.last, s.line = false, r, false
	s.say(s.cut.add(r))
}

// comma parts the cells of a table.
func (s *Speech) comma() {
	if s.cut.tighten(); s.cut.open() {
		s.emit(',')
	}
	s.emit(' ')
}

// newline ends a line, and with it a sentence.
func (s *Speech) newline() {
	s.say(s.cut.rest())
	s.line, s.last, s.gap = true, 0, false
}

func (s *Speech) say(sentence string) {
	if sentence != "" && s.spoken < mostSpoken && s.sentences < mostSentences {
		s.spoken += utf8.RuneCountInString(sentence)
		s.sentences++
		s.out = append(s.out, agent.Say{Text: sentence})
	}
}

// face shows one. That of a message which begins without one is only assumed,
// and gives way to any that is shown already.
func (s *Speech) face(f agent.Felt, assumed bool) {
	if assumed && (s.begun || s.faced) {
		s.begun = true
		return
	}
	s.begun, s.faced, s.worn = true, true, f
	s.out = append(s.out, f)
}
