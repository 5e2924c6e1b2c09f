package sphinx

import (
	"errors"
	"fmt"
	"slices"
)

// Limits of a grammar with every rule written out wherever it is used, as the library
// does.
const (
	largest   = 10000 // words; they take 2 to 3 kB each
	mostMaybe = 100   // optional parts in a rule that an utterance may be; a row of 400 takes 2 s to compile
)

// Check reports everything in g, optional rules included, that the library cannot
// handle: text that is not JSGF, rules that are undefined, defined twice or recursive,
// and words that the dictionary in the directory model lacks. Each fault is a sentence
// that begins with the rule's Source; they are joined by errors.Join. The library
// itself rejects the whole grammar for an unknown word and ignores an undefined rule.
//
// It reads the dictionary, about 3 MB; if that is missing the error wraps
// voice.ErrUnavailable.
func Check(g Grammar, model string) error {
	_, left, err := check(g, model)
	return errors.Join(err, errors.Join(left...))
}

// usable returns g without its faulty optional rules, the pronunciations that it needs,
// and the faults of the rules left out.
func usable(g Grammar, model string) (Grammar, []pronunciation, []error, error) {
	var why []error
	for {
		words, left, err := check(g, model)
		if err != nil || len(left) == 0 {
			return g, words, why, err
		}
		why = append(why, left...)
		out := map[string]bool{}
		for _, fault := range left {
			var of ruleFault
			if errors.As(fault, &of) {
				out[of.rule] = true
			}
		}
		is := func(name string) bool { return out[name] }
		g.Top, g.Answer = slices.DeleteFunc(slices.Clone(g.Top), is), slices.DeleteFunc(slices.Clone(g.Answer), is)
		g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r Rule) bool { return out[r.Name] })
	}
}

// ruleFault is a fault of a rule.
type ruleFault struct {
	error
	rule string
}

func (f ruleFault) Unwrap() error { return f.error }

// check is Check, and also returns the pronunciations that the grammar needs. The faults
// of optional rules are returned separately.
func check(g Grammar, model string) (words []pronunciation, left []error, err error) {
	c := checker{rules: make(map[string]*checked, len(g.Rules)), optional: g.Optional}
	for _, r := range g.Rules {
		c.define(r)
	}
	for _, r := range c.order {
		c.references(r)
	}
	if len(g.Top) == 0 {
		c.faults = append(c.faults, errors.New("the grammar has no top rule, so no sentence"))
	}
	c.utterances("top", g.Top)
	c.utterances("answer", g.Answer)
	found, err := c.pronounce(model)
	if err != nil {
		return nil, c.left, errors.Join(append(c.faults, err)...)
	}
	return inOrder(found), c.left, errors.Join(c.faults...)
}

// checked is a rule and, once counted, its size when written out.
type checked struct {
	Rule
	expansion
	size int // in words; 0 is not counted yet, -1 is being counted
}

type checker struct {
	rules  map[string]*checked
	order  []*checked
	faults []error

	optional []string // names of rules
	left     []error  // faults of the optional rules
}

// fault records a fault of r.
func (c *checker) fault(r Rule, why error) {
	of := fmt.Errorf("%s: %w", r.Source, why)
	if r.Source == "" {
		of = fmt.Errorf("rule %s: %w", r.Name, why)
	}
	err := ruleFault{of, r.Name}
	if slices.Contains(c.optional, r.Name) {
		c.left = append(c.left, err)
		return
	}
	c.faults = append(c.faults, err)
}

func (c *checker) define(r Rule) {
	if !ruleName(r.Name) {
		c.fault(r, fmt.Errorf(`%q is not the name of a rule: lower-case letters, digits, "_" and "-"`, r.Name))
		return
	}
	if first, taken := c.rules[r.Name]; taken {
		c.fault(r, fmt.Errorf("the rule <%s> is defined before, at %s", r.Name, first.Source))
		return
	}
	e, err := parse(r.Body)
	if err != nil {
		c.fault(r, fmt.Errorf("the rule <%s> cannot be read: %w", r.Name, err))
	}
	// A rule that cannot be read is defined too, so that its users are not
	// reported as well.
	added := &checked{Rule: r, expansion: e}
	c.rules[r.Name] = added
	c.order = append(c.order, added)
}

func (c *checker) references(r *checked) {
	for _, name := range unique(r.refs) {
		if c.rules[name] == nil {
			c.fault(r.Rule, fmt.Errorf("the rule <%s> is not defined", name))
		}
	}
	if r.size == 0 {
		c.count(r, 0)
	}
}

// count writes r out and counts. Counts are capped at their limits, so that nested
// rules cannot overflow them.
func (c *checker) count(r *checked, depth int) {
	if r.size > 0 {
		return
	}
	if r.size < 0 || depth > deepest {
		c.fault(r.Rule, fmt.Errorf("the rule <%s> is part of itself, or more than %d rules deep", r.Name, deepest))
		return
	}
	r.size = -1
	size := 1 + len(r.words)
	for _, name := range r.refs {
		if of := c.rules[name]; of != nil {
			c.count(of, depth+1)
			size = min(size+of.size, largest+1)
			r.maybe = min(r.maybe+of.maybe, mostMaybe+1)
		}
	}
	r.size = size
}

// utterances checks the rules that a whole utterance may be.
func (c *checker) utterances(kind string, names []string) {
	all := 0
	for _, name := range names {
		r := c.rules[name]
		if r == nil {
			c.faults = append(c.faults, fmt.Errorf("the %s rule <%s> is not defined", kind, name))
			continue
		}
		if slices.Contains(c.optional, name) && all+r.size > largest {
			c.fault(r.Rule,
				fmt.Errorf("with the rule <%s> the grammar has more than %d words when its %s rules are written out", name, largest, kind))
			continue
		}
		all += r.size
		if r.maybe > mostMaybe {
			c.fault(r.Rule, fmt.Errorf("the rule <%s> has more than %d optional parts when its rules are written out", name, mostMaybe))
		}
	}
	if all > largest {
		c.faults = append(c.faults, fmt.Errorf("the grammar has more than %d words when its %s rules are written out", largest, kind))
	}
}

// pronounce looks up every word.
func (c *checker) pronounce(model string) (map[string][]pronunciation, error) {
	words := make(map[string]bool)
	for _, r := range c.order {
		for _, w := range r.words {
			words[w] = true
		}
	}
	found, err := lookUp(model, words)
	if err != nil {
		return nil, err
	}
	for _, r := range c.order {
		for _, w := range unique(r.words) {
			if len(found[w]) == 0 {
				c.fault(r.Rule, fmt.Errorf("the word %q is not in the recognizer's dictionary; spell it another way or leave the sentence out", w))
			}
		}
	}
	return found, nil
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
