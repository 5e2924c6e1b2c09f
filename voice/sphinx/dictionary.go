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

// pronunciation is one way to say a word: "what(2)" and "HH W AH T".
type pronunciation struct {
	word, phones string
}

// lookUp returns every pronunciation of the given words, by word. It reads the model's
// dictionary line by line, since all of it would take 20 MB.
func lookUp(model string, words map[string]bool) (map[string][]pronunciation, error) {
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

// inOrder lists pronunciations by word, a word's first one first, as the library needs
// them.
func inOrder(found map[string][]pronunciation) []pronunciation {
	var all []pronunciation
	for _, of := range found {
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b pronunciation) int { return strings.Compare(a.word, b.word) })
	return all
}

// noModel returns the error for a missing model.
func noModel(act string, err error) error {
	return fmt.Errorf("%s: %w: %w (apt install pocketsphinx-en-us)", act, voice.ErrUnavailable, err)
}
