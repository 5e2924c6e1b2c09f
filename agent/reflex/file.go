package reflex

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

type file struct {
	Language string
	Lists    map[string]fileList
	Numbers  string
	Signs    map[string]string
	Phrases  map[string]string
	Answers  struct{ Yes, No, Neither []fileSentence }
	Intents  fileIntents
}

// fileList is a list, written as a sequence of words, or as a map from words to
// values.
type fileList struct {
	entries []fileEntry
	line    int
}

type fileEntry struct{ spoken, value string }

func (l *fileList) UnmarshalYAML(n *yaml.Node) error {
	l.line = n.Line
	step := 1
	switch n.Kind {
	case yaml.SequenceNode:
	case yaml.MappingNode:
		step = 2
	default:
		return fmt.Errorf("line %d: a list is a sequence or a map", n.Line)
	}
	for i := 0; i+step <= len(n.Content); i += step {
		if n.Content[i].Kind != yaml.ScalarNode || n.Content[i].Value == "" {
			return fmt.Errorf("line %d: an entry of a list is words", n.Content[i].Line)
		}
		e := fileEntry{spoken: n.Content[i].Value}
		if step == 2 {
			e.value = n.Content[i+1].Value
		}
		l.entries = append(l.entries, e)
	}
	return nil
}

// fileIntents preserves the order of the file, because the first matching intent wins.
type fileIntents []fileIntent

type fileIntent struct {
	name      string
	line      int
	Sentences []fileSentence
	Action    string
	Value     string // for the action if no slot has a value
	Type      string // of a memory
	Key, Body string // of a memory
	Answer    string
	Missing   string // the answer if nothing is remembered
	End       string
}

func (f *fileIntents) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: intents are a map", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, body := n.Content[i], n.Content[i+1]
		in := fileIntent{name: key.Value, line: key.Line}
		if err := knownKeys(body); err != nil {
			return err
		}
		if err := body.Decode(&in); err != nil {
			return err
		}
		*f = append(*f, in)
	}
	return nil
}

// knownKeys rejects unknown keys of an intent. The decoder's KnownFields has no effect
// below a type with an UnmarshalYAML method.
func knownKeys(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: an intent is a map", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case "sentences", "action", "value", "type", "key", "body", "answer", "missing", "end":
		default:
			return fmt.Errorf("line %d: an intent has no %q", n.Content[i].Line, n.Content[i].Value)
		}
	}
	return nil
}

type fileSentence struct {
	text string
	line int
}

func (s *fileSentence) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a sentence is a text", n.Line)
	}
	s.text, s.line = n.Value, n.Line
	return nil
}
