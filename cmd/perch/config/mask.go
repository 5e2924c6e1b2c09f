package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Mask stands for a secret where a configuration is shown. Sent back, it stands
// for the secret that was there.
const Mask = "••••••"

// ErrHidden is that of a text with a secret that cannot be hidden in it.
var ErrHidden = errors.New("the text is not shown: it holds a secret over several lines, or in a form of its own; " +
	"write it in one line, or put it into a file (key_file, token_file, password_file)")

var (
	secretWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|[_-])(key|apikey|token|password|passwd|secret|authorization)$`)
	})
	secretFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^--?[\w-]*(key|token|password|secret)(=|$)`) })
	inComment  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b([\w-]*(?:key|token|password|passwd|secret|authorization))(["']?[ \t]*:[ \t]+|["']?=)("[^"\n]+"|'[^'\n]+'|[^\s,}\]#"']+)`)
	})
	inAddress   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s/@]+@`) })
	secretQuery = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://\S+\?\S*=`) })
)

// secretName reports whether what goes by a name is a secret. The name decides, so that
// new keys, and those of others' programs, are included.
func secretName(name string) bool { return secretWord().MatchString(name) && name != "public_key" }

// isSecret reports whether a key of the configuration holds a secret itself.
func isSecret(path []string) bool {
	at := strings.Join(path, ".")
	return len(path) > 0 && secretName(path[len(path)-1]) && at != "tls.key" // which is a file
}

// hiding are the bytes of a text that are not shown.
type hiding struct{ from, to int }

// masked is a text as it is shown.
func masked(text string) (string, error) {
	d, err := parse(text)
	if err != nil { // it is no YAML: its owner is to see where not
		shown := maskedLines(text)
		return newSecretTexts(textsOfLines(text, shown)).without(shown)
	}
	spans, all, err := d.secrets()
	if err != nil {
		return "", err
	}
	texts := newSecretTexts(all)
	var shown strings.Builder
	from := 0
	for _, s := range spans {
		if s.from < from {
			continue
		}
		shown.WriteString(text[from:s.from])
		shown.WriteString(Mask)
		from = s.to
	}
	shown.WriteString(text[from:])
	if from > 0 {
		if d, err = parse(shown.String()); err != nil {
			return texts.without(maskedLines(shown.String()))
		}
	}
	if text = d.maskedComments(texts); texts.in(text) { // as a key, an anchor, or a part of several lines
		return "", ErrHidden
	}
	return text, nil
}

// hidden is why a text is not shown; nil where it is.
func hidden(text string) error {
	_, err := masked(text)
	return err
}

// secrets are where the values are that are not shown, in order, and what is not to be
// shown anywhere else either: those that are secret by their own names, and those that
// have an anchor, by which they may stand at any other key.
func (d *document) secrets() (all []hiding, texts []string, err error) {
	seen, anchored := map[*yaml.Node]bool{}, d.anchored()
	hide := func(n *yaml.Node, named bool) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if seen[n] || n.Value == "" || n.Tag == "!!bool" {
			return
		}
		seen[n] = true
		if named || anchored[n] {
			texts = append(texts, textsOf(n.Value)...)
		}
		start, end, ok := d.span(n)
		if !ok || strings.Contains(d.text[start:end], "\n") || !means(d.text[start:end], n.Value) {
			err = ErrHidden
			return
		}
		all = append(all, hiding{start, end})
	}
	if d.top != nil {
		eachSecret(nil, d.top, false, false, hide)
	}
	copied := newSecretTexts(texts)
	walk(nil, d.top, func(_ []string, n *yaml.Node) {
		if copied.hide(n.Value) != n.Value {
			hide(n, false)
		}
	})
	slices.SortFunc(all, func(a, b hiding) int { return a.from - b.from })
	return all, texts, err
}

// anchored are the values that an alias stands for, and all below them.
func (d *document) anchored() map[*yaml.Node]bool {
	all := map[*yaml.Node]bool{}
	for _, n := range d.order {
		if n.Kind == yaml.AliasNode && n.Alias != nil {
			at := d.place[n.Alias]
			for _, below := range d.order[at : at+d.size[n.Alias]] {
				all[below] = true
			}
		}
	}
	return all
}

// means reports whether some bytes are the whole of a value.
func means(text, value string) bool {
	var n yaml.Node
	return text == value || yaml.Unmarshal([]byte(text), &n) == nil && len(n.Content) == 1 && n.Content[0].Value == value
}

