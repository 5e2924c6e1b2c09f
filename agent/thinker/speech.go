package thinker

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/modeltext"
	"perch/language"
	"perch/limit"
	"perch/plain"
)

// Speech converts the text of a model to replies while the model writes it. It finds the
// face, removes what cannot be spoken, and splits the text into sentences. The first
// sentence may be cut early. Speech reads letter by letter, so the result does not depend
// on how the text is split into pieces.
//
// The face is the emoji at the beginning, or a tag such as [happy] or [excited:0.8]. It
// becomes a Felt with one of agent.Emotions, and the tag as the model wrote it. Later emoji are
// dropped, and later tags change the face. [REMEMBER: ...] becomes a Note, and [anim:...]
// and [pause:...] become a Cue. Markdown and tables become plain words; code and addresses are
// dropped. Each paragraph of a thought becomes a Thought; Write returns it before other replies.
//
// Speech ignores the text after maxSpoken spoken letters, maxSentences sentences, or
// limit.Body letters of any kind; Full reports whether the text has reached one of these bounds.
//
// A Speech is for one turn and not safe for concurrent use.
type Speech struct {
	reader   *modeltext.Reader // separates the text for people from thoughts, calls and control tokens
	message  strings.Builder   // text for people in the current message
	cut      *cutter
	language string         // language as a BCP 47 tag
	units    language.Units // units of language; nil until a sentence has a number
	words    *agent.Words   // see table
	out      []agent.Reply  // replies since drain

	// The markup reader, see markup.go.
	pending string // text that has not been interpreted yet
	mode    mode
	line    bool // whether pending is at the beginning of a line
	nested  int  // number of open brackets in the address of a link
	long    int  // number of letters dropped in the current mode
	last    rune // the last spoken letter before pending; 0 at the beginning of a line
	gap     bool // whether letters were dropped after last

	// The face of the turn.
	faced bool       // whether the turn has a face
	felt  agent.Felt // the face of the turn
	begun bool       // whether the current message has a face or words

	// The length of the turn.
	read      int // number of letters, spoken or not
	spoken    int // number of spoken letters
	sentences int // number of sentences
	notes     int // number of notes

	thought  string // the current paragraph of a thought
	apart    bool   // whether Think was called after the latest text; when text follows, the paragraph in thought ends
	thoughts int    // number of paragraphs
}

// Bounds of a turn's speech. A robot speaks 8000 letters in eight minutes.
const (
	maxSpoken    = 8000
	maxSentences = 100
	maxNotes     = 20
	maxThoughts  = 50 // paragraphs of limit.Text bytes
)

// Full reports whether the turn has reached a bound, so that further text is ignored.
func (s *Speech) Full() bool {
	return s.spoken >= maxSpoken || s.sentences >= maxSentences || s.read >= limit.Body
}

// table returns the words for faces. It creates them when they are first needed, because few
// turns have a tag.
func (s *Speech) table() *agent.Words {
	if s.words == nil {
		s.words = agent.StockWords()
	}
	return s.words
}

// NewSpeech returns a Speech for one turn. tag is the BCP 47 tag of the language.
func NewSpeech(tag string) *Speech {
	s := &Speech{cut: newCutter(tag), language: tag, line: true, reader: modeltext.NewReader(nil, false)}
	s.cut.early = true
	return s
}

// StartMessage starts a message of a model that may call these tools. If thinking is true, the message may begin
// inside a thought.
func (s *Speech) StartMessage(tools []Tool, thinking bool) {
	offered := make([]modeltext.Tool, 0, len(tools))
	for _, t := range tools {
		offered = append(offered, modeltext.Tool{Name: t.Name, Schema: t.Schema})
	}
	s.reader = modeltext.NewReader(offered, thinking)
	s.message.Reset()
}

// Write adds text of the model, and returns the replies that are complete: Thought, Felt, Say,
// Cue and Note. Calls of tools and control tokens are not spoken.
func (s *Speech) Write(delta string) []agent.Reply {
	if s.apart && strings.TrimSpace(delta) != "" {
		s.think("\n\n")
		s.apart = false
	}
	text := s.reader.Write(delta)
	s.think(s.reader.Thoughts())
	s.speak(text)
	return s.drain()
}

// Think adds text of a thought that is separate from the model's text, and returns the
// paragraphs that are complete.
func (s *Speech) Think(delta string) []agent.Reply {
	s.think(delta)
	s.apart = true
	return s.drain()
}

// think adds text of a thought, and adds the paragraphs that are complete to the replies. A paragraph of more than
// limit.Text bytes is split.
func (s *Speech) think(delta string) {
	s.thought += delta
	for {
		n := strings.Index(s.thought, "\n\n")
		if n < 0 && len(s.thought) <= limit.Text {
			return
		}
		if n < 0 || n > limit.Text {
			n = len(plain.Clip(s.thought, limit.Text))
		}
		s.addThought(s.thought[:n])
		s.thought = strings.TrimLeft(s.thought[n:], "\n")
	}
}

