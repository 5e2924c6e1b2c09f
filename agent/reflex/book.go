// Package reflex is a brain without a model. It compares what a person says with sentences
// that have slots for variable parts, and answers immediately, with the robot's tools. The
// sentences are in files that owners can read and extend. The English sentences are also the grammar
// of the embedded recognizer (package voice/sphinx), which therefore returns only these sentences
// and answers to yes-or-no questions.
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
	language  language.Tag
	catalogue *language.Catalogue // nil in the zero Book
	music     []intent            // intents that AddMusic adds
	intents   []intent            // if a sentence is in several intents, the first intent is used
	answers   []answer
	lists     map[string]list   // key: name of the list
	numbers   string            // name of the list of numbers
	signs     map[string]string // key: sign, such as "%"; value: its spoken form
	phrases   map[string]string // the owner's phrases; key: name of the phrase

	unfinished [][]string // words that end no sentence; each entry is one word or several
}

// intent is a command that a person can give by one of several sentences.
type intent struct {
	fileIntent
	sentences []sentence
	source    string // file and line, or the skill
	bundled   bool   // whether the intent comes with a skill or the owner's music
}

// answer is a possible answer to a yes-or-no question.
type answer struct {
	sentence
	kind string // "yes", "no" or "neither"
}

// sentence is a parsed sentence.
type sentence struct {
	tree   node
	slots  []slot // in the order of the text
	source string // file and line, such as "en.yaml:12", or the skill
}

// list is a list of the entries that can fill a slot.
type list struct {
	items        []item // in the order of the files
	longestFirst []item // the same items, those with the most words first
	source       string // file and line
}

// Load reads the book for a language tag ("en", "de-AT"). If own is not "", it adds the
// owner's file with this name. An error about the content of a file names the file and the line of
// each fault, but no line for a fault of its language, signs or unfinished words.
func Load(tag, own string) (*Book, error) {
	books, err := LoadEach([]string{tag}, own)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// LoadEach reads the books for several language tags. If own is not "", it adds the owner's
// file with this name to the book of the language that the file names, or else to the first
// book. Errors are as for Load.
func LoadEach(tags []string, own string) ([]*Book, error) {
	var books []*Book
	catalogue := new(language.Catalogue)
	for _, tag := range tags {
		matched, ok := language.Match(tag)
		if !ok {
			return nil, fmt.Errorf("the reflex brain does not speak %q; it speaks %s", tag, names(language.All()))
		}
		name := string(matched) + ".yaml"
		text, err := files.ReadFile(path.Join("language", name))
		if err != nil {
			return nil, fmt.Errorf("read the sentences in %q: %w", tag, err)
		}
		f, err := readFile(name, text)
		if err != nil {
			return nil, err
		}
		b := &Book{language: matched, catalogue: catalogue, lists: map[string]list{}, signs: map[string]string{}, phrases: map[string]string{}}
		if err := b.addFile(name, f); err != nil {
			return nil, err
		}
		books = append(books, b)
	}
	if own != "" {
		if err := addOwnFile(books, own); err != nil {
			return nil, err
		}
	}
	var faults []error
	for _, b := range books {
		b.markNumbers()
		faults = append(faults, b.check())
	}
	return books, errors.Join(faults...)
}

// Share replaces the catalogue that LoadEach has created by a catalogue that other packages may use too.
func (b *Book) Share(catalogue *language.Catalogue) { b.catalogue = catalogue }

// words returns the words of the book's language in the catalogue.
func (b *Book) words() *language.Words { return b.catalogue.In(string(b.language)) }

// names returns language tags as text, separated by commas.
func names(tags []language.Tag) string {
	texts := make([]string, len(tags))
	for i, tag := range tags {
		texts[i] = string(tag)
	}
	return strings.Join(texts, ", ")
}

// addOwnFile adds the owner's file to the book of the language that the file names, or else
// to the first book.
func addOwnFile(books []*Book, own string) error {
	text, err := os.ReadFile(own)
	if err == nil && len(text) > limit.File {
		err = fmt.Errorf("%s is larger than %d bytes", own, limit.File)
	}
	if err != nil {
		return fmt.Errorf("read sentences: %w", err)
	}
	name := filepath.Base(own)
	f, err := readFile(name, text)
	if err != nil {
		return err
	}
	book := books[0]
	if f.Language != "" {
		tag, _ := language.Match(f.Language)
		i := slices.IndexFunc(books, func(b *Book) bool { return b.language == tag })
		if i < 0 {
			var tags []language.Tag
			for _, b := range books {
				tags = append(tags, b.language)
			}
			return fmt.Errorf("%s: its language is %.40q, but the languages of this Perch are %s; "+
				"add it to language in the configuration, or leave the line out of the file", name, f.Language, names(tags))
		}
		book = books[i]
	}
	return book.addFile(name, f)
}

// OwnPhrase returns the owner's phrase with this name, or "" if the owner has not set it.
func (b *Book) OwnPhrase(name string) string { return b.phrases[name] }

// Phrase returns the phrase with this name, such as "misheard": the owner's phrase, or else
// the catalogue's. The zero Book, which is used to check configurations, returns "".
func (b *Book) Phrase(name string) string {
	if own := b.OwnPhrase(name); own != "" || b.catalogue == nil {
		return own
	}
	return b.words().Message("phrases." + name)
}

// readFile decodes a file with this name.
func readFile(name string, text []byte) (f file, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// addFile adds the contents of a file. Its intents come before the intents of earlier
// files.
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
		b.addUnfinished(name, f.Unfinished),
		b.addIntents(name, f.Intents),
	)...)
}