// eachSecret calls hide for every value that is secret. With all, every value is; named is
// whether that is by a name, and not for being in the environment of a program.
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
		if all {
			eachSecretScalar(n.Alias, map[*yaml.Node]bool{}, func(n *yaml.Node) { hide(n, named) })
		}
	case yaml.ScalarNode:
		if in := addressed(path, n.Value); all || in {
			hide(n, named || in)
		}
	}
}

// flagOfSecret reports whether an argument of a program is a flag before a secret.
func flagOfSecret(argument string) bool {
	return secretFlag().MatchString(argument) && !strings.Contains(argument, "=")
}

// eachSecretScalar hides all that an alias stands for.
func eachSecretScalar(n *yaml.Node, been map[*yaml.Node]bool, hide func(*yaml.Node)) {
	if n == nil || been[n] {
		return
	}
	been[n] = true
	if n.Kind == yaml.ScalarNode {
		hide(n)
	}
	eachSecretScalar(n.Alias, been, hide)
	for _, c := range n.Content {
		eachSecretScalar(c, been, hide)
	}
}

// addressed reports whether an address has a secret in it: a password, or what
// its query says.
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

// maskedComments hides what looks like a secret in the comments of a text whose values
// are hidden: a key that was commented out is one still.
func (d *document) maskedComments(texts secretTexts) string {
	shown := d.text
	inside := d.values()
	var out strings.Builder
	from := 0
	for _, line := range d.lines {
		at := d.comment(line, inside)
		if at < 0 {
			continue
		}
		out.WriteString(shown[from:at])
		from = d.lineEnd(at)
		out.WriteString(maskedWords(shown[at:from], texts))
	}
	out.WriteString(shown[from:])
	return out.String()
}

func maskedWords(line string, texts secretTexts) string {
	line = inComment().ReplaceAllStringFunc(line, func(found string) string {
		m := inComment().FindStringSubmatch(found)
		if !secretName(m[1]) {
			return found
		}
		return m[1] + m[2] + Mask
	})
	return texts.hide(inAddress().ReplaceAllString(line, "://"+Mask+"@"))
}

// values are the bytes of all scalars, in order.
func (d *document) values() (all []hiding) {
	for _, n := range d.order {
		if n.Kind == yaml.ScalarNode {
			if end, ok := d.contentEnd(n); ok {
				all = append(all, hiding{d.at(n), end})
			}
		}
	}
	return all
}

// comment is where the comment of a line begins, or -1.
func (d *document) comment(line int, inside []hiding) int {
	end := d.lineEnd(line)
	for at := line; at < end; at++ {
		if d.text[at] != '#' || at > line && d.text[at-1] != ' ' && d.text[at-1] != '\t' {
			continue
		}
		i, _ := slices.BinarySearchFunc(inside, at, func(h hiding, at int) int { return h.to - 1 - at })
		if i == len(inside) || inside[i].from > at {
			return at
		}
	}
	return -1
}

var lineOfSecret = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^(.*?\b[\w-]*(?:key|token|password|passwd|secret|authorization)["']?[ \t]*[:=][ \t]*)[^\s].*$`)
})

// maskedLines hides all behind the name of a secret, line by line: of a text that
// is no YAML.
func maskedLines(text string) string {
	return inAddress().ReplaceAllString(lineOfSecret().ReplaceAllString(text, "${1}"+Mask), "://"+Mask+"@")
}

// restored puts the secrets of the text before into the places of their masks. A
// mask whose secret is not found is a fault.
func restored(text, before string) (string, []Fault) {
	if !strings.Contains(text, Mask) {
		return text, nil
	}
	if text = restoredLines(text, before); !strings.Contains(text, Mask) {
		return text, nil
	}
	d, err := parse(text)
	if err != nil {
		return text, nil // the checker says where it is no YAML
	}
	was, err := parse(before)
	if err != nil {
		was = &document{}
	}
	type part struct {
		hiding
		by string
	}
	var parts []part
	var faults []Fault
	walk(nil, d.top, func(path []string, n *yaml.Node) {
		if !strings.Contains(n.Value, Mask) {
			return
		}
		raw, found := was.secretAt(origin(d.top, was.top, path))
		start, end, ok := d.span(n)
		if n.Value != Mask || !found || !ok {
			faults = append(faults, Fault{Line: n.Line, Key: strings.Join(path, ".")}.says(
				errors.New("it is hidden, and was not found in its place before; enter it anew")))
			return
		}
		parts = append(parts, part{hiding{start, end}, raw})
	})
	slices.SortFunc(parts, func(a, b part) int { return b.from - a.from })
	for _, p := range parts {
		text = text[:p.from] + p.by + text[p.to:]
	}
	return text, faults
}

