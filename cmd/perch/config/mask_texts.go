package config

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// secretTexts are the secrets of a configuration, which are not shown anywhere: by an alias,
// as a copy, in a comment or in what is wrong with it.
type secretTexts struct {
	whole  map[string]bool
	within *strings.Replacer // nil hides nothing
}

// shortestSecret is how long a secret has to be to be looked for within other texts, in
// bytes. A shorter one is a part of many words.
const shortestSecret = 6

func newSecretTexts(all []string) secretTexts {
	s := secretTexts{whole: map[string]bool{}}
	// Of two that begin the same, the longer one is hidden.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, secret := range slices.Compact(all) {
		if s.whole[secret] = true; len(secret) >= shortestSecret {
			pairs = append(pairs, secret, Mask)
		}
	}
	if len(pairs) > 0 {
		s.within = strings.NewReplacer(pairs...)
	}
	return s
}

// hide is a text without secrets.
func (s secretTexts) hide(text string) string {
	if s.whole[text] {
		return Mask
	}
	if s.within == nil {
		return text
	}
	return s.within.Replace(text)
}

// in reports whether a secret is within a text.
func (s secretTexts) in(text string) bool { return s.within != nil && s.within.Replace(text) != text }

// without is a text of lines without secrets. It is an error where that changes which lines
// there are.
func (s secretTexts) without(text string) (string, error) {
	shown := s.hide(text)
	if strings.Count(shown, "\n") != strings.Count(text, "\n") {
		return "", ErrHidden
	}
	return shown, nil
}

// value is a value of JSON without secrets.
func (s secretTexts) value(v any) any {
	switch v := v.(type) {
	case string:
		return s.hide(v)
	case []any:
		for i, one := range v {
			v[i] = s.value(one)
		}
	case map[string]any:
		shown := map[string]any{}
		for key, one := range v {
			shown[s.hide(key)] = s.value(one)
		}
		return shown
	}
	return v
}

func (s secretTexts) faults(all []Fault) []Fault {
	for i, f := range all {
		all[i].Key = s.hide(f.Key)
		all[i].Message = s.hide(f.Message)
	}
	return all
}

// textsOf are a secret, and the password within it where it is an address or a flag.
func textsOf(value string) []string {
	all := []string{value}
	if _, after, is := strings.Cut(value, "://"); is {
		account, _, _ := strings.Cut(after, "/")
		if at := strings.LastIndexByte(account, '@'); at > 0 {
			if _, password, is := strings.Cut(account[:at], ":"); is && password != "" {
				all = append(all, password)
				if plain, err := url.PathUnescape(password); err == nil {
					all = append(all, plain)
				}
			}
		}
	}
	if _, password, is := strings.Cut(value, "="); is && secretFlag().MatchString(value) && password != "" {
		all = append(all, password)
	}
	return all
}

// textsOfLines are the secrets of a text that is no YAML, as far as they have names. They
// are in the lines that maskedLines shows otherwise.
func textsOfLines(text, shown string) (all []string) {
	lines := strings.Split(shown, "\n")
	for i, line := range strings.Split(text, "\n") {
		if i >= len(lines) || line == lines[i] {
			continue
		}
		for _, m := range inComment().FindAllStringSubmatch(line, -1) {
			if value := strings.Trim(m[3], `"'`); secretName(m[1]) && value != "" {
				all = append(all, value)
			}
		}
	}
	return all
}

// textsIn are the secrets of a text, and of the configuration that was read of it and of
// the environment. known is whether the text is YAML that could be read.
func textsIn(text string, known bool, c *Config) secretTexts {
	var all []string
	if known { // nothing is read of any other
		if d, err := parse(text); err == nil {
			_, all, _ = d.secrets() // one that cannot be hidden in its place is hidden elsewhere
		}
	}
	eachText(nil, reflect.ValueOf(c).Elem(), func(path []string, value string) {
		if value != "" && (isSecret(path) || addressed(path, value)) {
			all = append(all, textsOf(value)...)
		}
	})
	return newSecretTexts(all)
}

// eachText calls do for every text of a section of the configuration.
func eachText(path []string, v reflect.Value, do func(path []string, value string)) {
	switch v.Kind() {
	case reflect.String:
		do(path, v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachText(append(slices.Clone(path), fieldKey(f)), v.Field(i), do)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(path, v.Index(i), do)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			eachText(append(slices.Clone(path), key.String()), v.MapIndex(key), do)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(path, v.Elem(), do)
		}
	}
}
