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

// Sentiment describes the feelings that a sentence expresses.
type Sentiment struct {
	Valence   float64 // from -1 (bad) to 1 (good)
	Arousal   float64 // from 0 to 1
	Uncertain float64 // from 0 to 1
}

// Words contains lists of words that express feelings: the built-in lists and the owner's
// lists. It is immutable.
type Words struct {
	languages []lexicon // in the order of their codes
}

// lexicon contains the words of one language.
type lexicon struct {
	code    string  // language code, such as "en"
	entries []entry // longest first: "not sure" is found before "sure"
}

// entry is a word or phrase that expresses one or more feelings.
type entry struct {
	text     string // normalized
	feelings uint   // bit set; bit n is Feeling(n)
}

// Limits of word lists.
const (
	maxEntries    = 5000 // words and phrases in a list
	maxEntryBytes = 100  // bytes of a word or phrase
)

// builtinLists contains the built-in word lists.
//
//go:embed words/*.txt
var builtinLists embed.FS

// listName matches the file names of word lists. The submatch is the language code.
var listName = regexp.MustCompile(`^([a-z]{2,3})\.txt$`)

// ReadWords returns the built-in lists merged with the owner's lists. The owner's lists are
// files with names such as de.txt in directory, which may be missing. Invalid lists are
// skipped and reported in the error; the other lists are still returned.
func ReadWords(directory string) (Words, error) {
	lists := map[string]map[string]uint{}
	builtIn, err := fs.Sub(builtinLists, "words")
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

// readLists reads the lists in the file system from, and adds the feelings of their entries
// to the map to, whose keys are the language and the text of the entry. In errors, directory
// is the name of the file system.
func readLists(from fs.FS, directory string, to map[string]map[string]uint) (failed error) {
	files, err := fs.ReadDir(from, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the lists of words in %s cannot be read: %w", directory, err)
	}
	for _, f := range files {
		match := listName.FindStringSubmatch(f.Name())
		if match == nil {
			continue
		}
		code := match[1]
		list, err := readList(from, f.Name())
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", filepath.Join(directory, f.Name()), err))
			continue
		}
		if to[code] == nil {
			to[code] = map[string]uint{}
		}
		for text, feelings := range list {
			to[code][text] |= feelings
		}
	}
	return failed
}

// readList reads a word list. It returns the feelings of each entry by text.
func readList(from fs.FS, name string) (map[string]uint, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	text, err := io.ReadAll(io.LimitReader(f, limit.List+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limit.List {
		return nil, fmt.Errorf("the list is larger than %d bytes; make it smaller", limit.List)
	}
	return parseList(string(text))
}

// parseList parses a word list, which has lines such as "concern: error, went wrong".
func parseList(text string) (map[string]uint, error) {
	list := map[string]uint{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, hasColon := strings.Cut(line, ":")
		feeling, ok := Named(strings.TrimSpace(name))
		if !hasColon || !ok {
			return nil, fmt.Errorf("line %d: it does not begin with a feeling; write for example \"concern: error, went wrong\"", n)
		}
		for word := range strings.SplitSeq(words, ",") {
			text := normalize(word)
			switch {
			case strings.TrimSpace(text) == "":
				continue
			case len(text) > maxEntryBytes:
				return nil, fmt.Errorf("line %d: a word has at most %d bytes; separate words with commas", n, maxEntryBytes)
			case len(list) >= maxEntries:
				return nil, fmt.Errorf("line %d: a list has at most %d words; make it smaller", n, maxEntries)
			}
			list[text] |= 1 << uint(feeling)
		}
	}
	return list, nil
}

// normalize prepares a text for comparing words: it returns the text in lower case, with one
// space between words and at both ends. It removes punctuation, except apostrophes and hyphens
// within words. A text in a script without spaces gets no spaces at the ends.
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
	if strings.ContainsFunc(joined, isUnspaced) {
		return joined
	}
	return " " + joined + " "
}

// isUnspaced reports whether r belongs to a script without spaces between words.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

// CountWords returns the number of words in the first limit.Data bytes of a text. In scripts
// without spaces, two characters count as one word.
func CountWords(text string) int { return countWords(normalize(plain.Clip(text, limit.Data)), false) }

// countWords counts the words in a normalized text. If unique is true, repeated words count
// once, except in scripts without spaces.
func countWords(text string, unique bool) (n int) {
	seen, unspaced := map[string]bool{}, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || isUnspaced(r) }) {
		if !unique || !seen[word] {
			n++
		}
		seen[word] = true
	}
	for _, r := range text {
		if isUnspaced(r) {
			unspaced++
		}
	}
	return n + (unspaced+1)/2
}

// Analyse returns the sentiment of a sentence. It uses the language with the most matching
// entries, but not Chinese for a sentence with Japanese kana. If several languages have equally
// many matching entries, it uses the preferred one, such as "de" or "de-CH", or else the first by
// language code; preferred may be empty.
func (w Words) Analyse(text, preferred string) Sentiment {
	text = plain.Clip(text, limit.Data)
	preferred, _, _ = strings.Cut(strings.ToLower(preferred), "-")
	sentence := normalize(text)
	if !strings.HasPrefix(sentence, " ") {
		sentence = " " + sentence + " " // in mixed scripts, the first and last word may need their spaces
	}
	var best [feelings]int
	maxHits := 0
	isJapanese := strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) })
	for _, l := range w.languages {
		if l.code == "zh" && isJapanese {
			continue
		}
		hits, n := l.count(sentence)
		if n > maxHits || n == maxHits && n > 0 && l.code == preferred {
			best, maxHits = hits, n
		}
	}
	return newSentiment(best, max(1, countWords(sentence, true)), text)
}

// count returns the number of different entries in a sentence, for each feeling and in total.
func (l lexicon) count(sentence string) (hits [feelings]int, n int) {
	for _, e := range l.entries {
		if !strings.Contains(sentence, e.text) {
			continue
		}
		sentence = strings.ReplaceAll(sentence, e.text, "  ") // prevents matches of shorter entries within this match
		for left := e.feelings; left != 0; left &= left - 1 {
			hits[bits.TrailingZeros(left)]++
		}
		n++
	}
	return hits, n
}

// newSentiment computes the sentiment of a text. hits counts the entries in the text for each
// feeling, and words is the number of words.
func newSentiment(hits [feelings]int, words int, text string) Sentiment {
	var score [feelings]float64
	for i, n := range hits {
		score[i] = min(3*float64(n)/float64(words), 1) // 1 if at least a third of the words express the feeling
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
		Valence:   clamp(.8*score[Celebration]-.7*score[Concern]-.3*score[Empathy], 1),
		Arousal:   min(1, .9*score[Curiosity]+.3*score[Patience]+min(marks, .5)),
		Uncertain: score[Uncertain],
	}
}
