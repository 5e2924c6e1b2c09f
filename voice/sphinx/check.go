package sphinx

import (
	"errors"
	"fmt"
	"slices"
)

// Limits of a grammar. The library expands rules wherever they are used; the limits are for
// the expanded rules.
const (
	maxWords    = 10000 // words of all top rules, or of all answer rules; the library needs 2 to 3 kB for each word
	maxOptional = 100   // optional parts of a top or answer rule; 400 in a row take 2 s to compile
)

// Check returns an error that joins all faults of a grammar, including those of optional rules.
// Faults are text that is not JSGF; rules that are undefined, defined twice or recursive; words
// that are not in the dictionary; a grammar without top rules; and a grammar that exceeds the
// limits. The text of a rule's fault begins with the rule's Source. The library itself would ignore
// undefined rules, and reject the whole grammar because of one unknown word.
//
// model is the directory of the model. Check reads its dictionary, about 3 MB; the error
// wraps voice.ErrUnavailable if the dictionary is missing.
func Check(g Grammar, model string) error {
	_, optional, err := check(g, model)
	return errors.Join(err, errors.Join(optional...))
}

// removeFaulty removes the faulty optional rules of g. It returns the remaining grammar, the
// pronunciations that this grammar needs, and the faults of the removed rules.
func removeFaulty(g Grammar, model string) (_ Grammar, words []pronunciation, faults []error, err error) {
	for {
		words, optional, err := check(g, model)
		if err != nil || len(optional) == 0 {
			return g, words, faults, err
		}
		faults = append(faults, optional...)
		removed := map[string]bool{} // key: name of the rule
		for _, f := range optional {
			var fault ruleFault
			if errors.As(f, &fault) {
				removed[fault.rule] = true
			}
		}
		isRemoved := func(name string) bool { return removed[name] }
		g.Top, g.Answer = slices.DeleteFunc(slices.Clone(g.Top), isRemoved), slices.DeleteFunc(slices.Clone(g.Answer), isRemoved)
		g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r Rule) bool { return removed[r.Name] })
	}
}

// ruleFault is a fault together with the rule that has it.
type ruleFault struct {
	error
	rule string // name of the rule
}

// Unwrap returns the fault without the rule's name.
func (f ruleFault) Unwrap() error { return f.error }

// check returns the pronunciations that a grammar needs, the faults of its optional rules,
// and an error that joins all other faults.
func check(g Grammar, model string) (words []pronunciation, optional []error, err error) {
	c := checker{rules: make(map[string]*parsedRule, len(g.Rules)), optional: g.Optional}
	for _, r := range g.Rules {
		c.addRule(r)
	}
	for _, r := range c.order {
		c.checkReferences(r)
	}
	if len(g.Top) == 0 {
		c.faults = append(c.faults, errors.New("the grammar has no top rule, and therefore no sentences"))
	}
	c.checkUtterances("top", g.Top)
	c.checkUtterances("answer", g.Answer)
	found, err := c.checkWords(model)
	if err != nil {
		return nil, c.optionalFaults, errors.Join(append(c.faults, err)...)
	}
	return sorted(found), c.optionalFaults, errors.Join(c.faults...)
}

// parsedRule is a rule with its parsed body. checker.count replaces its number of optional parts
// by the number in the expanded rule.
type parsedRule struct {
	Rule
	expansion
	size int // 1 + number of words of the expanded rule; 0 before checker.count, and -1 during it
}

// checker checks the rules of a grammar.
type checker struct {
	rules  map[string]*parsedRule // key: name
	order  []*parsedRule          // in the order of the grammar
	faults []error

	optional       []string // names of optional rules
	optionalFaults []error  // faults of optional rules, which faults does not contain
}

func (c *checker) addFault(r Rule, fault error) {
	err := fmt.Errorf("%s: %w", r.Source, fault)
	if r.Source == "" {
		err = fmt.Errorf("rule %s: %w", r.Name, fault)
	}
	err = ruleFault{err, r.Name}
	if slices.Contains(c.optional, r.Name) {
		c.optionalFaults = append(c.optionalFaults, err)
		return
	}
	c.faults = append(c.faults, err)
}