// addUnfinished adds words that end no sentence.
func (b *Book) addUnfinished(file string, entries []string) error {
	for _, entry := range entries {
		words := language.Split(entry)
		if len(words) == 0 {
			return fmt.Errorf("%s: unfinished: %.40q has no words", file, entry)
		}
		b.unfinished = append(b.unfinished, words)
	}
	return nil
}

// source returns a file name and line number as text.
func source(file string, line int) string { return file + ":" + strconv.Itoa(line) }

// addList adds entries to the list with this name. An entry may have alternatives separated
// by bars. An entry without a value gets as its value its index in f, from 0, if the list is
// the list of numbers, and its first alternative otherwise. Answers contain the entry's value if the
// value was given and has letters, and otherwise the first alternative.
func (b *Book) addList(name string, f fileList, source string) error {
	l := b.lists[name]
	l.source = source
	var faults []error
	for i, e := range f.entries {
		first, _, _ := strings.Cut(e.spoken, "|")
		it := item{spoken: strings.TrimSpace(first), value: e.value}
		switch {
		case name == b.numbers && e.value == "":
			it.value = strconv.Itoa(i)
		case e.value == "":
			it.value = it.spoken
		case strings.ContainsFunc(e.value, unicode.IsLetter):
			it.spoken = e.value
		}
		for alternative := range strings.SplitSeq(e.spoken, "|") {
			parts := strings.Fields(language.Fold(alternative))
			if len(parts) == 0 || slices.ContainsFunc(parts, func(w string) bool { return !isWord(w) }) {
				faults = append(faults, fmt.Errorf("%s: list %q: %q is not words of letters, apostrophes and hyphens", source, name, alternative))
				continue
			}
			it.words = language.Split(alternative)
			l.items = append(l.items, it)
		}
	}
	l.longestFirst = slices.Clone(l.items)
	slices.SortStableFunc(l.longestFirst, func(a, b item) int { return len(b.words) - len(a.words) })
	b.lists[name] = l
	return errors.Join(faults...)
}

// markNumbers marks the entries of all lists that are in the list of numbers too, with the same
// value. An utterance may have the marked entries in digits.
func (b *Book) markNumbers() {
	isNumber := map[string]bool{} // key: words and value
	key := func(it item) string { return strings.Join(slices.Concat(it.words, []string{it.value}), " ") }
	for _, it := range b.lists[b.numbers].items {
		isNumber[key(it)] = true
	}
	for _, l := range b.lists {
		for _, items := range [][]item{l.items, l.longestFirst} {
			for i, it := range items {
				items[i].isNumber = isNumber[key(it)]
			}
		}
	}
}

// addSigns adds the spoken forms of signs.
func (b *Book) addSigns(file string, signs map[string]string) error {
	for sign, spoken := range signs {
		if utf8.RuneCountInString(sign) != 1 || len(language.Split(sign)) > 0 || len(language.Split(spoken)) == 0 {
			return fmt.Errorf("%s: signs: a sign must be one character, but not a letter or digit, and is spoken as words, not %.40q as %.40q",
				file, sign, spoken)
		}
		b.signs[language.Fold(sign)] = spoken
	}
	return nil
}

// addAnswers adds answers of this kind ("yes", "no" or "neither").
func (b *Book) addAnswers(file, kind string, fs []yaml.Node) error {
	sentences, err := parseSentences(file, fs)
	for _, s := range sentences {
		b.answers = append(b.answers, answer{s, kind})
	}
	return err
}

// addIntents adds intents before the intents that the book already has.
func (b *Book) addIntents(file string, fs fileIntents) error {
	var added []intent
	var faults []error
	for _, f := range fs {
		sentences, err := parseSentences(file, f.Sentences)
		if err != nil {
			faults = append(faults, err)
		}
		in := intent{fileIntent: f, sentences: sentences, source: source(file, f.line)}
		if in.bundled = isMusic(in); in.bundled {
			b.music = append([]intent{in}, b.music...)
			continue
		}
		added = append(added, in)
	}
	b.intents = append(added, b.intents...)
	return errors.Join(faults...)
}

// parseSentences parses sentences. It returns the valid ones and an error that joins the
// faults of the others, or only an error if one of them is not a text.
func parseSentences(file string, texts []yaml.Node) (sentences []sentence, err error) {
	var faults []error
	for _, n := range texts {
		if n.Kind == yaml.AliasNode {
			n = *n.Alias
		}
		if n.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: %w", file, fmt.Errorf("line %d: a sentence must be a text", n.Line))
		}
		tree, err := parseSentence(n.Value)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: sentence %q: %w", source(file, n.Line), n.Value, err))
			continue
		}
		sentences = append(sentences, sentence{tree, slots(tree), source(file, n.Line)})
	}
	return sentences, errors.Join(faults...)
}
