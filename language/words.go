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

// Catalogue contains the words of all languages. It reads the files of a language when the
// language is first requested. The zero Catalogue is ready to use. A Catalogue is safe for
// concurrent use.
type Catalogue struct {
	mu   sync.Mutex
	read map[Tag]*Words // the languages read so far
}

// In returns the words of the first language that has a catalogue, or the English words if
// no language has one. languages are BCP 47 tags, such as "de-AT".
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
			panic(err) // cannot happen: the catalogues are embedded, and a test reads all of them
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

// calendar holds the words for times and dates.
type calendar struct {
	Weekdays []string       // names of the days, beginning with Sunday
	Months   []string       // names of the months, beginning with January
	Parts    map[int]string // parts of the day by their first hours, such as "in the morning"
}

// file is the format of the files of a catalogue.
type file struct {
	Calendar calendar
	Groups   map[string]map[string]string `yaml:",inline"` // group -> key -> text
}

// load reads the catalogue of a language. Its error lists all faults.
func load(from fs.FS, tag Tag) (*Words, error) {
	w := &Words{Tag: tag, messages: map[string]message{}}
	var faults []error
	for _, name := range []string{"spoken.yaml", "shown.yaml"} {
		faults = append(faults, w.add(from, path.Join(string(tag), name)))
	}
	_, midnight := w.calendar.Parts[0]
	if len(w.calendar.Weekdays) != 7 || len(w.calendar.Months) != 12 || !midnight {
		faults = append(faults, fmt.Errorf("%s: the calendar must have 7 weekdays, 12 months, and a part of the day that begins at hour 0", tag))
	}
	return w, errors.Join(faults...)
}

// add reads a file of the catalogue.
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
			if _, exists := w.messages[key]; exists {
				err = errors.New("the message exists twice")
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %s: %w", name, key, err))
			}
			w.messages[key] = m
		}
	}
	return errors.Join(faults...)
}

// Name returns the name of the language in the language itself.
func (w *Words) Name() string { return w.Message("language.name") }

// Has reports whether there is a message with a key and with a text that is not empty.
func (w *Words) Has(key string) bool { return w.messages[key] != nil }

// Message returns the message with a key such as "phrases.awake". pairs alternates between
// the names of placeholders and their values, which are texts or whole numbers. If there is
// no message with the key, Message returns the key.
func (w *Words) Message(key string, pairs ...any) string {
	m, found := w.messages[key]
	if !found {
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
