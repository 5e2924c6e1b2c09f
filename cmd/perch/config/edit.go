package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// mostEntries bounds a list or a mapping that is set as a whole.
const mostEntries = 200

// ErrEdit is wrapped where a text has a form in which a key cannot be changed for
// its owner.
var ErrEdit = errors.New("this cannot be changed here; edit the text")

// edit returns a text with a value at a key's path, and without the key where the
// value is nil. Where the key is there, its line alone changes. The result is
// read again: it means what the text has meant, but for that key.
func edit(text string, path []string, value any) (string, error) {
	if _, err := parse(text); err != nil {
		return "", err
	}
	before, err := meaning(text)
	if err != nil {
		return "", err
	}
	changed := text
	if value == nil {
		changed, err = remove(text, path)
	} else {
		changed, err = set(text, path, value)
	}
	if err != nil {
		return "", err
	}
	after, err := meaning(changed)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrEdit, err)
	}
	if value != nil {
		if value, err = reread(value); err != nil {
			return "", err
		}
	}
	wanted, err := with(before, path, value)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(pruned(wanted), pruned(after)) {
		return "", ErrEdit
	}
	return changed, nil
}

// meaning is a text as YAML reads it.
func meaning(text string) (any, error) {
	var v any
	err := yaml.Unmarshal([]byte(text), &v)
	return v, err
}

// reread is a value as YAML reads it where it is written.
func reread(value any) (any, error) { return meaning(inline(value, nil)) }

// with returns what a document means with another value at a path.
func with(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if list, is := tree.([]any); is {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(list) || i == len(list) && value == nil {
			return nil, fmt.Errorf("there is no place %s in the list", path[0])
		}
		list = slices.Clone(list)
		if value == nil && len(path) == 1 {
			return slices.Delete(list, i, i+1), nil
		}
		if i == len(list) {
			list = append(list, nil)
		}
		list[i], err = with(list[i], path[1:], value)
		return list, err
	}
	all, is := tree.(map[string]any)
	if !is && tree != nil {
		return nil, fmt.Errorf("%w: %s is in no section", ErrEdit, path[0])
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]any{}
	}
	below, err := with(all[path[0]], path[1:], value)
	all[path[0]] = below
	return all, err
}

// pruned is a document's meaning without what is empty: a section without keys is none.
func pruned(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, v := range t {
			if v = pruned(v); v != nil {
				all[key] = v
			}
		}
		if len(all) == 0 {
			return nil
		}
		return all
	case []any:
		list := []any{}
		for _, v := range t {
			list = append(list, pruned(v))
		}
		return list
	}
	return tree
}

// set writes a value at a path.
func set(text string, path []string, value any) (string, error) {
	d, err := parse(text)
	if err != nil {
		return "", err
	}
	f, err := d.find(path)
	switch {
	case err != nil:
		return "", err
	case f.value == nil:
		return d.insertAtEnd(f.rest, value), nil
	case len(f.rest) > 0:
		return d.insert(f, value)
	}
	list, isList := value.([]any)
	section, isSection := value.(map[string]any)
	if len(list) > mostEntries || len(section) > mostEntries {
		return "", fmt.Errorf("it has more than %d entries; edit the text", mostEntries)
	}
	was, err := decoded(f.value)
	if err != nil {
		return "", err
	}
	if now, err := reread(value); err != nil || reflect.DeepEqual(was, now) {
		return text, err
	}
	switch {
	case f.value.Kind == yaml.SequenceNode && isList && len(list) > 0 && len(f.value.Content) > 0 && f.value.Style&yaml.FlowStyle == 0:
		return setEach(text, path, f.value, list)
	case f.value.Kind == yaml.MappingNode && isSection && len(section) > 0 && sameKind(was, section):
		return setKeys(text, path, f.value, section)
	}
	return d.replace(f, value)
}

func decoded(n *yaml.Node) (v any, err error) {
	err = n.Decode(&v)
	return v, err
}

// sameKind reports whether two entries may be the same one, changed. An engine of
// another kind is another engine.
func sameKind(was any, now map[string]any) bool {
	before, is := was.(map[string]any)
	return is && before["kind"] == now["kind"]
}

