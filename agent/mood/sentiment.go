package mood

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"perch/limit"
	"perch/plain"
)

// Sentiment is the feeling in the words of a sentence.
type Sentiment struct {
	Valence   float64 // from -1 (bad) to 1 (good)
	Arousal   float64 // from 0 to 1
	Uncertain float64 // from 0 to 1
}

// Words holds the word lists for judging sentences: the built-in ones, and the owner's.
// It is immutable.
type Words struct {
	languages []lexicon // in the order of their codes
}

// lexicon holds the words of one language.
type lexicon struct {
	code    string  // "en"
	entries []entry // longest first, so that "not sure" is not also "sure"
}

// entry is a word or phrase that expresses one or more feelings.
type entry struct {
	text     string // lower case; with surrounding spaces in scripts that have them
	feelings uint   // a bit each
}

// Bounds of word lists.
const (
	mostWords = 5000 // of a list
	mostEntry = 100  // bytes of an entry
)

//go:embed words/*.txt
var own embed.FS

var listName = regexp.MustCompile(`^([a-z]{2,3})\.txt$`)

// ReadWords returns the built-in lists merged with those of an owner's directory, named
// LANGUAGE.txt, such as de.txt. The directory may be missing. Lists with errors are left
// out and reported in err; the others are still returned.
func ReadWords(directory string) (Words, error) {
	lists := map[string]map[string]uint{}
	builtIn, err := fs.Sub(own, "words")
	if err == nil {
		err = readLists(builtIn, "", lists)
	}
	if directory != "" {
		err = errors.Join(err, readLists(os.DirFS(directory), directory, lists))
	}
	var w Words
	for code, list := range lists {
		l := lexicon{code: code}
		for text, feelings := range list {
			l.entries = append(l.entries, entry{text, feelings})
		}
		slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text)) })
		w.languages = append(w.languages, l)
	}
	slices.SortFunc(w.languages, func(a, b lexicon) int { return strings.Compare(a.code, b.code) })
	return w, err
}

// readLists adds the lists of a directory.
func readLists(from fs.FS, directory string, to map[string]map[string]uint) (failed error) {
	files, err := fs.ReadDir(from, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the lists of words in %s cannot be read: %w", directory, err)
	}
	for _, f := range files {
		named := listName.FindStringSubmatch(f.Name())
		if named == nil {
			continue
		}
		list, err := readList(from, f.Name())
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", filepath.Join(directory, f.Name()), err))
			continue
		}
		if to[named[1]] == nil {
			to[named[1]] = map[string]uint{}
		}
		for text, feelings := range list {
			to[named[1]][text] |= feelings
		}
	}
	return failed
}

func readList(from fs.FS, name string) (map[string]uint, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, limit.List+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limit.List {
		return nil, fmt.Errorf("the list is larger than %d bytes; make it smaller", limit.List)
	}
	return parseList(string(text))
}

// parseList parses lines such as "concern: error, went wrong".
func parseList(text string) (map[string]uint, error) {
	list := map[string]uint{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, colon := strings.Cut(line, ":")
		feeling, known := Named(strings.TrimSpace(name))
		if !colon || !known {
			return nil, fmt.Errorf("line %d: it begins with none of the feelings; write for example \"concern: error, went wrong\"", n)
		}
		for word := range strings.SplitSeq(words, ",") {
			text := normalize(word)
			switch {
			case strings.TrimSpace(text) == "":
				continue
			case len(text) > mostEntry:
				return nil, fmt.Errorf("line %d: a word has at most %d bytes; separate words with commas", n, mostEntry)
			case len(list) >= mostWords:
				return nil, fmt.Errorf("line %d: a list has at most %d words; make it smaller", n, mostWords)
			}
			list[text] |= 1 << uint(feeling)
		}
	}
	return list, nil
}

// normalize normalizes a text for comparing words: lower case, no punctuation, one space
// between words and at both ends. Text in scripts without spaces has none, and is found
// inside other text.
func normalize(text string) string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != '\'' && r != '’' && r != '-'
	})
	var words []string
	for _, f := range fields {
		if f = strings.Trim(strings.ReplaceAll(f, "’", "'"), "'-"); f != "" {
			words = append(words, f)
		}
	}
	joined := strings.Join(words, " ")
	if strings.ContainsFunc(joined, unspaced) {
		return joined
	}
	return " " + joined + " "
}

// unspaced reports whether r is of a script without spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

// CountWords returns the number of words of a text. In scripts without spaces two
// letters count as one word.
func CountWords(text string) int { return countWords(normalize(plain.Clip(text, limit.Data)), false) }

func countWords(text string, unique bool) (n int) {
	seen, letters := map[string]bool{}, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || unspaced(r) }) {
		if !unique || !seen[word] {
			n++
		}
		seen[word] = true
	}
	for _, r := range text {
		if unspaced(r) {
			letters++
		}
	}
	return n + (letters+1)/2
}

// Analyse judges a sentence by the language that matches most of its words; of equals,
// by the preferred one ("de", or "de-CH"; may be empty).
func (w Words) Analyse(text, preferred string) Sentiment {
	text = plain.Clip(text, limit.Data)
	preferred, _, _ = strings.Cut(strings.ToLower(preferred), "-")
	sentence := normalize(text)
	if !strings.HasPrefix(sentence, " ") {
		sentence = " " + sentence + " " // in mixed scripts, words with spaces must be found too
	}
	var best [feelings]int
	most, kana := 0, strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) })
	for _, l := range w.languages {
		if l.code == "zh" && kana {
			continue
		}
		hits, n := l.count(sentence)
		if n > most || n == most && n > 0 && l.code == preferred {
			best, most = hits, n
		}
	}
	return sentiment(best, max(1, countWords(sentence, true)), text)
}

// count returns how many words of a sentence express each feeling, and any feeling.
func (l lexicon) count(sentence string) (hits [feelings]int, n int) {
	for _, e := range l.entries {
		if !strings.Contains(sentence, e.text) {
			continue
		}
		sentence = strings.ReplaceAll(sentence, e.text, "  ") // prevents shorter words inside it from matching
		for left := e.feelings; left != 0; left &= left - 1 {
			hits[bits.TrailingZeros(left)]++
		}
		n++
	}
	return hits, n
}

// sentiment converts the counts to a Sentiment.
func sentiment(hits [feelings]int, words int, text string) Sentiment {
	var score [feelings]float64
	for i, n := range hits {
		score[i] = min(3*float64(n)/float64(words), 1)
	}
	marks := 0.
	for _, r := range text {
		switch r {
		case '!', '！':
			marks += .2
		case '?', '？':
			marks += .1
		}
	}
	return Sentiment{
		Valence:   within(.8*score[Celebration]-.7*score[Concern]-.3*score[Empathy], 1),
		Arousal:   min(1, .9*score[Curiosity]+.3*score[Patience]+min(marks, .5)),
		Uncertain: score[Uncertain],
	}
}
