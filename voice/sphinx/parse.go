package sphinx

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a rule, far above what a person writes; larger files are rejected before the
// C library sees them.
const (
	longestBody = 16 << 10 // bytes
	deepest     = 20       // groups within groups, rules within rules
)

// expansion is the contents of a rule's body, duplicates included.
type expansion struct {
	words []string
	refs  []string // the names of other rules
	maybe int      // optional parts
}

// parser parses a rule's body: an expansion of JSGF (section 4) without weights, tags,
// quoted tokens, and the * and + that would make a command endless.
type parser struct {
	rest  string
	depth int
	out   expansion
}

func parse(body string) (expansion, error) {
	if len(body) > longestBody {
		return expansion{}, fmt.Errorf("longer than %d bytes", longestBody)
	}
	p := parser{rest: body}
	if err := p.alternatives(); err != nil {
		return expansion{}, err
	}
	if p.rest != "" {
		return expansion{}, fmt.Errorf("%q closes nothing", p.rest[:1])
	}
	return p.out, nil
}

// alternatives parses sequences separated by bars, up to a closing bracket.
func (p *parser) alternatives() error {
	for {
		if err := p.sequence(); err != nil {
			return err
		}
		if p.peek() != '|' {
			return nil
		}
		p.rest = p.rest[1:]
	}
}

func (p *parser) sequence() error {
	for empty := true; ; empty = false {
		var err error
		switch p.peek() {
		case 0, '|', ')', ']':
			if empty {
				return errors.New("an alternative is empty")
			}
			return nil
		case '(':
			err = p.group(')')
		case '[':
			err = p.group(']')
		case '<':
			err = p.ref()
		default:
			err = p.word()
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) group(closing byte) error {
	opening := p.rest[:1]
	p.rest = p.rest[1:]
	if p.depth++; p.depth > deepest {
		return fmt.Errorf("more than %d groups within groups", deepest)
	}
	if opening == "[" {
		p.out.maybe++
	}
	if err := p.alternatives(); err != nil {
		return err
	}
	p.depth--
	if p.peek() != closing {
		return fmt.Errorf("%q is not closed by %q", opening, string(closing))
	}
	p.rest = p.rest[1:]
	return nil
}

func (p *parser) ref() error {
	name, rest, closed := strings.Cut(p.rest[1:], ">")
	if !closed || !ruleName(name) {
		return errors.New(`"<" does not begin the name of a rule: lower-case letters, digits, "_" and "-", then ">"`)
	}
	p.out.refs = append(p.out.refs, name)
	p.rest = rest
	return nil
}

func (p *parser) word() error {
	n := 0
	for n < len(p.rest) && wordByte(p.rest[n]) {
		n++
	}
	if n == 0 {
		r := []rune(p.rest)[0]
		return fmt.Errorf("%q is no part of a word: words are lower-case letters, \"'\", \"-\" and \".\"", r)
	}
	p.out.words = append(p.out.words, p.rest[:n])
	p.rest = p.rest[n:]
	return nil
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || c == '\'' || c == '-' || c == '.'
}

func ruleName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, allowed) == ""
}
