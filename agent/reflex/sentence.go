package reflex

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"perch/language"
)

// node is a node of a sentence's syntax tree. Sentences are written as follows:
//
//	turn (the volume up|up the volume) [please]
//	set the volume to {number} [percent]
//	{hour:number}時{minute:number}分に起こして
//
// A slot is filled by an entry of the list of its name, or of the list after the colon.
// The set of nodes is closed: word, slot, sequence, choice and option.
type node interface {
	// jsgf writes the node as an expansion of the Java Speech Grammar Format.
	jsgf(b *strings.Builder)
	// match matches words from position at. It calls then with the end position of each
	// possible match, until then returns true.
	match(m *matcher, at int, then func(at int) bool) bool
}

type (
	word     string // as split by language.Split
	slot     struct{ name, list string }
	sequence []node
	choice   []node
	option   struct{ of node }
)

// mostDepth bounds brackets within brackets; a person writes two or three.
const mostDepth = 16

// parser parses one sentence.
type parser struct {
	text  string
	depth int
}

// parseSentence parses a sentence. Its error is the reason why it is invalid.
func parseSentence(text string) (node, error) {
	p := &parser{text: language.Fold(text)}
	n, err := p.choices()
	if err != nil {
		return nil, err
	}
	if p.text != "" {
		return nil, fmt.Errorf("unexpected %q", p.text[:1])
	}
	if empty(n) {
		return nil, errors.New("a sentence of no words")
	}
	return n, nil
}

// choices parses sequences separated by bars.
func (p *parser) choices() (node, error) {
	if p.depth++; p.depth > mostDepth {
		return nil, fmt.Errorf("brackets nested more than %d deep", mostDepth)
	}
	defer func() { p.depth-- }()
	var all choice
	for {
		s, err := p.sequence()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if !p.accept("|") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *parser) sequence() (node, error) {
	var s sequence
	for {
		p.text = strings.TrimLeft(p.text, " \t")
		n, err := p.one()
		if err != nil {
			return nil, err
		}
		if n == nil {
			return s, nil
		}
		s = append(s, n)
	}
}

// one parses a node; it returns nil at the end of a sequence.
func (p *parser) one() (node, error) {
	switch {
	case p.text == "" || strings.ContainsRune("|)]", rune(p.text[0])):
		return nil, nil
	case p.accept("("):
		return p.closed(")")
	case p.accept("["):
		n, err := p.closed("]")
		return option{n}, err
	case p.accept("{"):
		name, rest, found := strings.Cut(p.text, "}")
		name, list, other := strings.Cut(name, ":")
		if !other {
			list = name
		}
		if !found || !isName(name) || !isName(list) {
			return nil, errors.New("a slot is written {name}, or {name:list}")
		}
		p.text = rest
		return slot{name, list}, nil
	}
	end := strings.IndexAny(p.text, " \t|()[]{}")
	if end < 0 {
		end = len(p.text)
	}
	w := p.text[:end]
	if !isWord(w) {
		return nil, fmt.Errorf("%q is no word: letters, apostrophes and hyphens only", w)
	}
	p.text = p.text[end:]
	return wordsOf(language.Split(w)), nil
}

// wordsOf returns a node for one word or for a sequence of words.
func wordsOf(words []string) node {
	if len(words) == 1 {
		return word(words[0])
	}
	all := make(sequence, len(words))
	for i, w := range words {
		all[i] = word(w)
	}
	return all
}

func (p *parser) closed(by string) (node, error) {
	n, err := p.choices()
	if err != nil {
		return nil, err
	}
	if !p.accept(by) {
		return nil, fmt.Errorf("a %q is missing", by)
	}
	return n, nil
}

func (p *parser) accept(s string) bool {
	rest, found := strings.CutPrefix(strings.TrimLeft(p.text, " \t"), s)
	if found {
		p.text = rest
	}
	return found
}

// isWord reports whether a folded text is a word, or several joined by hyphens or
// without spaces.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.Cf) && !language.Spaceless(r) && r != '\'' && r != '-'
	}) && len(language.Split(s)) > 0
}

func isName(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" }

// empty reports whether a node can match no words at all.
func empty(n node) bool {
	switch n := n.(type) {
	case option:
		return true
	case sequence:
		return !slices.ContainsFunc(n, func(part node) bool { return !empty(part) })
	case choice:
		return slices.ContainsFunc(n, empty)
	}
	return false
}

// slots returns the slots in n, in the order of the text.
func slots(n node) (all []slot) {
	var parts []node
	switch n := n.(type) {
	case slot:
		return []slot{n}
	case option:
		parts = []node{n.of}
	case sequence:
		parts = n
	case choice:
		parts = n
	}
	for _, part := range parts {
		all = append(all, slots(part)...)
	}
	return all
}