// setEach writes the entries of a list, each in its place, so that the comments
// between them stay.
func setEach(text string, path []string, was *yaml.Node, list []any) (string, error) {
	at := func(i int) []string { return append(slices.Clone(path), strconv.Itoa(i)) }
	var err error
	for i, v := range list {
		if text, err = set(text, at(i), v); err != nil {
			return "", err
		}
	}
	for i := len(was.Content) - 1; i >= len(list); i-- {
		if text, err = remove(text, at(i)); err != nil {
			return "", err
		}
	}
	return text, nil
}

// setKeys writes the keys of a section, likewise.
func setKeys(text string, path []string, was *yaml.Node, section map[string]any) (string, error) {
	at := func(key string) []string { return append(slices.Clone(path), key) }
	var err error
	for _, key := range slices.Sorted(maps.Keys(section)) {
		if text, err = set(text, at(key), section[key]); err != nil {
			return "", err
		}
	}
	for i := 0; i < len(was.Content); i += 2 {
		key := was.Content[i].Value
		if _, stays := section[key]; !stays {
			if text, err = remove(text, at(key)); err != nil {
				return "", err
			}
		}
	}
	return text, nil
}

// splice replaces bytes of the text.
func (d *document) splice(from, to int, by string) string { return d.text[:from] + by + d.text[to:] }

// replace writes another value in the place of one.
func (d *document) replace(f found, value any) (string, error) {
	by := inline(value, nil)
	if start, end, ok := d.span(f.value); ok {
		if start > 0 && d.text[start-1] == ':' {
			by = " " + by // after a key that had no value
		}
		return d.splice(start, end, by), nil
	}
	end, ok := d.contentEnd(f.value)
	if !ok {
		return "", ErrEdit
	}
	if f.key == nil {
		return d.splice(d.at(f.value), end, by), nil
	}
	_, colon, ok := d.span(f.key)
	if !ok || !strings.HasPrefix(d.text[colon:], ":") {
		return "", ErrEdit
	}
	return d.splice(colon+1, end, " "+by), nil
}

// insert writes a value that is not there yet into the section or list f leads to.
func (d *document) insert(f found, value any) (string, error) {
	n := f.value
	start, end, inLine := d.span(n)
	switch {
	case n.Kind == yaml.MappingNode && inLine, n.Kind == yaml.SequenceNode && inLine:
		by := inline(value, f.rest)
		if n.Kind == yaml.MappingNode {
			by = strings.TrimSuffix(strings.TrimPrefix(by, "{"), "}")
		} else {
			by = inline(value, f.rest[1:])
		}
		if len(n.Content) > 0 {
			last, ok := d.contentEnd(n.Content[len(n.Content)-1])
			if !ok {
				return "", ErrEdit
			}
			return d.splice(last, last, ", "+by), nil
		}
		return d.splice(start+1, end-1, by), nil
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		last, ok := d.contentEnd(n)
		if !ok {
			return "", ErrEdit
		}
		column := n.Column
		if n.Kind == yaml.MappingNode {
			column = n.Content[0].Column
		}
		return d.insertLines(last, lines(column-1, f.rest, value, n.Kind == yaml.SequenceNode)), nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null" && f.key != nil:
		if f.parent.Style&yaml.FlowStyle != 0 {
			return d.splice(start, end, " "+inline(value, f.rest)), nil
		}
		return d.insertLines(end, lines(f.key.Column+1, f.rest, value, false)), nil
	}
	return "", fmt.Errorf("%w: what is there is no section", ErrEdit)
}

// insertLines writes lines after the line of a byte.
func (d *document) insertLines(after int, lines string) string {
	end, feed := d.lineEnd(after), "\n"
	if strings.HasPrefix(d.text[end:], "\r\n") {
		feed = "\r\n"
	}
	return d.splice(end, end, feed+strings.ReplaceAll(lines, "\n", feed))
}

// insertAtEnd writes the first key of a text.
func (d *document) insertAtEnd(path []string, value any) string {
	text := d.text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if text != "" {
		text += "\n"
	}
	return text + lines(0, path, value, false) + "\n"
}

