package remote

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"perch/plain"
)

// shape is the form of a kind of keys, with its replacement.
type shape struct {
	like *regexp.Regexp
	left string
}

// blank replaces a key in a shape.
const blank = "***"

// shapes returns the forms of keys in commands and sentences. The order matters: a named
// value is best cut at its name.
var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`), "$1 ***"},
		{regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw(?:or)?d))(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`), "$1$2***"},
		// An option's value in the next word, unless that is another option or a shell
		// expansion. Then the password after a user's name.
		{regexp.MustCompile(`(?i)((?:^|\s)--?[\w-]*(?:api-?key|token|secret|passw(?:or)?d|passphrase)[ \t]+)("[^"]*"|'[^']*'|[^\s"'` + "`" +
			`;|&<>$-][^\s"',;|&<>]*)`), "$1***"},
		{regexp.MustCompile(`((?:^|\s)(?:-u|--user)(?:[ \t]+|=))(?:("[^":]*:)[^"]+|('[^':]*:)[^']+|([^\s"':;|&<>$]+:)[^\s"',;|&<>]+)`), "$1$2$3$4***"},
		{regexp.MustCompile(`://[^/\s@]+@`), "://***@"},
		{regexp.MustCompile(`\b(?:(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z])[-_]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}`), "***"},
		{regexp.MustCompile(`\b[A-Za-z0-9_+=-]*[0-9][A-Za-z0-9_+=-]{31,}`), "***"},
	}
})

// quoted are the forms of keys in sentences of servers only: short or starred ones, as
// servers quote keys that they refuse. A command may contain such words.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:(?:sk|pk|rk|key|xai|gsk|hf|gh[a-z]|github_pat)[-_]|AIza)[A-Za-z0-9*._-]{4,}|\beyJ[\w.-]+|\S*\*{3,}\S*`)
})

// longRun matches a key if it contains a digit. Names of models contain dashes, slashes and
// dots, so they do not match.
var longRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\w{24,}`) })

// mark replaces a key in a sentence.
const mark = "[key]"

const (
	maxQuote    = 200     // bytes quoted of a server
	maxSearched = 1 << 10 // bytes of its text that are examined
	// shortestPart is the least part of a secret's beginning, in bytes, that is recognized
	// at the end of a text.
	shortestPart = 4
)

// Quote makes a server's text fit for a sentence: Scrub, cut to some 200 bytes.
func Quote(text string, secrets ...string) string {
	text = withoutSecrets(text, secrets)
	if len(text) > maxSearched {
		text = plain.Clip(text, maxSearched)
		if at := strings.LastIndexByte(text, ' '); at > 0 {
			text = text[:at] // half a key is not recognized
		}
	}
	text = withoutKeys(text)
	if len(text) > maxQuote {
		text = plain.Clip(text, maxQuote) + "…"
	}
	return text
}

// Scrub puts a text on one line, without the secrets in any of their usual encodings, and
// without anything else that looks like a key.
func Scrub(text string, secrets ...string) string {
	return withoutKeys(withoutSecrets(text, secrets))
}

func withoutSecrets(text string, secrets []string) string {
	text = plain.Text(plain.Line(text))
	for _, secret := range secrets {
		if secret = plain.Text(plain.Line(secret)); secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = withoutPart(strings.ReplaceAll(text, form, mark), form)
		}
	}
	return text
}

func withoutKeys(text string) string {
	text = quoted().ReplaceAllString(text, mark)
	for _, s := range shapes() {
		text = s.like.ReplaceAllString(text, strings.Replace(s.left, blank, mark, 1))
	}
	return longRun().ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsAny(run, "0123456789") {
			return mark
		}
		return run
	})
}

// withoutPart removes the beginning of a secret from the end of a text: text read from a
// server is bounded, and the limit may have cut the secret.
func withoutPart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= shortestPart; n-- {
		if rest, cut := strings.CutSuffix(text, secret[:n]); cut {
			return rest + mark
		}
	}
	return text
}

// Redact blanks what looks like a key in a command or a title, and cuts it to most bytes.
func Redact(s string, most int) string {
	if len(s) > 4*most {
		s = plain.Clip(s, 4*most)
		if at := strings.LastIndexAny(s, " \t\n"); at > 0 {
			s = s[:at] // half a key is not recognized
		}
	}
	for _, key := range shapes() {
		s = key.like.ReplaceAllString(s, key.left)
	}
	return plain.Clip(strings.TrimSpace(s), most)
}

// Conceals reports whether Redact would blank more of a command than a key, such as what a
// shell would run or write to. A person cannot allow what is not shown.
func Conceals(command string) bool {
	for _, key := range shapes() {
		for _, blanked := range key.like.FindAllString(command, -1) {
			if strings.ContainsAny(blanked, "`;|&<>\n") || strings.Contains(blanked, "$(") {
				return true
			}
		}
	}
	return false
}