// addThought adds a paragraph of a thought to the replies.
func (s *Speech) addThought(text string) {
	if text = strings.TrimSpace(text); text != "" && s.thoughts < maxThoughts {
		s.thoughts++
		s.out = append(s.out, agent.Thought{Text: text})
	}
}

// Release returns the replies of the text that the reader holds back as a possible thought. It is for servers that
// send thoughts in a separate field.
func (s *Speech) Release() []agent.Reply {
	s.speak(s.reader.Release())
	return s.drain()
}

// Calls returns the tool calls that the model has written into its text since the previous call of Calls.
func (s *Speech) Calls() []modeltext.Call { return s.reader.Calls() }

// Unopened reports whether the message had the end of a thought without its beginning.
func (s *Speech) Unopened() bool { return s.reader.Unopened() }

// Text returns the text for people in the message, with its markup.
func (s *Speech) Text() string { return strings.TrimSpace(s.message.String()) }

// speak reads text for people.
func (s *Speech) speak(text string) {
	s.message.WriteString(text)
	for _, r := range text {
		if s.Full() {
			return
		}
		s.letter(r)
	}
}

// Flush ends a message and returns the rest of its replies. The next message of the turn, for example after a
// tool call, keeps the face of this one unless it sets another.
func (s *Speech) Flush() []agent.Reply { return s.flush(false) }

// FlushSentence is Flush if the text ends like a sentence. It is for a model whose sound follows its text: whether more
// letters follow the last sentence shows only after the sound.
func (s *Speech) FlushSentence() []agent.Reply {
	if len(s.cut.text) == 0 && s.pending == "" {
		return nil
	}
	if last, _ := utf8.DecodeLastRuneInString(s.Text()); !strings.ContainsRune(".!?…。！？", last) {
		return nil
	}
	return s.Flush()
}

// Cut is Flush for a message that was cut off, which may end inside a thought or a call.
func (s *Speech) Cut() []agent.Reply { return s.flush(true) }

// flush is Flush, or Cut if cut is true.
func (s *Speech) flush(cut bool) []agent.Reply {
	text := s.reader.Flush(cut)
	s.think(s.reader.Thoughts() + "\n\n")
	s.speak(text)
	for s.pending != "" {
		s.step(true)
	}
	s.emitSentence(s.cut.flush())
	s.mode, s.line, s.last, s.gap, s.begun = modeText, true, 0, false, false
	return s.drain()
}

// drain returns the replies since the previous drain.
func (s *Speech) drain() []agent.Reply {
	out := s.out
	s.out = nil
	return out
}

// letter reads a letter of the text for people.
func (s *Speech) letter(r rune) {
	s.read++
	if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) {
		return
	}
	s.pending += string(r)
	for s.pending != "" && s.step(false) {
	}
}

// emit adds a letter to the spoken text.
func (s *Speech) emit(r rune) {
	if !unicode.IsSpace(r) {
		s.face(agent.Felt{Emotion: agent.Neutral, Intensity: 1, Assumed: true})
	}
	if s.gap && r == ')' && s.cut.removeLast('(') {
		return // the brackets contained only an address
	}
	if s.gap && (r == '.' || r == ',' || r == '!' || r == '?' || r == ';' || r == ':') {
		s.cut.trimSpace()
	}
	s.gap, s.last, s.line = false, r, false
	s.emitSentence(s.cut.add(r))
}

// comma adds a space between two cells of a table, and a comma if one may stand there.
func (s *Speech) comma() {
	if s.cut.trimSpace(); s.cut.canTakeComma() {
		s.emit(',')
	}
	s.emit(' ')
}

// newline ends a line, and the current sentence.
func (s *Speech) newline() {
	s.emitSentence(s.cut.flush())
	s.line, s.last, s.gap = true, 0, false
}

// emitSentence speaks a sentence, with its units as words. An empty sentence is ignored.
func (s *Speech) emitSentence(sentence string) {
	if language.HasNumber(sentence) {
		if s.units == nil {
			s.units = language.UnitsOf(s.language)
		}
		sentence = s.units.Speak(sentence)
	}
	if sentence != "" && s.spoken < maxSpoken && s.sentences < maxSentences {
		s.spoken += utf8.RuneCountInString(sentence)
		s.sentences++
		s.out = append(s.out, agent.Say{Text: sentence})
	}
}

// face sets the face and adds it to the replies. An assumed face is for a message that begins without
// a face; it does not replace the face of an earlier message.
func (s *Speech) face(f agent.Felt) {
	if f.Assumed && (s.begun || s.faced) {
		s.begun = true
		return
	}
	s.begun, s.faced, s.felt = true, true, f
	s.out = append(s.out, f)
}
