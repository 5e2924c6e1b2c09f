package language

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed */spoken.yaml */shown.yaml
var catalogues embed.FS

// Catalogue contains the words of all languages, each read when it is first requested.
// The zero value is ready to use. It is safe for concurrent use.
type Catalogue struct {
	mu   sync.Mutex
	read map[Tag]*Words
}

// In returns the words of the first language that has a catalogue, such as "de-AT", or
// of English if none has.
func (c *Catalogue) In(languages ...string) *Words {
	tag, found := Match(languages...)
	if !found {
		tag = English
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.read[tag]
	if w == nil {
		var err error
		if w, err = load(catalogues, tag); err != nil {
			panic(err) // the catalogues are compiled in, and a test reads all of them
		}
		if c.read == nil {
			c.read = map[Tag]*Words{}
		}
		c.read[tag] = w
	}
	return w
}

// Words holds the messages of one language. It is immutable.
type Words struct {
	Tag      Tag
	calendar calendar
	messages map[string]message
}

// calendar holds the names in times and dates.
type calendar struct {
	Weekdays []string       // from Sunday
	Months   []string       // from January
	Parts    map[int]string // of the day, by their first hour
}

// file is the format of a catalogue's files: groups of messages.
type file struct {
	Calendar calendar
	Groups   map[string]map[string]string `yaml:",inline"`
}

// load reads a catalogue. Errors list all faults.
func load(from fs.FS, tag Tag) (*Words, error) {
	w := &Words{Tag: tag, messages: map[string]message{}}
	var faults []error
	for _, name := range []string{"spoken.yaml", "shown.yaml"} {
		faults = append(faults, w.add(from, path.Join(string(tag), name)))
	}
	_, midnight := w.calendar.Parts[0]
	if len(w.calendar.Weekdays) != 7 || len(w.calendar.Months) != 12 || !midnight {
		faults = append(faults, fmt.Errorf("%s: a calendar has 7 weekdays, 12 months and a part of the day from 0", tag))
	}
	return w, errors.Join(faults...)
}

func (w *Words) add(from fs.FS, name string) error {
	text, err := fs.ReadFile(from, name)
	if err != nil {
		return err
	}
	f := file{Calendar: w.calendar}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.calendar = f.Calendar
	var faults []error
	for group, messages := range f.Groups {
		for key, text := range messages {
			key = group + "." + key
			m, err := parse(text, w.Tag)
			if _, again := w.messages[key]; again {
				err = errors.New("it is there twice")
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %s: %w", name, key, err))
			}
			w.messages[key] = m
		}
	}
	return errors.Join(faults...)
}

// Name returns the language's own name for itself.
func (w *Words) Name() string { return w.Message("language.name") }

// Has reports whether there is a message of that name.
func (w *Words) Has(key string) bool { return w.messages[key] != nil }

// Message returns the message of a key such as "phrases.awake", with pairs of a name and its
// value: a text, or a whole number. If there is no such message it returns the key.
func (w *Words) Message(key string, pairs ...any) string {
	m, known := w.messages[key]
	if !known {
		return key
	}
	return m.fill(w.Tag, func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return fmt.Sprint(pairs[i+1]), true
			}
		}
		return "", false
	})
}
