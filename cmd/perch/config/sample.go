package config

import (
	_ "embed" // the sample
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed perch.yaml
var annotated string

// Sample returns the configuration with every key, its default and its documentation.
func Sample() string { return annotated }

// comment is the documentation of a key in the sample, and the key that it is written for.
type comment struct{ text, about string }

// sampleDocs returns the documentation of each key in the sample.
var sampleDocs = sync.OnceValue(func() map[string]comment {
	docs := map[string]comment{}
	if root, err := parsed(Sample()); err == nil && len(root.Content) > 0 {
		sampleLines(strings.Split(Sample(), "\n")).docs("", root.Content[0], comment{}, docs)
	}
	return docs
})

// sampleLines holds the lines of the sample.
type sampleLines []string

// docs records the comment above each key of a section. A first key without a comment has the
// section's, and a key right below another has the other's.
func (s sampleLines) docs(under string, n *yaml.Node, above comment, docs map[string]comment) {
	if n.Kind != yaml.MappingNode {
		return
	}
	last, lastLine := comment{}, 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at, own := strings.TrimPrefix(under+"."+key.Value, "."), comment{}
		if n.Style&yaml.FlowStyle == 0 {
			if text := s.commentAbove(key); text != "" {
				own = comment{text, at}
			}
		}
		switch {
		case own.text != "":
		case i == 0:
			own = above
		case key.Line <= lastLine+1:
			own = last
		}
		docs[at] = own
		s.docs(at, value, own, docs)
		last, lastLine = own, key.Line
	}
}

// commentAbove returns the lines of comment right above a key, in its column.
func (s sampleLines) commentAbove(key *yaml.Node) string {
	var lines []string
	pad := strings.Repeat(" ", key.Column-1) + "#"
	for at := key.Line - 2; at >= 0; at-- {
		line, is := strings.CutPrefix(s[at], pad)
		if !is {
			break
		}
		lines = append(lines, strings.TrimPrefix(line, " "))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
