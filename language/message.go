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

// part is a text, or a placeholder for a value.
type part struct {
	text  string                 // the text; empty for a placeholder
	value string                 // name of the value; "" for a text
	forms map[plural.Form]string // for a number: the text of each plural form, with # in place of the number; otherwise nil
}

// pluralForms returns the plural forms by their names in CLDR.
func pluralForms() map[string]plural.Form {
	return map[string]plural.Form{"zero": plural.Zero, "one": plural.One, "two": plural.Two, "few": plural.Few, "many": plural.Many,
		"other": plural.Other}
}

// formOf returns the plural form that a language uses for a whole number.
func formOf(tag Tag, n int) plural.Form {
	return plural.Cardinal.MatchPlural(language.Make(string(tag)), max(n, -n), 0, 0, 0, 0)
}

// formsOf returns the plural forms of a language for whole numbers. Numbers from 200 have
// the same forms as smaller numbers.
func formsOf(tag Tag) (forms []plural.Form) {
	for n := range 200 {
		if f := formOf(tag, n); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	return forms
}

// parse parses a message. A placeholder with plural forms must have exactly the forms of
// the language.
func parse(text string, tag Tag) (m message, err error) {
	for text != "" {
		before, rest, hasPlaceholder := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a } has no {")
		}
		if before != "" {
			m = append(m, part{text: before})
		}
		if !hasPlaceholder {
			break
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(inner, "{") {
			return nil, errors.New("a { has no matching }")
		}
		p, err := parsePlaceholder(inner, tag)
		if err != nil {
			return nil, err
		}
		m, text = append(m, p), after
	}
	return m, nil
}

// parsePlaceholder parses the text between the braces of a placeholder.
func parsePlaceholder(inner string, tag Tag) (part, error) {
	name, forms, hasForms := strings.Cut(inner, ",")
	p := part{value: name}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		return p, fmt.Errorf("{%s} is not the name of a value: a name has only a to z, 0 to 9 and _", inner)
	}
	if !hasForms {
		return p, nil
	}
	p.forms = map[plural.Form]string{}
	last := plural.Other
	for i, f := range strings.Split(forms, ",") {
		word, text, found := strings.Cut(f, ":")
		form, known := pluralForms()[strings.TrimSpace(word)]
		switch {
		case found && known:
			if _, exists := p.forms[form]; exists {
				return p, fmt.Errorf("{%s} has the form %q twice", inner, strings.TrimSpace(word))
			}
			p.forms[form], last = strings.TrimSpace(text), form
		case i > 0:
			p.forms[last] += "," + f // the comma belongs to the text of a form
		default:
			return p, fmt.Errorf("{%s}: %q is not a plural form such as one or other", inner, strings.TrimSpace(word))
		}
	}
	required := formsOf(tag)
	for _, f := range required {
		if _, exists := p.forms[f]; !exists {
			return p, fmt.Errorf("{%s} lacks the form %q, which %s has", inner, nameOf(f), tag)
		}
	}
	for f := range p.forms {
		if !slices.Contains(required, f) {
			return p, fmt.Errorf("{%s} has the form %q, which %s does not have", inner, nameOf(f), tag)
		}
	}
	return p, nil
}

// nameOf returns CLDR's name of a plural form.
func nameOf(form plural.Form) string {
	for name, f := range pluralForms() {
		if f == form {
			return name
		}
	}
	return ""
}

// fill returns the message with values in place of the placeholders. value returns the value
// with a name. A placeholder whose value is unknown becomes {name}, without its plural forms.
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
