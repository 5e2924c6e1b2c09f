package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// read decodes a YAML text into the configuration that c points to, and adds the faults of the text to k.
// Keys that the text does not set keep their values.
func (k *checker) read(c any, text []byte) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		k.found = Faults{k.syntax(err.Error())}
		return
	}
	k.lines = map[string]line{}
	if hasTooManyNodes(&root) {
		k.found = Faults{k.fileFault(0, errTooManyNodes)}
		return
	}
	if len(root.Content) > 0 {
		k.recordLines("", root.Content[0])
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, v reflect.Value) {
		if _, set := k.lines[key]; set && v.Kind() == reflect.Map {
			v.SetZero() // the decoder would merge the maps, but the text replaces the default as a whole
		}
	})
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(c)
	var wrong *yaml.TypeError
	switch {
	case errors.As(err, &wrong):
		for _, e := range wrong.Errors {
			k.found = append(k.found, k.syntax(e))
			if m := linePrefix().FindStringSubmatch(e); m != nil {
				line, _ := strconv.Atoi(m[1]) // the pattern allows digits only
				k.unread = append(k.unread, section(k.keyAt(line, "")))
			}
		}
	case err != nil && !errors.Is(err, io.EOF): // an empty file sets nothing
		k.found = Faults{k.syntax(err.Error())}
	}
}

// overlayWith reads the text of another file into the configuration that c points to. Keys of the text
// override earlier ones; a list or map is replaced as a whole. overlayWith adds the lines and faults of
// this text to k, and returns a checker with only these.
func (k *checker) overlayWith(c any, file string, text []byte) *checker {
	o := &checker{file: file}
	o.read(c, text)
	o.found.markOverlay(k.overlay)
	k.found, k.unread = append(k.found, o.found...), append(k.unread, o.unread...)
	if k.lines == nil {
		k.lines = map[string]line{}
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, _ reflect.Value) {
		if _, set := o.lines[key]; set {
			maps.DeleteFunc(k.lines, func(other string, _ line) bool { return strings.HasPrefix(other, key+".") })
		}
	})
	if k.covered == nil {
		k.covered = map[string]bool{}
	}
	for key := range o.lines {
		k.covered[key] = k.file != "" && k.lines[key].file == k.file
	}
	maps.Copy(k.lines, o.lines)
	return o
}

// maxNodes is the maximum number of nodes in a document. The YAML library compares each key of a
// mapping with every other, which would take minutes for a megabyte of keys.
const maxNodes = 20_000

var errTooManyNodes = fmt.Errorf("it has more than %d entries", maxNodes)

// hasTooManyNodes reports whether a document has more than maxNodes nodes.
func hasTooManyNodes(root *yaml.Node) bool {
	left := maxNodes
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

// parseYAML parses a text into a document. It returns errTooManyNodes if the document is too large.
func parseYAML(text string) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	if hasTooManyNodes(&root) {
		return nil, errTooManyNodes
	}
	return &root, nil
}

// recordLines records the line of every key and list entry below the node at path.
func (k *checker) recordLines(path string, n *yaml.Node) {
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := join(n.Content[i].Value)
			k.lines[key] = line{k.file, n.Content[i].Line}
			k.recordLines(key, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			key := join(strconv.Itoa(i))
			k.lines[key] = line{k.file, item.Line}
			k.recordLines(key, item)
		}
	}
}

// These patterns match errors of the YAML library and of our own UnmarshalYAML methods.
var (
	unknownField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field (\S+) not found in type .*$`) })
	wrongType    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)^cannot unmarshal \\S* ?(?:`(.*)` )?into (.*)$") })
	// quotable matches the types whose values an error may quote. Values of other types may be secrets.
	quotable     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(bool|u?int\d*|float\d*|time\.Duration)$`) })
	linePrefix   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`) })
	unknownBelow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^there is no key (".*") here; there are (.*)$`) })
)

// syntax turns the text of an error of the YAML library into a fault that does not name Go types.
func (k *checker) syntax(text string) Fault {
	line, message := 0, strings.TrimPrefix(text, "yaml: ")
	if m := linePrefix().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern allows digits only
		message = m[2]
	}
	f := k.fileFault(line, errors.New(message))
	f.Key = k.keyAt(line, "")
	if m := unknownField().FindStringSubmatch(message); m != nil {
		f.Key = k.keyAt(line, m[1])
		return f.withMessage(errNoKey)
	}
	if m := unknownBelow().FindStringSubmatch(message); m != nil {
		return f.withMessage(fmt.Errorf("there is no key %s here; there are %s", m[1], m[2]))
	}
	m := wrongType().FindStringSubmatch(message)
	switch {
	case m == nil:
		return f
	case m[2] == "time.Duration":
		return f.withMessage(fmt.Errorf("%q is not a duration such as 60s, 5m or 24h", m[1]))
	case m[2] == "Languages":
		return f.withMessage(errors.New("write one language, such as de, or a list, such as [en, de]"))
	case m[1] != "" && quotable().MatchString(m[2]):
		return f.withMessage(fmt.Errorf("`%s` is not of the right type", m[1]))
	}
	return f.withMessage(errors.New("the value is not of the right type"))
}

// keyAt returns the longest path of a key on a line. If name is not empty, the path must end in name. If no
// key matches, keyAt returns name.
func (k *checker) keyAt(number int, name string) string {
	best := name
	for key, l := range k.lines {
		if l.number == number && len(key) > len(best) && (name == "" || strings.HasSuffix("."+key, "."+name)) {
			best = key
		}
	}
	return best
}
