package language

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// message is a sentence with placeholders for values.
type message []part

// part is a text, a value, or the plural form for a number.
type part struct {
	text  string
	value string                 // its name
	forms map[plural.Form]string // # is the number
}

// pluralForms returns CLDR's names of the forms.
func pluralForms() map[string]plural.Form {
	return map[string]plural.Form{"zero": plural.Zero, "one": plural.One, "two": plural.Two, "few": plural.Few, "many": plural.Many,
		"other": plural.Other}
}

func formOf(tag Tag, n int) plural.Form {
	return plural.Cardinal.MatchPlural(language.Make(string(tag)), max(n, -n), 0, 0, 0, 0)
}

// formsOf returns the forms that a language has for whole numbers up to 200, which
// repeat from there.
func formsOf(tag Tag) (all []plural.Form) {
	for n := range 200 {
		if f := formOf(tag, n); !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// parse parses a message of a language. Its plurals must have exactly the forms of the
// language.
func parse(text string, tag Tag) (m message, err error) {
	for text != "" {
		before, rest, place := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a } has no {")
		}
		if before != "" {
			m = append(m, part{text: before})
		}
		if !place {
			break
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(inner, "{") {
			return nil, errors.New("a { has no } of its own")
		}
		p, err := parsePlace(inner, tag)
		if err != nil {
			return nil, err
		}
		m, text = append(m, p), after
	}
	return m, nil
}

func parsePlace(inner string, tag Tag) (part, error) {
	name, forms, plurals := strings.Cut(inner, ",")
	p := part{value: name}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		return p, fmt.Errorf("{%s} is no name of a value", inner)
	}
	if !plurals {
		return p, nil
	}
	p.forms = map[plural.Form]string{}
	last := plural.Other
	for i, f := range strings.Split(forms, ",") {
		word, text, found := strings.Cut(f, ":")
		form, known := pluralForms()[strings.TrimSpace(word)]
		switch {
		case found && known:
			if _, again := p.forms[form]; again {
				return p, fmt.Errorf("{%s} has the form %q twice", inner, strings.TrimSpace(word))
			}
			p.forms[form], last = strings.TrimSpace(text), form
		case i > 0:
			p.forms[last] += "," + f // a comma within a form
		default:
			return p, fmt.Errorf("{%s}: %q is none of the forms one, other and so on", inner, strings.TrimSpace(word))
		}
	}
	has := formsOf(tag)
	for _, f := range has {
		if _, there := p.forms[f]; !there {
			return p, fmt.Errorf("{%s} lacks the form %q, which %s has", inner, nameOf(f), tag)
		}
	}
	for f := range p.forms {
		if !slices.Contains(has, f) {
			return p, fmt.Errorf("{%s} has the form %q, which %s does not have", inner, nameOf(f), tag)
		}
	}
	return p, nil
}

func nameOf(form plural.Form) string {
	for name, f := range pluralForms() {
		if f == form {
			return name
		}
	}
	return ""
}

// fill puts values into the message. A placeholder without a value stays unchanged.
func (m message) fill(tag Tag, value func(name string) (string, bool)) string {
	var b strings.Builder
	for _, p := range m {
		if p.value == "" {
			b.WriteString(p.text)
			continue
		}
		v, known := value(p.value)
		switch {
		case !known:
			b.WriteString("{" + p.value + "}")
		case p.forms == nil:
			b.WriteString(v)
		default:
			form := plural.Other
			if n, err := strconv.Atoi(v); err == nil {
				form = formOf(tag, n)
			}
			b.WriteString(strings.ReplaceAll(p.forms[form], "#", v))
		}
	}
	return b.String()
}
