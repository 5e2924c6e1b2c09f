package remote

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"perch/plain"
)

// shape recognizes and replaces one kind of key.
type shape struct {
	pattern     *regexp.Regexp
	replacement string // as for Regexp.ReplaceAllString
}

// blank is what shape.replacement has in place of the key.
const blank = "***"

// shapes returns the kinds of keys in commands and sentences, in the order of
// replacement. Keys after a word such as "bearer" or "token" come first, because the word shows where the
// key begins.
var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`), "$1 ***"},
		{regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw(?:or)?d))(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`), "$1$2***"},
		// The word after an option such as --token, unless the word is another option or a
		// shell expansion.
		{regexp.MustCompile(`(?i)((?:^|\s)--?[\w-]*(?:api-?key|token|secret|passw(?:or)?d|passphrase)[ \t]+)("[^"]*"|'[^']*'|[^\s"'` + "`" +
			`;|&<>$-][^\s"',;|&<>]*)`), "$1***"},
		// The password in -u user:password.
		{regexp.MustCompile(`((?:^|\s)(?:-u|--user)(?:[ \t]+|=))(?:("[^":]*:)[^"]+|('[^':]*:)[^']+|([^\s"':;|&<>$]+:)[^\s"',;|&<>]+)`), "$1$2$3$4***"},
		{regexp.MustCompile(`://[^/\s@]+@`), "://***@"},
		{regexp.MustCompile(`\b(?:(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z])[-_]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}`), "***"},
		{regexp.MustCompile(`\b[A-Za-z0-9_+=-]*[0-9][A-Za-z0-9_+=-]{31,}`), "***"},
	}
})

// quoted matches further kinds of keys, which are replaced only in text from servers: short
// keys, and keys with asterisks, because servers quote a refused key in this way. In a command,
// similar words may be something else.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:(?:sk|pk|rk|key|xai|gsk|hf|gh[a-z]|github_pat)[-_]|AIza)[A-Za-z0-9*._-]{4,}|\beyJ[\w.-]+|\S*\*{3,}\S*`)
})

// longRun matches a long run of letters, digits and underscores, which counts as a key if it contains a digit. Names
// of models do not match, because dashes, slashes and dots separate their parts.
var longRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\w{24,}`) })

// mark replaces a key in text from a server.
const mark = "[key]"

const (
	maxQuote    = 200     // maximum length of a quotation from a server, in bytes
	maxSearched = 1 << 10 // maximum length of the text that is searched for keys, in bytes
	// minPart is the minimum length of the beginning of a secret that is recognized at the
	// end of a text, in bytes.
	minPart = 4
)

// Quote returns text from a server for use in a sentence: like Scrub, and cut after 200 bytes.
func Quote(text string, secrets ...string) string {
	text = withoutSecrets(text, secrets)
	if len(text) > maxSearched {
		text = plain.Clip(text, maxSearched)
		if at := strings.LastIndexByte(text, ' '); at > 0 {
			text = text[:at] // the last word may be a part of a key, which would not be recognized
		}
	}
	text = withoutKeys(text)
	if len(text) > maxQuote {
		text = plain.Clip(text, maxQuote) + "…"
	}
	return text
}

// Scrub returns a text on one line. It replaces the secrets, also in their URL encodings, and
// everything else that looks like a key.
func Scrub(text string, secrets ...string) string {
	return withoutKeys(withoutSecrets(text, secrets))
}

// withoutSecrets returns a text on one line, with the secrets replaced by mark.
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

// withoutKeys returns a text with everything that looks like a key replaced by mark.
func withoutKeys(text string) string {
	text = quoted().ReplaceAllString(text, mark)
	for _, s := range shapes() {
		text = s.pattern.ReplaceAllString(text, strings.Replace(s.replacement, blank, mark, 1))
	}
	return longRun().ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsAny(run, "0123456789") {
			return mark
		}
		return run
	})
}

// withoutPart replaces the beginning of a secret at the end of a text by mark. A limit on the length of
// text from a server may have cut off the rest of the secret.
func withoutPart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= minPart; n-- {
		if rest, cut := strings.CutSuffix(text, secret[:n]); cut {
			return rest + mark
		}
	}
	return text
}

// Redact replaces everything that looks like a key in a command or a title by ***, and cuts the text to
// maxBytes.
func Redact(s string, maxBytes int) string {
	if len(s) > 4*maxBytes {
		s = plain.Clip(s, 4*maxBytes)
		if at := strings.LastIndexAny(s, " \t\n"); at > 0 {
			s = s[:at] // the last word may be a part of a key, which would not be recognized
		}
	}
	for _, key := range shapes() {
		s = key.pattern.ReplaceAllString(s, key.replacement)
	}
	return plain.Clip(strings.TrimSpace(s), maxBytes)
}

// Conceals reports whether Redact would hide more of a command than a key, for example a second
// command or a redirection. A person must not be asked to allow a command that is not shown.
func Conceals(command string) bool {
	for _, key := range shapes() {
		for _, hidden := range key.pattern.FindAllString(command, -1) {
			if strings.ContainsAny(hidden, "`;|&<>\n") || strings.Contains(hidden, "$(") {
				return true
			}
		}
	}
	return false
}
