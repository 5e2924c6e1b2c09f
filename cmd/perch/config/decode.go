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

// read decodes a text over the configuration that c points to.
func (k *checker) read(c any, text []byte) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		k.found = Faults{k.syntax(err.Error())}
		return
	}
	k.lines = map[string]line{}
	if crowded(&root) {
		k.found = Faults{k.ofFile(0, errTooMany)}
		return
	}
	if len(root.Content) > 0 {
		k.recordLines("", root.Content[0])
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, v reflect.Value) {
		if _, set := k.lines[key]; set && v.Kind() == reflect.Map {
			v.SetZero() // it is replaced as a whole, as lists are
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
				line, _ := strconv.Atoi(m[1]) // digits, by the pattern
				k.unread = append(k.unread, section(k.keyAt(line, "")))
			}
		}
	case err != nil && !errors.Is(err, io.EOF): // an empty file sets nothing
		k.found = Faults{k.syntax(err.Error())}
	}
}

// overlayWith reads another text over a configuration. Its keys override earlier ones; a list or a
// mapping is replaced as a whole. It returns a checker with the lines and faults of the text.
func (k *checker) overlayWith(c any, file string, text []byte) *checker {
	o := &checker{file: file}
	o.read(c, text)
	o.found = o.found.in(k.overlay)
	k.found, k.unread = append(k.found, o.found...), append(k.unread, o.unread...)
	if k.lines == nil {
		k.lines = map[string]line{}
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, _ reflect.Value) {
		if _, set := o.lines[key]; set {
			maps.DeleteFunc(k.lines, func(other string, _ line) bool { return strings.HasPrefix(other, key+".") })
		}
	})
	maps.Copy(k.lines, o.lines)
	return o
}

// mostNodes bounds the entries of a document. The library compares each key of a mapping with every
// other, which takes minutes for a megabyte of keys.
const mostNodes = 20_000

var errTooMany = fmt.Errorf("it has more than %d entries", mostNodes)

// crowded reports whether a document has more than mostNodes entries.
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

// parsed returns the document of a text.
func parsed(text string) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	if crowded(&root) {
		return nil, errTooMany
	}
	return &root, nil
}

// recordLines records the line of every key of a document.
func (k *checker) recordLines(path string, n *yaml.Node) {
	under := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := under(n.Content[i].Value)
			k.lines[key] = line{k.file, n.Content[i].Line}
			k.recordLines(key, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			key := under(strconv.Itoa(i))
			k.lines[key] = line{k.file, item.Line}
			k.recordLines(key, item)
		}
	}
}

var (
	unknownField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field (\S+) not found in type .*$`) })
	wrongType    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)^cannot unmarshal \\S* ?(?:`(.*)` )?into (.*)$") })
	// Other values are not quoted, because they may be secrets.
	quotable     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(bool|u?int\d*|float\d*|time\.Duration)$`) })
	linePrefix   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`) })
	unknownBelow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^there is no key (".*") here; there are (.*)$`) })
)

// syntax returns the fault for an error of the YAML library, in words that do not name Go types.
func (k *checker) syntax(text string) Fault {
	line, message := 0, strings.TrimPrefix(text, "yaml: ")
	if m := linePrefix().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits, by the pattern
		message = m[2]
	}
	f := k.ofFile(line, errors.New(message))
	f.Key = k.keyAt(line, "")
	if m := unknownField().FindStringSubmatch(message); m != nil {
		f.Key = k.keyAt(line, m[1])
		return f.says(errors.New("there is no such key"))
	}
	if m := unknownBelow().FindStringSubmatch(message); m != nil {
		return f.says(fmt.Errorf("there is no key %s here; there are %s", m[1], m[2]))
	}
	m := wrongType().FindStringSubmatch(message)
	switch {
	case m == nil:
		return f
	case m[2] == "time.Duration":
		return f.says(fmt.Errorf("%q is no duration such as 60s, 5m or 24h", m[1]))
	case m[2] == "Languages":
		return f.says(errors.New("language is one such as de, or a list such as [en, de]"))
	case m[1] != "" && quotable().MatchString(m[2]):
		return f.says(fmt.Errorf("`%s` is not what belongs here", m[1]))
	}
	return f.says(errors.New("this is not what belongs here"))
}

// keyAt returns the longest key path on a line that ends in name.
func (k *checker) keyAt(number int, name string) string {
	best := name
	for key, at := range k.lines {
		if at.number == number && len(key) > len(best) && (name == "" || strings.HasSuffix("."+key, "."+name)) {
			best = key
		}
	}
	return best
}
