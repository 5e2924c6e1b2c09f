package language

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Said is a sentence that a program says in English, with what other languages need of it:
// its format, which names it in their catalogues (findings.json), and its values. It is an
// error, too. Its JSON is [format, value, ...]; a value is a text, or a sentence again.
type Said struct {
	format string
	values []any // string or *Said
	err    error // in English, with what it wraps
}

// Sayf makes a sentence as fmt.Errorf makes an error. Its format is a literal: a test looks
// for those in the programs.
func Sayf(format string, values ...any) *Said {
	s := &Said{format: format, err: fmt.Errorf(format, values...)}
	for i, at := range verbs(format) {
		if i >= len(values) {
			break // vet finds it
		}
		verb := format[at.from:at.to]
		err, _ := values[i].(error)
		if own := within(err); own != nil {
			s.values = append(s.values, own)
			continue
		}
		if verb == "%w" {
			verb = "%v"
		}
		s.values = append(s.values, fmt.Sprintf(verb, values[i]))
	}
	return s
}

// verb is the place of a value in a format: a percent sign, what may follow, and a letter.
type verb struct{ from, to int }

// verbs are those of a format, which has no percent sign of its own.
func verbs(format string) (all []verb) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		to := i + 1
		for to < len(format) && strings.IndexByte("-+# .0123456789", format[to]) >= 0 {
			to++
		}
		if to < len(format) && (format[to]|0x20 >= 'a' && format[to]|0x20 <= 'z') {
			all = append(all, verb{i, to + 1})
			i = to
		}
	}
	return all
}

// SaidBy is the sentence that an error is, if it is one. What is wrapped in other words is
// none. Of several errors that errors.Join has made one, it has a line each.
func SaidBy(err error) *Said {
	var s *Said
	if err == nil || !errors.As(err, &s) {
		return nil
	}
	if s.Error() == err.Error() {
		return s
	}
	many, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // not what is wrapped below
	if !is {
		return nil
	}
	all := &Said{err: err}
	var lines []string
	for _, one := range many.Unwrap() {
		lines = append(lines, one.Error())
		if own := within(one); own != nil {
			all.values = append(all.values, own)
		} else {
			all.values = append(all.values, one.Error())
		}
	}
	if strings.Join(lines, "\n") != err.Error() {
		return nil
	}
	all.format = strings.Repeat("\n%w", len(lines))[1:]
	return all
}

// within is SaidBy for what is a value of a sentence, which is not deeper than can be read.
func within(err error) *Said {
	if s := SaidBy(err); s.depth() < deepest {
		return s
	}
	return nil
}

// depth is how many sentences are within each other.
func (s *Said) depth() int {
	if s == nil {
		return 0
	}
	most := 0
	for _, value := range s.values {
		if own, is := value.(*Said); is {
			most = max(most, own.depth())
		}
	}
	return 1 + most
}

// With is the sentence with its values changed, also those of sentences within it. It wraps
// what the sentence does.
func (s *Said) With(change func(value string) string) *Said {
	all, texts := make([]any, len(s.values)), make([]string, len(s.values))
	for i, value := range s.values {
		switch value := value.(type) {
		case *Said:
			own := value.With(change)
			all[i], texts[i] = own, own.Error()
		case string:
			texts[i] = change(value)
			all[i] = texts[i]
		}
	}
	return &Said{s.format, all, reworded{s.err, filled(s.format, texts)}}
}

// reworded is an error in other words.
type reworded struct {
	error
	text string
}

func (r reworded) Error() string { return r.text }
func (r reworded) Unwrap() error { return r.error }

// Error is the sentence in English.
func (s *Said) Error() string { return s.err.Error() }

// Unwrap is for errors.Is.
func (s *Said) Unwrap() error { return s.err }

// MarshalJSON implements json.Marshaler.
func (s *Said) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]any{s.format}, s.values...))
}

// deepest bounds how far sentences are within sentences.
const deepest = 8

// UnmarshalJSON implements json.Unmarshaler: a command has asked an appliance.
func (s *Said) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	read, err := said(all, deepest)
	if err == nil {
		*s = *read
	}
	return err
}

func said(all []json.RawMessage, depth int) (*Said, error) {
	if len(all) == 0 || depth == 0 {
		return nil, errors.New("a sentence is a list of its format and its values")
	}
	s := &Said{}
	if err := json.Unmarshal(all[0], &s.format); err != nil {
		return nil, err
	}
	var texts []string
	for _, value := range all[1:] {
		var plain string
		var within []json.RawMessage
		if json.Unmarshal(value, &plain) == nil {
			s.values, texts = append(s.values, plain), append(texts, plain)
			continue
		}
		if err := json.Unmarshal(value, &within); err != nil {
			return nil, err
		}
		own, err := said(within, depth-1)
		if err != nil {
			return nil, err
		}
		s.values, texts = append(s.values, own), append(texts, own.Error())
	}
	s.err = errors.New(filled(s.format, texts))
	return s, nil
}

// filled is a format with its values, which are written as they are.
func filled(format string, values []string) string {
	var text strings.Builder
	from := 0
	for i, at := range verbs(format)[:min(len(values), len(verbs(format)))] {
		text.WriteString(format[from:at.from] + values[i])
		from = at.to
	}
	return text.String() + format[from:]
}

// KeyError is an error of one key of a configuration, with which its text begins.
type KeyError struct {
	Key string
	Why error
}

// OfKey makes one.
func OfKey(key string, why error) error { return KeyError{key, why} }

func (e KeyError) Error() string { return e.Key + ": " + e.Why.Error() }

// Unwrap is a sentence of both.
func (e KeyError) Unwrap() error { return Sayf("%s: %w", e.Key, e.Why) }
