package reflex

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"perch/language"
)

// node is a node of the syntax tree of a sentence: a word, slot, sequence, choice or option.
// Sentences are written as follows:
//
//	turn (the volume up|up the volume) [please]
//	set the volume to {number} [percent]
//	{hour:number}時{minute:number}分に起こして
//
// A slot {name} is filled by an entry of the list with the slot's name, and {name:list} by
// an entry of the list after the colon.
type node interface {
	// jsgf writes the node as an expansion in the Java Speech Grammar Format.
	jsgf(b *strings.Builder)
	// match matches the words of m from index start. It calls next with the end index of each
	// possible match until next returns true, and reports whether next has returned true.
	match(m *matcher, start int, next func(end int) bool) bool
}

type (
	word     string                      // a word, as returned by language.Split
	slot     struct{ name, list string } // name of the slot and of its list
	sequence []node
	choice   []node              // matches one of the nodes
	option   struct{ node node } // matches the node or nothing
)

// maxDepth is the maximum depth of a sentence, which is 1 without brackets, and one more for
// each nested bracket. Owners write two or three brackets.
const maxDepth = 16

// parser parses a sentence.
type parser struct {
	text  string // the rest of the sentence
	depth int    // see maxDepth; 1 outside of brackets
}

// parseSentence parses a sentence, or returns the reason why it is invalid.
func parseSentence(text string) (node, error) {
	p := &parser{text: language.Fold(text)}
	n, err := p.parseChoice()
	if err != nil {
		return nil, err
	}
	if p.text != "" {
		return nil, fmt.Errorf("unexpected %q", p.text[:1])
	}
	if canBeEmpty(n) {
		return nil, errors.New("a sentence of no words")
	}
	return n, nil
}

// parseChoice parses sequences separated by bars.
func (p *parser) parseChoice() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("brackets nested more than %d deep", maxDepth-1)
	}
	defer func() { p.depth-- }()
	var alternatives choice
	for {
		s, err := p.parseSequence()
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, s)
		if !p.accept("|") {
			break
		}
	}
	if len(alternatives) == 1 {
		return alternatives[0], nil
	}
	return alternatives, nil
}

// parseSequence parses nodes up to a bar, a closing bracket or the end.
func (p *parser) parseSequence() (node, error) {
	var s sequence
	for {
		p.text = strings.TrimLeft(p.text, " \t")
		n, err := p.parseNode()
		if err != nil {
			return nil, err
		}
		if n == nil {
			return s, nil
		}
		s = append(s, n)
	}
}

// parseNode parses a node. It returns nil at the end of a sequence.
func (p *parser) parseNode() (node, error) {
	switch {
	case p.text == "" || strings.ContainsRune("|)]", rune(p.text[0])):
		return nil, nil
	case p.accept("("):
		return p.parseBracket(")")
	case p.accept("["):
		n, err := p.parseBracket("]")
		return option{n}, err
	case p.accept("{"):
		name, rest, isClosed := strings.Cut(p.text, "}")
		name, list, hasList := strings.Cut(name, ":")
		if !hasList {
			list = name
		}
		if !isClosed || !isName(name) || !isName(list) {
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
		return nil, fmt.Errorf("%q is not a word: letters, apostrophes and hyphens only", w)
	}
	p.text = p.text[end:]
	return newWords(language.Split(w)), nil
}

// newWords returns a node that matches these words.
func newWords(words []string) node {
	if len(words) == 1 {
		return word(words[0])
	}
	s := make(sequence, len(words))
	for i, w := range words {
		s[i] = word(w)
	}
	return s
}

// parseBracket parses the rest of a bracket whose opening sign has been parsed.
func (p *parser) parseBracket(closing string) (node, error) {
	n, err := p.parseChoice()
	if err != nil {
		return nil, err
	}
	if !p.accept(closing) {
		return nil, fmt.Errorf("a %q is missing", closing)
	}
	return n, nil
}

// accept skips s and the spaces before it, and reports whether the rest of the text began
// with them.
func (p *parser) accept(s string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.text, " \t"), s)
	if ok {
		p.text = rest
	}
	return ok
}

// isWord reports whether a folded text is a word, words joined by hyphens, or text of a
// script without spaces.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.Cf) && !language.Spaceless(r) && r != '\'' && r != '-'
	}) && len(language.Split(s)) > 0
}

// isName reports whether s can be the name of a slot or list.
func isName(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" }

// canBeEmpty reports whether a node matches without any words.
func canBeEmpty(n node) bool {
	switch n := n.(type) {
	case option:
		return true
	case sequence:
		return !slices.ContainsFunc(n, func(part node) bool { return !canBeEmpty(part) })
	case choice:
		return slices.ContainsFunc(n, canBeEmpty)
	}
	return false
}

// slots returns the slots in n, in the order of the text.
func slots(n node) (found []slot) {
	var parts []node
	switch n := n.(type) {
	case slot:
		return []slot{n}
	case option:
		parts = []node{n.node}
	case sequence:
		parts = n
	case choice:
		parts = n
	}
	for _, part := range parts {
		found = append(found, slots(part)...)
	}
	return found
}
