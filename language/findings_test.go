package language

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// whole is a text of a program that may be put together of several.
func whole(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return whole(n.X) + whole(n.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
			return text
		}
	}
	return ""
}

// holdsFindings: every language but English has each sentence that a program says with Sayf,
// with all its values, and no other. A format without a word of its own is that of every language.
func holdsFindings(t *testing.T, formats map[string]string) {
	t.Helper()
	if len(formats) < 100 {
		t.Fatalf("only %d sentences were found: %v", len(formats), slices.Sorted(maps.Keys(formats)))
	}
	for _, tag := range All()[1:] {
		name := filepath.Join(string(tag), "findings.json")
		own := findings(t, tag)
		for _, format := range slices.Sorted(maps.Keys(formats)) {
			if !strings.ContainsFunc(filled(format, make([]string, len(verbs(format)))), unicode.IsLetter) {
				delete(own, format)
				continue
			}
			said, has := own[format]
			if !has {
				t.Errorf("%s lacks %q of %s", name, format, formats[format])
			}
			if got, want := places(said), len(verbs(format)); has && (strings.TrimSpace(said) == "" || got != upTo(want)) {
				t.Errorf("%s says %q with the values %s; English has %d: %q", name, said, got, want, format)
			}
			delete(own, format)
		}
		for format := range own {
			t.Errorf("%s has %q, which no program says", name, format)
		}
	}
}

func findings(t *testing.T, tag Tag) (own map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(tag), "findings.json"))
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// places are the numbers of a sentence's values, each once.
func places(text string) string {
	var all []string
	for _, m := range regexp.MustCompile(`\{(\d+)\}`).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func upTo(n int) string {
	var all []string
	for i := range n {
		all = append(all, strconv.Itoa(i+1))
	}
	return strings.Join(all, " ")
}

// TestSaid: a sentence is an error in English, and keeps its format and its values, also
// where it is within another and where it has come over a socket.
func TestSaid(t *testing.T) {
	cause := errors.New("it is gone")
	why := Sayf("%s is busy", "a")
	s := Sayf("%q fails %d times (%w, %w); %.1f", "x", 3, why, cause, 1.25)
	if got := s.Error(); got != `"x" fails 3 times (a is busy, it is gone); 1.2` || !errors.Is(s, cause) || !errors.Is(s, why) {
		t.Errorf("it says %s", got)
	}
	text, err := json.Marshal(s)
	if want := `["%q fails %d times (%w, %w); %.1f","\"x\"","3",["%s is busy","a"],"it is gone","1.2"]`; err != nil || string(text) != want {
		t.Errorf("its JSON is %s, %v", text, err)
	}
	var read *Said
	if err := json.Unmarshal(text, &read); err != nil || read.Error() != s.Error() {
		t.Errorf("read, it says %v, %v", read, err)
	}
	if again, err := json.Marshal(read); err != nil || string(again) != string(text) {
		t.Errorf("read, its JSON is %s, %v", again, err)
	}
	for err, want := range map[error]*Said{nil: nil, cause: nil, s: s, errors.Join(s, nil): s, fmt.Errorf("%w", s): s,
		fmt.Errorf("open: %w", s): nil, fmt.Errorf("%w, %w", s, cause): nil, errors.Join(cause, cause): nil} {
		if got := SaidBy(err); got != want {
			t.Errorf("%v is said by %v", err, got)
		}
	}
	line := Sayf("%w and more", why)
	several := errors.Join(s, errors.Join(line, cause))
	if got := SaidBy(several); got == nil || got.Error() != several.Error() || !errors.Is(got, cause) {
		t.Errorf("several are said by %v", got)
	} else if text, err := json.Marshal(got.values[1]); err != nil || string(text) != `["%w\n%w",["%w and more",["%s is busy","a"]],"it is gone"]` {
		t.Errorf("several are %s, %v", text, err)
	}
	other := s.With(strings.ToUpper)
	if got := other.Error(); got != `"X" fails 3 times (A is busy, IT IS GONE); 1.2` || !errors.Is(other, cause) || SaidBy(other) != other {
		t.Errorf("changed, it says %s", got)
	}
	chain := s
	for range 20 {
		chain = Sayf("it needs %w", errors.Join(chain, cause))
	}
	text, err = json.Marshal(chain)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || read.Error() != chain.Error() {
		t.Errorf("a chain of 20 is read as %v, %v", read, err)
	}
	deep := strings.Repeat(`["%s",`, 40) + `"x"` + strings.Repeat(`]`, 40)
	for _, bad := range []string{`{}`, `[]`, `[1]`, `["%s",1]`, `["%s",{}]`, `["%s",[]]`, deep} {
		if err := json.Unmarshal([]byte(bad), new(Said)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// ownersMeet are the packages and files whose errors owners meet in the page, and the texts
// of those that are no sentences for them.
func ownersMeet() map[string][]string {
	return map[string][]string{
		"agent/manifest":               {"keep the instructions: %w", "write the manifest: %w"}, // JSON is written
		"agent/mood/sentiment.go":      nil,
		"agent/persona.go":             nil,
		"agent/reflex/book.go":         nil,
		"agent/reflex/check.go":        nil,
		"agent/reflex/file.go":         nil,
		"agent/reflex/sentence.go":     nil,
		"agent/skill/bundle.go":        nil,
		"agent/skill/order.go":         nil,
		"agent/skill/schema.go":        nil,
		"agent/skill/trust.go":         {"sign the skill: %w"}, // perch skill sign says it
		"agent/skill/version.go":       nil,
		"agent/words.go":               nil,
		"cmd/perch/appliance/owned.go": nil,
		"cmd/perch/config":             {"line %d: cannot unmarshal %s into Languages"}, // which syntax rewords
		"gateway/relay":                nil,
		"perception/gestures.go":       nil,
		"voice/sphinx/check.go":        nil,
		"voice/sphinx/parse.go":        nil,
	}
}

// TestOwnersMeetSentences: what such a package says is a sentence that other languages have.
func TestOwnersMeetSentences(t *testing.T) {
	for dir, others := range ownersMeet() {
		var found []string
		each(t, dir, func(file string, n ast.Node) {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return
			}
			f, is := call.Fun.(*ast.SelectorExpr)
			if !is || nameOfType(f.X) != "fmt" && nameOfType(f.X) != "errors" || f.Sel.Name != "Errorf" && f.Sel.Name != "New" {
				return
			}
			text := whole(call.Args[0])
			if found = append(found, text); text != "" && !slices.Contains(others, text) {
				t.Errorf("%s says %q, which is English in every language; say it by language.Sayf", file, text)
			}
		})
		for _, text := range others {
			if !slices.Contains(found, text) {
				t.Errorf("%s does not say %q", dir, text)
			}
		}
	}
}