// remove leaves out a key, and the section that it was alone in.
func remove(text string, path []string) (string, error) {
	d, err := parse(text)
	if err != nil {
		return "", err
	}
	f, err := d.find(path)
	if err != nil || len(f.rest) > 0 || f.value == nil {
		return text, err // it is not there
	}
	n, each := f.parent, 2
	if n.Kind == yaml.SequenceNode {
		each = 1
	}
	if len(n.Content) == each && len(path) > 1 {
		if n.Kind == yaml.SequenceNode {
			return set(text, path[:len(path)-1], []any{})
		}
		return remove(text, path[:len(path)-1])
	}
	first := f.value
	if f.key != nil {
		first = f.key
	}
	i := slices.Index(n.Content, first)
	end, ok := d.contentEnd(f.value)
	if !ok {
		return "", ErrEdit
	}
	if _, _, inLine := d.span(n); inLine {
		return d.removeInLine(n, i, each, end)
	}
	start := d.lineStart(d.at(first))
	switch lead := strings.TrimLeft(d.text[start:d.at(first)], " "); {
	case lead == "", each == 1 && strings.TrimRight(lead, " ") == "-":
	case i+each < len(n.Content) && n.Kind == yaml.MappingNode: // the first key of a list's entry
		return d.splice(d.at(first), d.at(n.Content[i+each]), ""), nil
	default:
		return "", ErrEdit
	}
	end = d.lineEnd(end)
	for end < len(d.text) && strings.IndexByte("\r\n", d.text[end]) >= 0 {
		if end++; d.text[end-1] == '\n' {
			break
		}
	}
	return d.splice(start, end, ""), nil
}

// removeInLine leaves out an entry of what is in brackets.
func (d *document) removeInLine(n *yaml.Node, i, each, end int) (string, error) {
	if i+each < len(n.Content) {
		return d.splice(d.at(n.Content[i]), d.at(n.Content[i+each]), ""), nil
	}
	from := d.at(n.Content[i])
	if i > 0 {
		before, ok := d.contentEnd(n.Content[i-1])
		if !ok {
			return "", ErrEdit
		}
		from = before
	}
	return d.splice(from, end, ""), nil
}

// lines is a value below a path as lines of their own: a list of sections has a
// line for each.
func lines(indent int, path []string, value any, inList bool) string {
	pad := strings.Repeat(" ", indent)
	if inList {
		return pad + "- " + inline(value, path[1:])
	}
	head := pad + inline(path[0], nil) + ":"
	if len(path) > 1 {
		if _, err := strconv.Atoi(path[1]); err == nil {
			return head + " " + inline(value, path[1:])
		}
		return head + "\n" + lines(indent+2, path[1:], value, false)
	}
	list, is := value.([]any)
	if is && slices.ContainsFunc(list, func(v any) bool { _, section := v.(map[string]any); return section }) {
		for _, v := range list {
			head += "\n" + pad + "  - " + inline(v, nil)
		}
		return head
	}
	return head + " " + inline(value, nil)
}

// inline is a value below a path in one line, in a form that stands anywhere.
func inline(value any, path []string) string {
	for _, key := range slices.Backward(path) {
		if _, err := strconv.Atoi(key); err == nil {
			value = []any{value}
		} else {
			value = map[string]any{key: value}
		}
	}
	// In brackets the library quotes what could end there.
	list := node([]any{value})
	text, err := yaml.Marshal(list)
	if err != nil {
		return `""` // it was made of JSON, and has nothing that YAML has not
	}
	line := strings.TrimSuffix(string(text), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(line, "["), "]")
}

var plainWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN_./@+ -]*$`) })

// node is a value as YAML in one line.
func node(value any) *yaml.Node {
	n := &yaml.Node{Style: yaml.FlowStyle}
	switch v := value.(type) {
	case []any:
		n.Kind = yaml.SequenceNode
		for _, one := range v {
			n.Content = append(n.Content, node(one))
		}
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, key := range sortedKeys(v) {
			n.Content = append(n.Content, node(key), node(v[key]))
		}
	case string:
		n.SetString(v)
		if n.Style = yaml.DoubleQuotedStyle; plainWords().MatchString(v) {
			n.Style = 0 // the library quotes what would be a number or a truth
		}
	default:
		if err := n.Encode(v); err != nil {
			n.SetString(fmt.Sprint(v))
		}
	}
	return n
}

// sortedKeys has what an entry is first: its kind, its name, its address.
func sortedKeys(of map[string]any) []string {
	rank := func(key string) int {
		return slices.Index([]string{"kind", "robot", "name", "url", "model"}, key)
	}
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		x, y := rank(a), rank(b)
		switch {
		case x >= 0 && y >= 0:
			return x - y
		case x >= 0:
			return -1
		case y >= 0:
			return 1
		}
		return strings.Compare(a, b)
	})
}