// restoredLines puts whole lines back that are as they were shown: comments, and any
// line of a text that is no YAML.
func restoredLines(text, before string) string {
	d, err := parse(before)
	var inside []hiding
	var texts secretTexts
	if err == nil {
		inside = d.values()
		_, all, _ := d.secrets() // where they cannot be hidden, nothing was shown
		texts = newSecretTexts(all)
	}
	shown, err2 := masked(before)
	if err2 != nil || strings.Count(shown, "\n") != strings.Count(before, "\n") {
		return text
	}
	were := map[string]string{} // a line as it was, by what was shown of it
	real := strings.Split(before, "\n")
	for i, line := range strings.Split(shown, "\n") {
		if !strings.Contains(line, Mask) {
			continue
		}
		if err == nil { // of the rest, the place decides
			at := d.comment(d.lines[i], inside)
			if at < 0 {
				continue
			}
			real[i] = real[i][at-d.lines[i]:]
			begins := strings.LastIndex(line, maskedWords(real[i], texts))
			if begins < 0 {
				continue
			}
			line = line[begins:]
		}
		if other, twice := were[line]; twice && other != real[i] {
			real[i] = line // it stays hidden, and is complained of
		}
		were[line] = real[i]
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		if !strings.Contains(line, Mask) {
			continue
		}
		for at := range len(line) {
			if was, ok := were[line[at:]]; ok && (at == 0 || line[at] == '#') {
				all[i] = line[:at] + was
				break
			}
		}
	}
	return strings.Join(all, "\n")
}

// walk calls do for every value that has no others below it.
func walk(path []string, n *yaml.Node, do func([]string, *yaml.Node)) {
	if n == nil {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			walk(append(slices.Clone(path), n.Content[i].Value), n.Content[i+1], do)
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			walk(append(slices.Clone(path), strconv.Itoa(i)), one, do)
		}
	case yaml.ScalarNode:
		do(path, n)
	}
}

// secretAt is a secret as it is written at a path.
func (d *document) secretAt(path []string, known bool) (raw string, found bool) {
	if d.top == nil || !known {
		return "", false
	}
	f, err := d.find(path)
	if err != nil || len(f.rest) > 0 || f.value == nil {
		return "", false
	}
	n := f.value
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return "", false
	}
	start, end, ok := d.span(n)
	if !ok {
		return inline(n.Value, nil), true
	}
	return d.text[start:end], true
}

// origin is where the value at a path was in the document before. An entry of a list may
// have moved: it is known by its kind, its name and where it leads, so that no key
// goes to another server by a change of order.
func origin(now, before *yaml.Node, path []string) (was []string, known bool) {
	for _, key := range path {
		if now == nil || before == nil || now.Kind != before.Kind {
			return nil, false
		}
		i, err := strconv.Atoi(key)
		if now.Kind == yaml.SequenceNode && err == nil {
			j := entry(now, before, i)
			if j < 0 {
				return nil, false
			}
			was, now, before = append(was, strconv.Itoa(j)), now.Content[i], before.Content[j]
			continue
		}
		was, now, before = append(was, key), child(now, key), child(before, key)
	}
	return was, true
}

func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// entry is the place that the entry i of a list had before, or -1.
func entry(now, before *yaml.Node, i int) int {
	all := func(list *yaml.Node) (names []string) {
		for _, n := range list.Content {
			names = append(names, identity(n))
		}
		return names
	}
	is, were := all(now), all(before)
	switch same := slices.Index(were, is[i]); {
	case i < len(were) && were[i] == is[i]:
		return i
	case same >= 0 && slices.Index(were[same+1:], is[i]) < 0 && slices.Index(is[:i], is[i]) < 0:
		return same
	case same < 0 && i < len(were) && len(is) == len(were) && !slices.Contains(is, were[i]) &&
		kindOf(now.Content[i]) == kindOf(before.Content[i]):
		return i // it leads elsewhere now
	}
	return -1
}

func kindOf(n *yaml.Node) string {
	if c := child(n, "kind"); c != nil {
		return c.Value
	}
	return ""
}

// identity is what tells an entry of a list from others.
func identity(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	var s strings.Builder
	for _, key := range []string{"kind", "name", "robot", "url", "model", "voice"} {
		if c := child(n, key); c != nil && c.Value != "" && c.Value != Mask && !addressed([]string{key}, c.Value) {
			fmt.Fprintf(&s, "%s=%s\x00", key, c.Value)
		}
	}
	return s.String()
}
