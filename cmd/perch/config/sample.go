package config

import (
	_ "embed" // for perch.yaml
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed perch.yaml
var annotated string

// Sample returns the annotated configuration: every key with its default and its documentation.
func Sample() string { return annotated }

// comment is a comment in the sample that documents a key. about is the key directly below the comment.
// Several keys may share a comment.
type comment struct{ text, about string }

// sampleDocs returns the documentation of each key in the sample, by the path of the key.
var sampleDocs = sync.OnceValue(func() map[string]comment {
	docs := map[string]comment{}
	if root, err := parseYAML(Sample()); err == nil && len(root.Content) > 0 {
		sampleLines(strings.Split(Sample(), "\n")).addDocs("", root.Content[0], comment{}, docs)
	}
	return docs
})

// sampleLines holds the lines of the sample.
type sampleLines []string

// addDocs adds the comments of the keys of a section to docs. path is the section's path. A key without
// a comment inherits one: the first key of a section inherits the section's comment, and a key in the same line
// as the previous key or in the line below inherits the previous key's comment.
func (s sampleLines) addDocs(path string, n *yaml.Node, sectionComment comment, docs map[string]comment) {
	if n.Kind != yaml.MappingNode {
		return
	}
	previous, previousLine := comment{}, 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		keyPath, doc := strings.TrimPrefix(path+"."+key.Value, "."), comment{}
		if n.Style&yaml.FlowStyle == 0 {
			if text := s.commentAbove(key); text != "" {
				doc = comment{text, keyPath}
			}
		}
		switch {
		case doc.text != "":
		case i == 0:
			doc = sectionComment
		case key.Line <= previousLine+1:
			doc = previous
		}
		docs[keyPath] = doc
		s.addDocs(keyPath, value, doc, docs)
		previous, previousLine = doc, key.Line
	}
}

// commentAbove returns the comment lines directly above a key that begin in the key's column. It joins lines that were
// broken only because the next word did not fit.
func (s sampleLines) commentAbove(key *yaml.Node) string {
	var lines []string
	indent := strings.Repeat(" ", key.Column-1) + "#"
	for i := key.Line - 2; i >= 0; i-- {
		line, isComment := strings.CutPrefix(s[i], indent)
		if !isComment {
			break
		}
		lines = append(lines, strings.TrimPrefix(line, " "))
	}
	slices.Reverse(lines)
	var text strings.Builder
	for i, line := range lines {
		word, _, _ := strings.Cut(line, " ")
		switch {
		case i == 0:
		case word != "" && !strings.HasPrefix(lines[i-1], " ") && len(indent)+len(" ")+len(lines[i-1])+len(" ")+len(word) > sampleWidth:
			text.WriteString(" ")
		default:
			text.WriteString("\n")
		}
		text.WriteString(line)
	}
	return text.String()
}

// sampleWidth is the length at which comments in the sample are wrapped.
const sampleWidth = 78
