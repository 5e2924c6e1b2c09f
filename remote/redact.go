package remote

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"perch/plain"
)

// shape is what a kind of keys looks like, and what is left of one.
type shape struct {
	like *regexp.Regexp
	left string
}

// blank stands for a key in what is left of a shape.
const blank = "***"

// shapes are those of keys in commands and in sentences. The order matters:
// a value with a name is better cut where the name says.
var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`), "$1 ***"},
		{regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw(?:or)?d))(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`), "$1$2***"},
		// An option's value in the next word: neither another option nor what a shell
		// fills in. Then the password behind a user's name.
		{regexp.MustCompile(`(?i)((?:^|\s)--?[\w-]*(?:api-?key|token|secret|passw(?:or)?d|passphrase)[ \t]+)("[^"]*"|'[^']*'|[^\s"'` + "`" +
			`;|&<>$-][^\s"',;|&<>]*)`), "$1***"},
		{regexp.MustCompile(`((?:^|\s)(?:-u|--user)(?:[ \t]+|=))(?:("[^":]*:)[^"]+|('[^':]*:)[^']+|([^\s"':;|&<>$]+:)[^\s"',;|&<>]+)`), "$1$2$3$4***"},
		{regexp.MustCompile(`://[^/\s@]+@`), "://***@"},
		{regexp.MustCompile(`\b(?:(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z])[-_]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}`), "***"},
		{regexp.MustCompile(`\b[A-Za-z0-9_+=-]*[0-9][A-Za-z0-9_+=-]{31,}`), "***"},
	}
})

// quoted are the shapes of keys in sentences of servers alone: short or starred
// ones, as servers quote those they refuse. A command may hold such words.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:(?:sk|pk|rk|key|xai|gsk|hf|gh[a-z]|github_pat)[-_]|AIza)[A-Za-z0-9*._-]{4,}|\beyJ[\w.-]+|\S*\*{3,}\S*`)
})

// longRun matches a key if there is a digit in it. Names of models are cut by
// dashes, slashes and points, so they are left alone.
var longRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\w{24,}`) })

// mark stands for a key in a sentence.
const mark = "[key]"

const (
	longestQuote = 200     // bytes that are quoted of a server
	mostSearched = 1 << 10 // bytes that are looked at for it
	// shortestPart is how much of a secret's beginning is taken for a part of it
	// at the end of a text, in bytes.
	shortestPart = 4
)

// Quote makes a server's words fit for a sentence of ours: Scrub, cut to some
// 200 bytes.
func Quote(text string, secrets ...string) string {
	text = withoutSecrets(text, secrets)
	if len(text) > mostSearched {
		text = plain.Clip(text, mostSearched)
		if at := strings.LastIndexByte(text, ' '); at > 0 {
			text = text[:at] // half a key looks like none
		}
	}
	text = withoutKeys(text)
	if len(text) > longestQuote {
		text = plain.Clip(text, longestQuote) + "…"
	}
	return text
}

// Scrub puts a text on one line, without the secrets, in any of the forms they
// may come back in, and without anything else that looks like a key.
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

// withoutPart takes off the beginning of a secret at the end of a text. What is
// read of a server is bounded, and the bound may have cut the secret.
func withoutPart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= shortestPart; n-- {
		if rest, cut := strings.CutSuffix(text, secret[:n]); cut {
			return rest + mark
		}
	}
	return text
}

// Redact blanks what looks like a key in a command or a title, and cuts it to so
// many bytes.
func Redact(s string, most int) string {
	if len(s) > 4*most {
		s = plain.Clip(s, 4*most)
		if at := strings.LastIndexAny(s, " \t\n"); at > 0 {
			s = s[:at] // half a key looks like none
		}
	}
	for _, key := range shapes() {
		s = key.like.ReplaceAllString(s, key.left)
	}
	return plain.Clip(strings.TrimSpace(s), most)
}

// Conceals reports whether Redact would blank more of a command than a key: what
// a shell would run, or write to. A person cannot allow what is not shown.
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
