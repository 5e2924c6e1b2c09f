// Package reflex is a brain without a model: sentences with slots, in a file that
// people can read and extend, which are answered at once with the tools that the
// robot has. Its sentences are also the grammar of the embedded recognizer, so
// that it understands all that can be recognized.
package reflex

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"perch/language"
)

//go:embed language/*.yaml
var languages embed.FS

// Book is the sentences that a reflex brain understands, and its answers, in one
// language.
type Book struct {
	language string
	words    *language.Words
	intents  []intent
	answers  []answer
	lists    map[string]list
	numbers  string
	phrases  map[string]string // the owner's own
}

type intent struct {
	fileIntent
	sentences []sentence
	source    string
	bundled   bool // it came with a skill
}

// answer is a possible answer to a question of yes or no.
type answer struct {
	sentence
	kind string // "yes", "no" or "neither"
}

type sentence struct {
	tree   node
	slots  []string // their names, in the order of the text
	source string   // "en.yaml:12"
}

type list struct {
	items        []item
	longestFirst []item
	numbers      bool
	source       string
}

// mostFile bounds a file of sentences.
const mostFile = 1 << 20

// Languages lists the languages with a file of sentences.
func Languages() []string {
	entries, err := languages.ReadDir("language")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads the book of a language ("en", "en-GB") and, if own is not empty, a
// file of the owner's own. Errors name all faults with file and line.
func Load(tag, own string) (*Book, error) {
	base, _, _ := strings.Cut(tag, "-")
	text, err := languages.ReadFile(path.Join("language", base+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("the reflex brain does not speak %q; it speaks %s", tag, strings.Join(Languages(), ", "))
	}
	b := &Book{words: new(language.Catalogue).In(tag), lists: map[string]list{}, phrases: map[string]string{}}
	if err := b.add(base+".yaml", text); err != nil {
		return nil, err
	}
	if own != "" {
		text, err := readOwn(own)
		if err != nil {
			return nil, fmt.Errorf("read sentences: %w", err)
		}
		if err := b.add(filepath.Base(own), text); err != nil {
			return nil, err
		}
	}
	return b, b.check()
}

func readOwn(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err == nil && len(text) > mostFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, mostFile)
	}
	return text, err
}

// Phrase is a sentence that the appliance says by itself, such as "misheard": the
// owner's own, or that of the language. The zero Book, with which configurations are
// checked, says nothing.
func (b *Book) Phrase(name string) string {
	if own := b.phrases[name]; own != "" || b.words == nil {
		return own
	}
	return b.words.Say("phrases." + name)
}

// add reads one file into the book.
func (b *Book) add(name string, text []byte) error {
	var f file
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.language = cmp.Or(f.Language, b.language)
	b.numbers = cmp.Or(f.Numbers, b.numbers)
	maps.Copy(b.phrases, f.Phrases)
	for listName, l := range f.Lists {
		b.addList(listName, l, source(name, l.line))
	}
	return errors.Join(
		b.addAnswers(name, "yes", f.Answers.Yes),
		b.addAnswers(name, "no", f.Answers.No),
		b.addAnswers(name, "neither", f.Answers.Neither),
		b.addIntents(name, f.Intents),
	)
}

func source(file string, line int) string { return file + ":" + strconv.Itoa(line) }

func (b *Book) addList(name string, f fileList, source string) {
	l := b.lists[name]
	l.source = source
	l.numbers = name == b.numbers
	for i, e := range f.entries {
		it := item{spoken: strings.ToLower(e.spoken), value: cmp.Or(e.value, strings.ToLower(e.spoken))}
		if l.numbers {
			it.value = strconv.Itoa(i)
		}
		it.words = strings.Fields(it.spoken)
		l.items = append(l.items, it)
	}
	l.longestFirst = slices.Clone(l.items)
	slices.SortStableFunc(l.longestFirst, func(a, b item) int { return len(b.words) - len(a.words) })
	b.lists[name] = l
}

func (b *Book) addAnswers(file, kind string, fs []fileSentence) error {
	said, err := readSentences(file, fs)
	for _, s := range said {
		b.answers = append(b.answers, answer{s, kind})
	}
	return err
}

func (b *Book) addIntents(file string, fs fileIntents) error {
	var added []intent
	var faults []error
	for _, f := range fs {
		sentences, err := readSentences(file, f.Sentences)
		if err != nil {
			faults = append(faults, err)
		}
		added = append(added, intent{fileIntent: f, sentences: sentences, source: source(file, f.line)})
	}
	b.intents = append(added, b.intents...)
	return errors.Join(faults...)
}

// readSentences reads the valid sentences, and returns the faults of the others.
func readSentences(file string, fs []fileSentence) (all []sentence, err error) {
	var faults []error
	for _, s := range fs {
		tree, err := parseSentence(s.text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: sentence %q: %w", source(file, s.line), s.text, err))
			continue
		}
		all = append(all, sentence{tree, slots(tree), source(file, s.line)})
	}
	return all, errors.Join(faults...)
}
