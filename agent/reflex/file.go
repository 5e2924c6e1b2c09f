package reflex

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// file is a YAML file of a book. See Book for the fields.
type file struct {
	Language string // language tag of an owner's file; "" means the first book's language
	Lists    map[string]fileList
	Numbers  string
	Signs    map[string]string
	Phrases  map[string]string
	Answers  struct{ Yes, No, Neither []yaml.Node } // texts
	// Unfinished lists words that end no sentence, such as "and".
	Unfinished []string
	Intents    fileIntents
}

// fileList is a list in a file. It is written as a sequence of entries, or as a map from
// entries to values.
type fileList struct {
	entries []fileEntry
	line    int
}

// fileEntry is an entry of a list, with alternatives separated by bars, and its value,
// which may be "".
type fileEntry struct{ spoken, value string }

// UnmarshalYAML decodes a sequence or a map.
func (l *fileList) UnmarshalYAML(n *yaml.Node) error {
	l.line = n.Line
	step := 1
	switch n.Kind {
	case yaml.SequenceNode:
	case yaml.MappingNode:
		step = 2
	default:
		return fmt.Errorf("line %d: a list must be a sequence or a map", n.Line)
	}
	for i := 0; i+step <= len(n.Content); i += step {
		if n.Content[i].Kind != yaml.ScalarNode || n.Content[i].Value == "" {
			return fmt.Errorf("line %d: an entry of a list must be words", n.Content[i].Line)
		}
		e := fileEntry{spoken: n.Content[i].Value}
		if step == 2 {
			e.value = n.Content[i+1].Value
		}
		l.entries = append(l.entries, e)
	}
	return nil
}

// fileIntents are intents in the order of the file, because the first matching one is used.
type fileIntents []fileIntent

// fileIntent is an intent in a file.
type fileIntent struct {
	name      string
	line      int
	Sentences []yaml.Node // texts
	Action    string      // name of an action; "" means that the intent only answers
	Value     string      // value for the action; "" means the value of a slot
	Type      string      // type of the memory entry to store
	Key       string      // key of the memory entry to store or recall
	Body      string      // body of the memory entry to store, text of a timer, or description of an alarm in a list
	Answer    string
	Missing   string // answer if nothing was remembered, or if no timer, reminder or alarm is set
	End       string // agent.End of the turn; "" means agent.Continue
}

// UnmarshalYAML decodes a map from names to intents.
func (f *fileIntents) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: intents must be a map", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, body := n.Content[i], n.Content[i+1]
		in := fileIntent{name: key.Value, line: key.Line}
		if err := checkKeys(body); err != nil {
			return err
		}
		if err := body.Decode(&in); err != nil {
			return err
		}
		*f = append(*f, in)
	}
	return nil
}

// checkKeys returns an error if an intent has an unknown key. The decoder does not check
// this, because its KnownFields has no effect within a type with an UnmarshalYAML method.
func checkKeys(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: an intent must be a map", n.Line)
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
