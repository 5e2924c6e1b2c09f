package config

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"perch/driver"
)

// Mask stands for a secret where a text is shown.
const Mask = "••••••"

// secretSet stands for the value of a secret where a value is shown.
type secretSet struct {
	Set bool `json:"set"`
}

var (
	errHidden = errors.New("the file is not shown, because it holds a secret over several lines or in a form of its own; " +
		"write it in one line, or put it into a file (key_file, token_file, password_file)")
	errNoYAML = errors.New("the file is not shown, because it is no YAML, in which secrets cannot be found")
)

var (
	secretWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|[_-])(key|apikey|token|password|passwd|secret|authorization)$`)
	})
	secretFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^--?[\w-]*(key|token|password|secret)(=|$)`) })
	inComment  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b([\w-]*(?:key|token|password|passwd|secret|authorization))(["']?[ \t]*:[ \t]+|["']?=)("[^"\n]+"|'[^'\n]+'|[^\s,}\]#"']+)`)
	})
	inRemark    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(^|[ \t])#.*$`) })
	inAddress   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s/@]+@`) })
	secretQuery = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://\S+\?\S*=`) })
)

// secretName reports whether the value of a key with that name is secret. The name decides, so that
// new keys and those of other programs are included.
func secretName(name string) bool { return secretWord().MatchString(name) && name != "public_key" }

// isSecret reports whether a key of the configuration holds a secret itself.
func isSecret(path []string) bool {
	at := strings.Join(path, ".")
	return len(path) > 0 && secretName(path[len(path)-1]) && at != "tls.key" // which names a file
}

// flagOfSecret reports whether an argument of a program is a flag whose value, the next argument, is
// secret.
func flagOfSecret(argument string) bool {
	return secretFlag().MatchString(argument) && !strings.Contains(argument, "=")
}

// addressed reports whether an address contains a secret: a password or a query.
func addressed(path []string, value string) bool {
	if inAddress().MatchString(value) {
		return true
	}
	if len(path) == 0 || path[len(path)-1] != "url" {
		return secretQuery().MatchString(value)
	}
	u, err := url.Parse(value)
	return err != nil || u.User != nil || u.RawQuery != ""
}

// secretTexts holds the secrets of a configuration, which are not shown anywhere: not by an alias, as
// a copy, in a comment or in a fault.
type secretTexts struct {
	whole  map[string]bool
	within *strings.Replacer // nil if no secret is long enough
}

// shortestSecret is the length, in bytes, of the shortest secret that is hidden within other texts. A
// shorter one is a part of many words.
const shortestSecret = 6

