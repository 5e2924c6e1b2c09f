// Package reflex is a brain without a model: sentences with slots, in a file that
// people can read and extend, which are answered at once with the robot's tools. The
// sentences are also the grammar of the embedded recognizer, so that the brain
// understands everything that can be recognized.
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
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"perch/language"
	"perch/limit"
)

//go:embed language/*.yaml
var files embed.FS

// Book holds the sentences of a reflex brain and their answers, in one language.
type Book struct {
	language language.Tag
	all      *language.Catalogue // contains its words; nil means none
	intents  []intent
	answers  []answer
	lists    map[string]list
	numbers  string
	signs    map[string]string
	phrases  map[string]string // overridden by the owner
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
	slots  []slot // in the order of the text
	source string // "en.yaml:12"
}

type list struct {
	items        []item
	longestFirst []item
	source       string
}

// Load reads the book of a language ("en", "de-AT") and, if own is not empty, a file of
// the owner. Errors list all faults with file and line.
func Load(tag, own string) (*Book, error) {
	books, err := LoadEach([]string{tag}, own)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// LoadEach reads the books of several languages, and adds the owner's file to the book
// of the language that it names, or else to the first.
func LoadEach(tags []string, own string) ([]*Book, error) {
	var books []*Book
	all := new(language.Catalogue)
	for _, tag := range tags {
		known, ok := language.Match(tag)
		if !ok {
			return nil, fmt.Errorf("the reflex brain does not speak %q; it speaks %s", tag, names(language.All()))
		}
		name := string(known) + ".yaml"
		text, err := files.ReadFile(path.Join("language", name))
		if err != nil {
			return nil, fmt.Errorf("read the sentences in %q: %w", tag, err)
		}
		f, err := readFile(name, text)
		if err != nil {
			return nil, err
		}
		b := &Book{language: known, all: all, lists: map[string]list{}, signs: map[string]string{}, phrases: map[string]string{}}
		if err := b.addFile(name, f); err != nil {
			return nil, err
		}
		books = append(books, b)
	}
	if own != "" {
		if err := addOwn(books, own); err != nil {
			return nil, err
		}
	}
	var faults []error
	for _, b := range books {
		faults = append(faults, b.check())
	}
	return books, errors.Join(faults...)
}

// Share sets the catalogue, which may be shared with others.
func (b *Book) Share(all *language.Catalogue) { b.all = all }

// words returns the catalogue's words of the book's language.
func (b *Book) words() *language.Words { return b.all.In(string(b.language)) }

// names joins languages by commas.
func names(tags []language.Tag) string {
	all := make([]string, len(tags))
	for i, tag := range tags {
		all[i] = string(tag)
	}
	return strings.Join(all, ", ")
}

// addOwn adds the owner's file to the book of its language, or to the first.
func addOwn(books []*Book, own string) error {
	text, err := readOwn(own)
	if err != nil {
		return fmt.Errorf("read sentences: %w", err)
	}
	name := filepath.Base(own)
	f, err := readFile(name, text)
	if err != nil {
		return err
	}
	of := books[0]
	if f.Language != "" {
		tag, _ := language.Match(f.Language)
		i := slices.IndexFunc(books, func(b *Book) bool { return b.language == tag })
		if i < 0 {
			var tags []language.Tag
			for _, b := range books {
				tags = append(tags, b.language)
			}
			return fmt.Errorf("%s: its language is %.40q, and none of those of this Perch: %s; "+
				"add it to language in the configuration, or leave the line out of the file", name, f.Language, names(tags))
		}
		of = books[i]
	}
	return of.addFile(name, f)
}

func readOwn(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit.File+1))
	if err == nil && len(text) > limit.File {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit.File)
	}
	return text, err
}

// OwnPhrase returns the owner's replacement of one of the appliance's phrases, or "".
func (b *Book) OwnPhrase(name string) string { return b.phrases[name] }

// Phrase returns one of the appliance's phrases, such as "misheard": the owner's, or
// else the language's. The zero Book, which is used to check configurations, has none.
func (b *Book) Phrase(name string) string {
	if own := b.OwnPhrase(name); own != "" || b.all == nil {
		return own
	}
	return b.words().Message("phrases." + name)
}

func readFile(name string, text []byte) (f file, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (b *Book) addFile(name string, f file) error {
	b.numbers = cmp.Or(f.Numbers, b.numbers)
	maps.Copy(b.phrases, f.Phrases)
	var faults []error
	for listName, l := range f.Lists {
		faults = append(faults, b.addList(listName, l, source(name, l.line)))
	}
	return errors.Join(append(faults,
		b.addSigns(name, f.Signs),
		b.addAnswers(name, "yes", f.Answers.Yes),
		b.addAnswers(name, "no", f.Answers.No),
		b.addAnswers(name, "neither", f.Answers.Neither),
		b.addIntents(name, f.Intents),
	)...)
}

func source(file string, line int) string { return file + ":" + strconv.Itoa(line) }

// addList adds the entries of a list. Of an entry with alternatives separated by bars,
// the first is used in answers, unless the entry has a value.
func (b *Book) addList(name string, f fileList, source string) error {
	l := b.lists[name]
	l.source = source
	var faults []error
	for i, e := range f.entries {
		first, _, _ := strings.Cut(e.spoken, "|")
		it := item{spoken: strings.TrimSpace(first), value: e.value, number: name == b.numbers}
		switch {
		case it.number && e.value == "":
			it.value = strconv.Itoa(i)
		case e.value == "":
			it.value = it.spoken
		case strings.ContainsFunc(e.value, unicode.IsLetter):
			it.spoken = e.value
		}
		for way := range strings.SplitSeq(e.spoken, "|") {
			parts := strings.Fields(language.Fold(way))
			if len(parts) == 0 || slices.ContainsFunc(parts, func(w string) bool { return !isWord(w) }) {
				faults = append(faults, fmt.Errorf("%s: list %q: %q is not words of letters, apostrophes and hyphens", source, name, way))
				continue
			}
			it.words = language.Split(way)
			l.items = append(l.items, it)
		}
	}
	l.longestFirst = slices.Clone(l.items)
	slices.SortStableFunc(l.longestFirst, func(a, b item) int { return len(b.words) - len(a.words) })
	b.lists[name] = l
	return errors.Join(faults...)
}

// addSigns adds the spoken forms of signs.
func (b *Book) addSigns(file string, signs map[string]string) error {
	for sign, said := range signs {
		if utf8.RuneCountInString(sign) != 1 || len(language.Split(sign)) > 0 || len(language.Split(said)) == 0 {
			return fmt.Errorf("%s: signs: a sign is one that is no letter and no digit, and is said as words, not %.40q as %.40q",
				file, sign, said)
		}
		b.signs[language.Fold(sign)] = said
	}
	return nil
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

// readSentences parses the valid sentences, and returns the faults of the others.
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
