package mood

import (
	"bufio"
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

// Sentiment is what the words of a sentence tell of a feeling.
type Sentiment struct {
	Valence   float64 // from -1, bad, to 1, good
	Arousal   float64 // from 0 to 1
	Uncertain float64 // from 0 to 1
}

// Words are the lists by which sentences are judged: those of this package, and an
// owner's. It does not change.
type Words struct {
	languages []lexicon // in the order of their codes
}

// lexicon are the words of one language.
type lexicon struct {
	code    string  // "en"
	entries []entry // longest first, so that "not sure" is not also "sure"
}

// entry is a word, or several that follow one another, of one or more feelings.
type entry struct {
	text     string // in small letters; between spaces where its script has them
	feelings uint   // a bit each
}

// Bounds of what is read.
const (
	mostWords = 5000 // of a list
	mostEntry = 100  // bytes of an entry
)

//go:embed words/*.txt
var own embed.FS

var listName = regexp.MustCompile(`^([a-z]{2,3})\.txt$`)

// ReadWords returns the lists of this package with those of an owner's directory added
// to them: LANGUAGE.txt, such as de.txt. A directory that does not exist has none. A
// list with an error is left out and told of in err, and the others are good all the same.
func ReadWords(directory string) (Words, error) {
	lists := map[string]map[string]uint{}
	builtIn, err := fs.Sub(own, "words")
	if err == nil {
		err = readLists(builtIn, "", lists)
	}
	if directory != "" {
		err = errors.Join(err, readLists(os.DirFS(directory), directory, lists))
	}
	w := Words{}
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

// parseList reads lines such as "concern: error, went wrong".
func parseList(text string) (map[string]uint, error) {
	list := map[string]uint{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, limit.List+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, colon := strings.Cut(line, ":")
		feeling, known := Named(strings.TrimSpace(name))
		if !colon || !known {
			return nil, fmt.Errorf("line %d: it begins with none of the feelings; write for example \"concern: error, went wrong\"", n)
		}
		for word := range strings.SplitSeq(words, ",") {
			text := normal(word)
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
	return list, lines.Err()
}

// normal brings a text to the form in which words are compared: small letters, no
// punctuation, one space between words and at both ends. What is written without spaces
// has none: it is found inside other text.
func normal(text string) string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != '\'' && r != '’' && r != '-'
	})
	var kept []string
	for _, f := range fields {
		if f = strings.Trim(strings.ReplaceAll(f, "’", "'"), "'-"); f != "" {
			kept = append(kept, f)
		}
	}
	joined := strings.Join(kept, " ")
	if strings.ContainsFunc(joined, unspaced) {
		return joined
	}
	return " " + joined + " "
}

// unspaced holds for letters of scripts that put no spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

// CountWords is the number of words of a text. In scripts without spaces two letters
// count as one.
func CountWords(text string) int { return countWords(normal(plain.Clip(text, limit.Data)), false) }

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

// Analyse judges a sentence by the language whose words it has most of; of two, by the
// one that is preferred ("de", or "de-CH"; may be empty).
func (w Words) Analyse(text, preferred string) Sentiment {
	text = plain.Clip(text, limit.Data)
	preferred, _, _ = strings.Cut(strings.ToLower(preferred), "-")
	sentence := normal(text)
	if !strings.HasPrefix(sentence, " ") {
		sentence = " " + sentence + " " // of mixed scripts: words with spaces are found there, too
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

// count is in how many words of each feeling a sentence has a part, and in how many of all.
func (l lexicon) count(sentence string) (hits [feelings]int, n int) {
	for _, e := range l.entries {
		if !strings.Contains(sentence, e.text) {
			continue
		}
		sentence = strings.ReplaceAll(sentence, e.text, "  ") // a shorter word inside it does not count again
		for left := e.feelings; left != 0; left &= left - 1 {
			hits[bits.TrailingZeros(left)]++
		}
		n++
	}
	return hits, n
}

// sentiment brings hits to scores, and these together.
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
