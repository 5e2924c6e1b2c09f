package agent

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
	// An option's, in the next word: not another option, and not what a shell fills in;
	// and the password behind a user's name.
	{regexp.MustCompile(`(?i)((?:^|\s)--?[\w-]*(?:api-?key|token|secret|passw(?:or)?d|passphrase)[ \t]+)("[^"]*"|'[^']*'|[^\s"'` + "`" + `;|&<>$-][^\s"',;|&<>]*)`), "$1***"},
	{regexp.MustCompile(`((?:^|\s)(?:-u|--user)(?:[ \t]+|=))(?:("[^":]*:)[^"]+|('[^':]*:)[^']+|([^\s"':;|&<>$]+:)[^\s"',;|&<>]+)`), "$1$2$3$4***"},
	{regexp.MustCompile(`://[^/\s@]+@`), "://***@"},
	{regexp.MustCompile(`\b(?:(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z])[-_]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{8,}`), "***"},
	{regexp.MustCompile(`\b[A-Za-z0-9_+=-]*[0-9][A-Za-z0-9_+=-]{31,}`), "***"},
}

// Redact blanks what looks like a key in a text of an agent's, and cuts it to so
// many bytes.
func Redact(s string, most int) string {
	if len(s) > 4*most {
		s = clip(s, 4*most)
		if at := strings.LastIndexAny(s, " \t\n"); at > 0 {
			s = s[:at] // half a key looks like none
		}
	}
	for _, secret := range secrets {
		s = secret.shape.ReplaceAllString(s, secret.left)
	}
	return clip(strings.TrimSpace(s), most)
}

// Conceals reports whether Redact would blank more of a command than a key: what
// a shell would run, or write to. Nobody can allow what he is not told.
func Conceals(command string) bool {
	for _, secret := range secrets {
		for _, blanked := range secret.shape.FindAllString(command, -1) {
			if strings.ContainsAny(blanked, "`;|&<>\n") || strings.Contains(blanked, "$(") {
				return true
			}
		}
	}
	return false
}
