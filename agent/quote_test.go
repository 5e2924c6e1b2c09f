package agent_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"perch/agent"
)

// canaryKey is a key that must never come back, in any form or part.
const canaryKey = "canary/0123456789+abcdef"

// TestQuote: what a server says is fit to be shown, and holds no key.
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
		"a token":                   {"Authorization: Bearer abc.def", "Authorization: [key]"},
		"of Google and GitHub":      {"AIzaSyA1234567 ghp_abcdef github_pat_11AA", "[key] [key] [key]"},
		"no key":                    {"a monkey-wrench, a task-list and a risk", "a monkey-wrench, a task-list and a risk"},
		"what would rule a screen":  {"\x1b[2Jred\u009b31m \u202eback", "[2Jred31m back"},
		"bytes that are no text":    {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"more than anybody reads":   {strings.Repeat("é", 300), strings.Repeat("é", 100) + "..."},
		"a key at the end of a cut": {strings.Repeat("x", 190) + " " + canaryKey + "!", strings.Repeat("x", 190) + " [key]!"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := agent.Quote(c.said, "", canaryKey); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestSaidOfServers: what else is said of a server.
func TestSaidOfServers(t *testing.T) {
	u, err := url.Parse("https://user:" + url.QueryEscape(canaryKey) + "@host:8443/v1?key=" + url.QueryEscape(canaryKey))
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		agent.Address(u): "https://host:8443/v1",
		agent.Redirected("https://other/v1?k=" + canaryKey):               "https://other/v1",
		agent.Redirected("https://other/"+canaryKey, canaryKey):           "https://other/[key]",
		agent.Redirected("/login"):                                        "another path",
		agent.RetryAfter("1.5"):                                           "1.5 s from now",
		agent.RetryAfter("Sat, 21 Nov 2026 13:00:00 GMT"):                 "Sat, 21 Nov 2026 13:00:00 GMT",
		agent.RetryAfter(canaryKey, canaryKey):                            "[key]",
		agent.Because("it failed", "\n"):                                  "it failed",
		agent.Because("it failed", "out of memory "+canaryKey, canaryKey): "it failed: out of memory [key]",
		agent.Away("%s is away", "all").Error():                           agent.ErrAway.Error() + ": all is away",
		fmt.Sprint(errors.Is(agent.Away("all are away"), agent.ErrAway)):  "true",
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestUnreachable: one sentence for each way in which a connection fails.
func TestUnreachable(t *testing.T) {
	for want, err := range map[string]error{
		"nothing listens at http://h/v1":                &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"there is no host h.lan":                        &net.DNSError{Name: "h.lan", Err: "no such host"},
		"there is no way to http://h/v1":                &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"http://h/v1 does not speak TLS":                errors.New("http: server gave HTTP response to HTTPS client"),
		"the certificate of http://h/v1":                x509.UnknownAuthorityError{},
		"is its clock right?":                           x509.CertificateInvalidError{Reason: x509.Expired},
		"http://h/v1 cut the connection":                fmt.Errorf("read: %w", io.ErrUnexpectedEOF),
		"http://h/v1 does not answer":                   context.DeadlineExceeded,
		"http://h/v1 cannot be used: proxy wants [key]": errors.New("proxy wants " + canaryKey),
	} {
		wrapped := &url.Error{Op: "Post", URL: "http://h/v1?key=" + canaryKey, Err: err}
		got := agent.Unreachable("http://h/v1", wrapped, canaryKey)
		if !errors.Is(got, agent.ErrAway) || !strings.Contains(got.Error(), want) || strings.Contains(got.Error(), "canary") {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("Incorrect API key provided: "+canaryKey+".", canaryKey)
	f.Add("bearer \x00x", "x y")
	f.Fuzz(func(t *testing.T, said, secret string) {
		got := agent.Quote(said, secret)
		if len(got) > 203+len("[key]") || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is not fit to be shown", got)
		}
		// What the marks themselves hold is no part of a key.
		if len(secret) > 5 && !strings.HasSuffix(secret, ".") && !strings.Contains(secret, " ") && strings.Contains(strings.ReplaceAll(got, "[key]", "\x00"), secret) {
			t.Errorf("%q holds %q", got, secret)
		}
	})
}
