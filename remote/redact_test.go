package remote_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode"

	"perch/remote"
)

// canaryKey is a key of which no part must be shown in any form.
const canaryKey = "canary/0123456789+abcdef"

// TestQuote checks that quoted text of a server is on one line, short, and without keys.
func TestQuote(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"words":                     {"the model is away", "the model is away"},
		"many lines":                {" a\r\n\tb\v c ", "a b c"},
		"the key":                   {"no " + canaryKey + " here", "no [key] here"},
		"the key in an address":     {"GET /v1?k=" + url.QueryEscape(canaryKey) + "&x", "GET /v1?k=[key]&x"},
		"the key in a path":         {"GET /" + url.PathEscape(canaryKey), "GET /[key]"},
		"the key, cut by a bound":   {"Incorrect API key: " + canaryKey[:11], "Incorrect API key: [key]"},
		"hidden from a search":      {"no can\u200bary\x00/0123456789+abcdef", "no [key]"},
		"another key":               {"sk-proj-abcd, pk_live_1234, xai-abcdef, gsk_abcdef, hf_abcdef", "[key], [key], [key], [key], [key]"},
		"a starred one":             {"sk-ant-ca***-**def.", "[key]"},
		"a token":                   {"Authorization: Bearer abc.def", "Authorization: Bearer [key]"},
		"of Google and GitHub":      {"AIzaSyA1234567 ghp_abcdef github_pat_11AA", "[key] [key] [key]"},
		"no key":                    {"a monkey-wrench, a task-list and a risk", "a monkey-wrench, a task-list and a risk"},
		"what would rule a screen":  {"\x1b[2Jred\u009b31m \u202eback", "[2Jred31m back"},
		"bytes that are no text":    {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"more than anybody reads":   {strings.Repeat("é", 300), strings.Repeat("é", 100) + "…"},
		"a key at the end of a cut": {strings.Repeat("x", 190) + " " + canaryKey + "!", strings.Repeat("x", 190) + " [key]!"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := remote.Quote(c.said, "", canaryKey); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestWhatLooksLikeAKeyIsBlanked(t *testing.T) {
	for in, want := range map[string]string{
		"npm test":                  "npm test",
		"Edit docs/architecture.md": "Edit docs/architecture.md",
		`curl -H "Authorization: Bearer abc.def-canary" x`: `curl -H "Authorization: Bearer ***" x`,
		"OPENAI_API_KEY=canary make":                       "OPENAI_API_KEY=*** make",
		`{"token": "canary"}`:                              `{"token": ***}`,
		"git clone https://me:canary@h/x":                  "git clone https://***@h/x",
		"use sk-canary12345 there":                         "use *** there",
		"push with ghp_canary12345":                        "push with ***",
		"claude --dangerously-skip-permissions":            "claude --dangerously-skip-permissions",
		"gh auth login --token canary1 --hostname h":       "gh auth login --token *** --hostname h",
		`deploy --db-password "canary two" prod`:           `deploy --db-password *** prod`,
		"psql --api-key 'canary'":                          "psql --api-key ***",
		"curl -u me:canary https://h/x":                    "curl -u me:*** https://h/x",
		`curl --user "me:canary two" https://h/x`:          `curl --user "me:***" https://h/x`,
		"serve --token-file /etc/perch/token":              "serve --token-file /etc/perch/token",
		"login --password-stdin --token --verbose":         "login --password-stdin --token --verbose",
		"perch robot token kitchen":                        "perch robot token kitchen",
		"python -u main.py":                                "python -u main.py",
		"0123456789abcdefcanary0123456789ab":               "***",
		"x " + strings.Repeat("bearer "+strings.Repeat("y", 378)+" ", 2) + "0123456789canary0123456789canary0123456789": "x bearer *** bearer ***",
		strings.Repeat("ä", 200): strings.Repeat("ä", 100),
	} {
		if got := remote.Redact(in, 200); got != want {
			t.Errorf("%q is shown as %q, not %q", in, got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("Incorrect API key provided: "+canaryKey+".", canaryKey)
	f.Add("bearer \x00x", "x y")
	f.Fuzz(func(t *testing.T, said, secret string) {
		got := remote.Quote(said, secret)
		if len(got) > 203+len("[key]") || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is not fit to be shown", got)
		}
		// A secret may also occur in the text of a mark, which does not count.
		if len(secret) > 5 && !strings.HasSuffix(secret, ".") && !strings.Contains(secret, " ") &&
			strings.Contains(strings.ReplaceAll(got, "[key]", "\x00"), secret) {
			t.Errorf("%q holds %q", got, secret)
		}
	})
}