// addRule parses and adds a rule.
func (c *checker) addRule(r Rule) {
	if !isRuleName(r.Name) {
		c.addFault(r, fmt.Errorf(`%q is not the name of a rule: lower-case letters, digits, "_" and "-"`, r.Name))
		return
	}
	if first, ok := c.rules[r.Name]; ok {
		c.addFault(r, fmt.Errorf("the rule <%s> is already defined, at %s", r.Name, first.Source))
		return
	}
	e, err := parse(r.Body)
	if err != nil {
		c.addFault(r, fmt.Errorf("the rule <%s> cannot be read: %w", r.Name, err))
	}
	// Even a rule that cannot be parsed is added, so that rules that use it are not reported.
	added := &parsedRule{Rule: r, expansion: e}
	c.rules[r.Name] = added
	c.order = append(c.order, added)
}

// checkReferences checks that the rules that r uses are defined and not recursive.
func (c *checker) checkReferences(r *parsedRule) {
	for _, name := range unique(r.refs) {
		if c.rules[name] == nil {
			c.addFault(r.Rule, fmt.Errorf("the rule <%s> is not defined", name))
		}
	}
	if r.size == 0 {
		c.count(r, 0)
	}
}

// count sets the size and the number of optional parts of the expanded rule r. It stops
// counting above the limits, so that nested rules cannot overflow an integer.
func (c *checker) count(r *parsedRule, depth int) {
	if r.size > 0 {
		return
	}
	if r.size < 0 || depth > maxDepth {
		c.addFault(r.Rule, fmt.Errorf("the rule <%s> is part of itself, or more than %d rules deep", r.Name, maxDepth))
		return
	}
	r.size = -1
	size := 1 + len(r.words)
	for _, name := range r.refs {
		if used := c.rules[name]; used != nil {
			c.count(used, depth+1)
			size = min(size+used.size, maxWords+1)
			r.optionalParts = min(r.optionalParts+used.optionalParts, maxOptional+1)
		}
	}
	r.size = size
}

// checkUtterances checks the top rules or the answer rules; kind is "top" or "answer".
func (c *checker) checkUtterances(kind string, names []string) {
	total := 0
	for _, name := range names {
		r := c.rules[name]
		if r == nil {
			c.faults = append(c.faults, fmt.Errorf("the %s rule <%s> is not defined", kind, name))
			continue
		}
		if slices.Contains(c.optional, name) && total+r.size > maxWords {
			c.addFault(r.Rule,
				fmt.Errorf("with the rule <%s> the grammar has more than %d words when its %s rules are written out", name, maxWords, kind))
			continue
		}
		total += r.size
		if r.optionalParts > maxOptional {
			c.addFault(r.Rule, fmt.Errorf("the rule <%s> has more than %d optional parts when its rules are written out", name, maxOptional))
		}
	}
	if total > maxWords {
		c.faults = append(c.faults, fmt.Errorf("the grammar has more than %d words when its %s rules are written out", maxWords, kind))
	}
}

// checkWords checks that all words are in the dictionary, and returns their pronunciations;
// the key is the word.
func (c *checker) checkWords(model string) (map[string][]pronunciation, error) {
	words := make(map[string]bool)
	for _, r := range c.order {
		for _, w := range r.words {
			words[w] = true
		}
	}
	found, err := readDictionary(model, words)
	if err != nil {
		return nil, err
	}
	for _, r := range c.order {
		for _, w := range unique(r.words) {
			if len(found[w]) == 0 {
				c.addFault(r.Rule, fmt.Errorf("the word %q is not in the recognizer's dictionary; spell it another way or leave the sentence out", w))
			}
		}
	}
	return found, nil
}

// unique returns names sorted and without duplicates.
func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
