package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document is a configuration's text, and where in it its values are. A change
// replaces bytes of the text, so that comments, order and form of all the rest
// stay as their owner has written them: a library that writes YAML anew keeps
// none of them faithfully.
type document struct {
	text  string
	lines []int      // where each line begins, in bytes
	top   *yaml.Node // the mapping at the top; nil where there is nothing
	order []*yaml.Node
	place map[*yaml.Node]int // in order
	size  map[*yaml.Node]int // of its subtree, itself included
}

// mostNodes bounds a document. The library compares each key of a mapping with
// every other, which takes minutes for a megabyte of them.
const mostNodes = 20_000

var errTooMany = fmt.Errorf("it has more than %d entries", mostNodes)

// parse reads the form of a text, and nothing of what it means.
func parse(text string) (*document, error) {
	d := &document{text: text, lines: []int{0}, place: map[*yaml.Node]int{}, size: map[*yaml.Node]int{}}
	for i := range len(text) {
		if text[i] == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	if crowded(&root) {
		return nil, errTooMany
	}
	if len(root.Content) == 0 {
		return d, nil
	}
	d.top = root.Content[0]
	d.note(d.top)
	if d.top.Kind == yaml.ScalarNode && d.top.Tag == "!!null" {
		d.top = nil
	}
	return d, nil
}

// crowded reports whether a document has too many entries to be looked at.
func crowded(root *yaml.Node) bool {
	left := mostNodes
	var count func(n *yaml.Node)
	count = func(n *yaml.Node) {
		left--
		for _, c := range n.Content {
			if left >= 0 {
				count(c)
			}
		}
	}
	count(root)
	return left < 0
}

func (d *document) note(n *yaml.Node) {
	d.place[n] = len(d.order)
	d.order = append(d.order, n)
	for _, c := range n.Content {
		d.note(c)
	}
	d.size[n] = len(d.order) - d.place[n]
}

// at is where a node begins, behind its anchor and its tag.
func (d *document) at(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(d.lines) {
		return len(d.text)
	}
	at := d.lines[n.Line-1]
	for range n.Column - 1 {
		if at < len(d.text) {
			_, width := utf8.DecodeRuneInString(d.text[at:])
			at += width
		}
	}
	for at < len(d.text) && (d.text[at] == '&' || d.text[at] == '!') {
		end := strings.IndexAny(d.text[at:], " \t\n")
		if end < 0 {
			return len(d.text)
		}
		at += end
		at += len(d.text[at:]) - len(strings.TrimLeft(d.text[at:], " \t"))
	}
	return at
}

// span is a node's own bytes. That is what begins and ends within lines: a plain
// text of one line, a quoted one, and what is in brackets.
func (d *document) span(n *yaml.Node) (start, end int, ok bool) {
	start = d.at(n)
	rest := d.text[start:]
	switch {
	case n.Kind == yaml.AliasNode:
		return start, start + 1 + len(n.Value), strings.HasPrefix(rest, "*"+n.Value)
	case n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0:
		end, ok = quoted(rest, '"')
		return start, start + end, ok
	case n.Kind == yaml.ScalarNode && n.Style&yaml.SingleQuotedStyle != 0:
		end, ok = quoted(rest, '\'')
		return start, start + end, ok
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0:
		return start, start + len(n.Value), strings.HasPrefix(rest, n.Value) && !strings.Contains(n.Value, "\n")
	case n.Style&yaml.FlowStyle != 0 && rest != "" && (rest[0] == '{' || rest[0] == '['):
		end = start + 1
		if len(n.Content) > 0 {
			if end, ok = d.contentEnd(n.Content[len(n.Content)-1]); !ok {
				return start, end, false
			}
		}
		end = d.skip(end)
		closing := byte('}')
		if rest[0] == '[' {
			closing = ']'
		}
		return start, end + 1, end < len(d.text) && d.text[end] == closing
	}
	return start, start, false
}

// quoted is the length of a quoted text at the beginning of s.
func quoted(s string, by byte) (length int, ok bool) {
	if s == "" || s[0] != by {
		return 0, false
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && by == '"':
			i++
		case s[i] == by && by == '\'' && i+1 < len(s) && s[i+1] == by:
			i++
		case s[i] == by:
			return i + 1, true
		}
	}
	return 0, false
}

// skip passes over what may stand between the last entry and the bracket.
func (d *document) skip(at int) int {
	for at < len(d.text) {
		switch c := d.text[at]; {
		case strings.IndexByte(" \t\r\n,", c) >= 0:
			at++
		case c == '#':
			at = d.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// lineEnd is where the line of a byte ends, before its line feed.
func (d *document) lineEnd(at int) int {
	end := strings.IndexByte(d.text[at:], '\n')
	switch {
	case end < 0:
		return len(d.text)
	case end > 0 && d.text[at+end-1] == '\r':
		return at + end - 1
	}
	return at + end
}

// lineStart is where the line of a byte begins.
func (d *document) lineStart(at int) int { return strings.LastIndexByte(d.text[:at], '\n') + 1 }

// contentEnd is where the last content of a node ends; comments behind it are
// not content.
func (d *document) contentEnd(n *yaml.Node) (end int, ok bool) {
	if _, end, ok := d.span(n); ok {
		return end, true
	}
	if n.Kind != yaml.ScalarNode {
		if len(n.Content) == 0 {
			return 0, false
		}
		return d.contentEnd(n.Content[len(n.Content)-1])
	}
	// A text of several lines ends before the next node's line, and before the blank lines
	// and comments above that.
	last := len(d.lines)
	if next := d.place[n] + d.size[n]; next < len(d.order) {
		last = d.order[next].Line - 1
	}
	inside := -1 // how far the lines of a block are indented
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && n.Line < len(d.lines) {
		first := d.text[d.lines[n.Line]:]
		inside = len(first) - len(strings.TrimLeft(first, " \n"))
	}
	for ; last > n.Line; last-- {
		line := d.text[d.lines[last-1]:d.lineEnd(d.lines[last-1])]
		body := strings.TrimLeft(line, " \t")
		if body != "" && (body[0] != '#' || inside >= 0 && len(line)-len(body) >= inside) {
			break
		}
	}
	return d.lineEnd(d.lines[last-1]), true
}

// found is how far a path leads.
type found struct {
	key    *yaml.Node // of the value, where that is in a mapping
	value  *yaml.Node
	parent *yaml.Node // of the value; nil at the top
	rest   []string   // what of the path is not there
}

var errAlias = errors.New("an alias (*name) stands there; edit the text")

// find follows a path as far as it leads.
func (d *document) find(path []string) (found, error) {
	f := found{value: d.top, rest: path}
	for len(f.rest) > 0 && f.value != nil {
		n := f.value
		switch n.Kind {
		case yaml.AliasNode:
			return f, errAlias
		case yaml.MappingNode:
			i := 0
			for ; i+1 < len(n.Content) && n.Content[i].Value != f.rest[0]; i += 2 {
			}
			if i+1 >= len(n.Content) {
				return f, nil
			}
			f = found{n.Content[i], n.Content[i+1], n, f.rest[1:]}
		case yaml.SequenceNode:
			i, err := strconv.Atoi(f.rest[0])
			if err != nil || i < 0 || i > len(n.Content) {
				return f, fmt.Errorf("it is a list of %d, and has no place %s", len(n.Content), f.rest[0])
			}
			if i == len(n.Content) {
				return f, nil
			}
			f = found{nil, n.Content[i], n, f.rest[1:]}
		default:
			return f, nil
		}
	}
	return f, nil
}
