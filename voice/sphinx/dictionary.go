package sphinx

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perch/voice"
)

// pronunciation is an entry of the dictionary.
type pronunciation struct {
	word   string // such as "what", or "what(2)" for its second pronunciation
	phones string // such as "HH W AH T"
}

// readDictionary returns all pronunciations of the given words; the key is the word. It
// reads the model's dictionary line by line, because the whole would take 20 MB.
func readDictionary(model string, words map[string]bool) (map[string][]pronunciation, error) {
	path := filepath.Join(model, "cmudict-en-us.dict")
	file, err := os.Open(path)
	if err != nil {
		return nil, noModel("open the recognizer's dictionary", err)
	}
	defer file.Close()
	found := make(map[string][]pronunciation, len(words))
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		entry, phones, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		word, _, _ := bytes.Cut(entry, []byte("("))
		if words[string(word)] {
			w := string(word)
			found[w] = append(found[w], pronunciation{string(entry), string(bytes.TrimSpace(phones))})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, noModel("read the recognizer's dictionary "+path, err)
	}
	return found, nil
}

// sorted returns the pronunciations of all words sorted by word. The library needs the first
// pronunciation of a word before the others.
func sorted(byWord map[string][]pronunciation) []pronunciation {
	var all []pronunciation
	for _, pronunciations := range byWord {
		all = append(all, pronunciations...)
	}
	slices.SortFunc(all, func(a, b pronunciation) int { return strings.Compare(a.word, b.word) })
	return all
}

// noModel returns the error for a file of the model that cannot be read. action describes what
// was attempted.
func noModel(action string, err error) error {
	return fmt.Errorf("%s: %w: %w (sudo apt install pocketsphinx-en-us)", action, voice.ErrUnavailable, err)
}
