package sphinx

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a rule. People write much smaller rules.
const (
	maxBody  = 16 << 10 // bytes
	maxDepth = 20       // nested groups, or nested rules
)

// expansion is the contents of the body of a rule. words and refs may contain duplicates.
type expansion struct {
	words         []string
	refs          []string // names of other rules
	optionalParts int      // number of optional parts
}

// parser parses the body of a rule: a JSGF expansion (section 4), but without weights, tags
// and quoted tokens, and without * and +, which make commands of any length possible.
type parser struct {
	rest  string // the part that has not been parsed
	depth int    // depth of nested groups
	out   expansion
}

// parse parses the body of a rule.
func parse(body string) (expansion, error) {
	if len(body) > maxBody {
		return expansion{}, fmt.Errorf("longer than %d bytes", maxBody)
	}
	p := parser{rest: body}
	if err := p.parseAlternatives(); err != nil {
		return expansion{}, err
	}
	if p.rest != "" {
		return expansion{}, fmt.Errorf("%q has no opening bracket", p.rest[:1])
	}
	return p.out, nil
}

// parseAlternatives parses sequences separated by bars, up to a closing bracket or the end.
func (p *parser) parseAlternatives() error {
	for {
		if err := p.parseSequence(); err != nil {
			return err
		}
		if p.peek() != '|' {
			return nil
		}
		p.rest = p.rest[1:]
	}
}

// parseSequence parses words, rules and groups up to a bar, a closing bracket or the end.
func (p *parser) parseSequence() error {
	for empty := true; ; empty = false {
		var err error
		switch p.peek() {
		case 0, '|', ')', ']':
			if empty {
				return errors.New("an alternative is empty")
			}
			return nil
		case '(':
			err = p.parseGroup(')')
		case '[':
			err = p.parseGroup(']')
		case '<':
			err = p.parseRef()
		default:
			err = p.parseWord()
		}
		if err != nil {
			return err
		}
	}
}

// parseGroup parses a group from its opening to its closing bracket.
func (p *parser) parseGroup(closing byte) error {
	opening := p.rest[:1]
	p.rest = p.rest[1:]
	if p.depth++; p.depth > maxDepth {
		return fmt.Errorf("more than %d groups within groups", maxDepth)
	}
	if opening == "[" {
		p.out.optionalParts++
	}
	if err := p.parseAlternatives(); err != nil {
		return err
	}
	p.depth--
	if p.peek() != closing {
		return fmt.Errorf("%q is not closed by %q", opening, string(closing))
	}
	p.rest = p.rest[1:]
	return nil
}

// parseRef parses the name of a rule in angle brackets.
func (p *parser) parseRef() error {
	name, rest, closed := strings.Cut(p.rest[1:], ">")
	if !closed || !isRuleName(name) {
		return errors.New(`"<" does not begin the name of a rule: lower-case letters, digits, "_" and "-", then ">"`)
	}
	p.out.refs = append(p.out.refs, name)
	p.rest = rest
	return nil
}

func (p *parser) parseWord() error {
	n := 0
	for n < len(p.rest) && isWordByte(p.rest[n]) {
		n++
	}
	if n == 0 {
		r := []rune(p.rest)[0]
		return fmt.Errorf("%q cannot be part of a word: words are lower-case letters, \"'\", \"-\" and \".\"", r)
	}
	p.out.words = append(p.out.words, p.rest[:n])
	p.rest = p.rest[n:]
	return nil
}

// peek skips white space and returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// isWordByte reports whether c may be part of a word.
func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || c == '\'' || c == '-' || c == '.'
}

// isRuleName reports whether s can be the name of a rule.
func isRuleName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, allowed) == ""
}