func newSecretTexts(all []string) secretTexts {
	s := secretTexts{whole: map[string]bool{}}
	// Longer secrets come first: of two with the same beginning the longer one has to match.
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

// hide returns a text without secrets.
func (s secretTexts) hide(text string) string {
	if s.whole[text] {
		return Mask
	}
	if s.within == nil {
		return text
	}
	return s.within.Replace(text)
}

// in reports whether a text is or contains a secret.
func (s secretTexts) in(text string) bool { return s.hide(text) != text }

// value returns a value of JSON without secrets.
func (s secretTexts) value(v any) any {
	switch v := v.(type) {
	case string:
		if s.in(v) {
			return secretSet{true}
		}
	case []any:
		for i, item := range v {
			v[i] = s.value(item)
		}
	case map[string]any:
		shown := map[string]any{}
		for key, item := range v {
			shown[s.hide(key)] = s.value(item)
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

// textsOf returns a secret, and the password in it if it is an address or a flag.
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

// secretsOf returns the secrets of texts, and of the configuration that was read from them and from
// the environment.
func secretsOf(c *Config, texts ...[]byte) secretTexts {
	var all []string
	for _, text := range texts {
		if root, err := parsed(string(text)); err == nil {
			_, of := secretNodes(root)
			all = append(all, of...)
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
		for _, f := range driver.Fields(v) {
			eachText(append(slices.Clone(path), f.Key), f.Value, do)
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

// secretNodes returns the values of a document that are not shown, and the texts that must not be
// shown anywhere else either: values whose key is a secret's, and values with an anchor, which an
// alias may repeat at any other key.
func secretNodes(root *yaml.Node) (nodes []*yaml.Node, texts []string) {
	seen, anchored := map[*yaml.Node]bool{}, map[*yaml.Node]bool{}
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.AliasNode && n.Alias != nil && !anchored[n.Alias] {
			eachNode(n.Alias, func(below *yaml.Node) { anchored[below] = true })
		}
	})
	hide := func(n *yaml.Node, named bool) {
		if seen[n] || n.Value == "" || n.Tag == "!!bool" {
			return
		}
		seen[n] = true
		nodes = append(nodes, n)
		if named || anchored[n] {
			texts = append(texts, textsOf(n.Value)...)
		}
	}
	for _, top := range root.Content {
		eachSecret(nil, top, false, false, hide)
	}
	return nodes, texts
}

// eachNode calls do for a node and all below it, but not for what aliases stand for.
func eachNode(n *yaml.Node, do func(*yaml.Node)) {
	do(n)
	for _, below := range n.Content {
		eachNode(below, do)
	}
}

// eachScalar calls do for all values that an alias stands for.
func eachScalar(n *yaml.Node, been map[*yaml.Node]bool, do func(*yaml.Node)) {
	if n == nil || been[n] {
		return
	}
	been[n] = true
	if n.Kind == yaml.ScalarNode {
		do(n)
	}
	eachScalar(n.Alias, been, do)
	for _, below := range n.Content {
		eachScalar(below, been, do)
	}
}

// eachSecret calls hide for every value that is secret: with all for every value. named says whether
// that is for a name, and not because the value is in the environment of a program.
func eachSecret(path []string, n *yaml.Node, all, named bool, hide func(n *yaml.Node, named bool)) {
	below := func(key string) []string { return append(slices.Clone(path), key) }
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := below(n.Content[i].Value)
			is := isSecret(at)
			eachSecret(at, n.Content[i+1], all || is || n.Content[i].Value == "env", named || is, hide)
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			flag := i > 0 && flagOfSecret(n.Content[i-1].Value)
			own := strings.Contains(one.Value, "=") && secretFlag().MatchString(one.Value)
			eachSecret(below(strconv.Itoa(i)), one, all || flag || own, named || flag || own, hide)
		}
	case yaml.AliasNode:
		if all && n.Alias != nil {
			eachScalar(n.Alias, map[*yaml.Node]bool{}, func(n *yaml.Node) { hide(n, named) })
		}
	case yaml.ScalarNode:
		if in := addressed(path, n.Value); all || in {
			hide(n, named || in)
		}
	}
}

// masked returns a text with its own secrets and others replaced by Mask. It returns an error if a
// secret is still in the text then.
func masked(text string, secrets secretTexts) (string, error) {
	root, err := parsed(text)
	if err != nil {
		return "", errNoYAML
	}
	nodes, _ := secretNodes(root)
	own := len(nodes)
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && secrets.in(n.Value) {
			nodes = append(nodes, n)
		}
	})
	spans := map[int]int{} // from a byte to another
	lines := strings.SplitAfter(text, "\n")
	for i, n := range nodes {
		from, to, ok := span(lines, n)
		if ok {
			spans[from] = to
		} else if i < own {
			return "", errHidden
		}
	}
	var shown strings.Builder
	at := 0
	for _, from := range slices.Sorted(maps.Keys(spans)) {
		shown.WriteString(text[at:from] + Mask)
		at = spans[from]
	}
	shown.WriteString(text[at:])
	// Keys that are commented out, and copies of secrets in comments, are secret, too.
	text = secrets.hide(inRemark().ReplaceAllStringFunc(shown.String(), maskedComment))
	if root, err = parsed(text); err != nil {
		return "", errHidden
	}
	eachNode(root, func(n *yaml.Node) {
		if secrets.in(n.Value) || secrets.in(n.Anchor) {
			err = errHidden
		}
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// maskedComment replaces what looks like a secret in a comment.
func maskedComment(text string) string {
	text = inComment().ReplaceAllStringFunc(text, func(found string) string {
		m := inComment().FindStringSubmatch(found)
		if !secretName(m[1]) {
			return found
		}
		return m[1] + m[2] + Mask
	})
	return inAddress().ReplaceAllString(text, "://"+Mask+"@")
}

// span returns the offsets of the bytes of a value. ok is false for a value of several lines.
func span(lines []string, n *yaml.Node) (from, to int, ok bool) {
	if n.Line < 1 || n.Line > len(lines) {
		return 0, 0, false
	}
	for _, before := range lines[:n.Line-1] {
		from += len(before)
	}
	rest := lines[n.Line-1]
	skip := func(bytes int) { from, rest = from+bytes, rest[bytes:] }
	for range n.Column - 1 {
		_, width := utf8.DecodeRuneInString(rest)
		skip(width)
	}
	for strings.HasPrefix(rest, "&") || strings.HasPrefix(rest, "!") { // an anchor, and a tag
		end := strings.IndexAny(rest, " \t\n")
		if end < 0 {
			return 0, 0, false
		}
		skip(end)
		skip(len(rest) - len(strings.TrimLeft(rest, " \t")))
	}
	length := len(n.Value)
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 0, 0, false
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = len(doubleQuoted().FindString(rest))
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = len(singleQuoted().FindString(rest))
	case !strings.HasPrefix(rest, n.Value):
		return 0, 0, false
	}
	return from, from + length, length > 0
}

var (
	doubleQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^"(?:[^"\\\n]|\\.)*"`) })
	singleQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^'(?:[^'\n]|'')*'`) })
)
