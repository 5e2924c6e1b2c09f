package acp

import (
	"regexp"
	"strings"
)

// secrets are the shapes that keys come in, each with what is left of it. The
// order matters: what is named is better cut where its name ends.
var secrets = []struct {
	shape *regexp.Regexp
	left  string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`), "$1 ***"},
	{regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw(?:or)?d))(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`), "$1$2***"},
	{regexp.MustCompile(`://[^/\s@]+@`), "://***@"},
	{regexp.MustCompile(`\b(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}`), "***"},
	{regexp.MustCompile(`\b[A-Za-z0-9_+=-]*[0-9][A-Za-z0-9_+=-]{31,}`), "***"},
}

// redact blanks what looks like a key, and cuts a text to so many bytes.
func redact(s string, most int) string {
	s = clip(s, 4*most)
	for _, secret := range secrets {
		s = secret.shape.ReplaceAllString(s, secret.left)
	}
	return clip(strings.TrimSpace(s), most)
}

// redacted also blanks the values that the agent's own environment was given.
func (b *Brain) redacted(s string, most int) string {
	s = clip(s, 4*most)
	for _, entry := range b.o.Env {
		if _, value, _ := strings.Cut(entry, "="); len(value) >= 8 {
			s = strings.ReplaceAll(s, value, "***")
		}
	}
	return redact(s, most)
}
