package agent

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"unicode"
)

// likeKey matches what looks like a key, or a part of one: servers quote the
// one they refuse, starred out or not.
var likeKey = regexp.MustCompile(`(?i)\b(?:(?:sk|pk|rk|key|xai|gsk|hf|gh[a-z]|github_pat)[-_]|AIza|bearer )[A-Za-z0-9*._-]{4,}`)

// longestQuote bounds what is quoted of a server, in bytes.
const longestQuote = 200

// shortestPart is how much of a secret's beginning is taken for a part of it
// at the end of a text, in bytes.
const shortestPart = 4

// Quote makes what a server said fit to stand in a sentence of ours: on one
// line, at most some 200 bytes, without the secrets, in any of the forms they
// may come back in, and without anything else that looks like a key.
func Quote(text string, secrets ...string) string {
	text = oneLine(text)
	for _, secret := range secrets {
		secret = oneLine(secret)
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = strings.ReplaceAll(text, form, "[key]")
			text = withoutPart(text, form)
		}
	}
	text = likeKey.ReplaceAllString(text, "[key]")
	if len(text) > longestQuote {
		text = strings.ToValidUTF8(text[:longestQuote], "") + "..."
	}
	return text
}

// withoutPart takes off the beginning of a secret that a text ends with. What
// is read of a server is bounded, and the bound may have cut the secret.
func withoutPart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= shortestPart; n-- {
		if rest, cut := strings.CutSuffix(text, secret[:n]); cut {
			return rest + "[key]"
		}
	}
	return text
}

// oneLine has a single space for all white space, and nothing that does not
// print: it could take a terminal over, or hide a key from a search.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Because joins a quote of what a server said, if it said anything, to a
// sentence.
func Because(what, said string, secrets ...string) string {
	if said = Quote(said, secrets...); said == "" {
		return what
	}
	return what + ": " + said
}

// Away is an error that wraps ErrAway and goes on with a sentence: what is
// wrong with a server, and how to mend it.
func Away(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrAway}, args...)...)
}

// Address is where a server is, without what may be secret: no user, no query.
func Address(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// Redirected is where a Location header leads, as far as it may be shown.
func Redirected(location string, secrets ...string) string {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		return "another path"
	}
	return Quote(Address(u), secrets...)
}

// RetryAfter is a Retry-After header in words.
func RetryAfter(text string, secrets ...string) string {
	if strings.Trim(text, "0123456789.") == "" {
		return text + " s from now"
	}
	return Quote(text, secrets...)
}

// Unreachable makes one sentence, with a cause and a cure, of the error of a
// connection that was not made or not kept. It wraps ErrAway. The address is
// shown as it is given.
func Unreachable(address string, err error, secrets ...string) error {
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var expired x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Away("nothing listens at %s; is the server running?", address)
	case errors.As(err, &dns):
		return Away("there is no host %s; is the address right, and this machine online?", dns.Name)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Away("there is no way to %s; is it switched on, and this machine online?", address)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return Away("%s does not speak TLS; does url begin with http://?", address)
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &expired):
		return Away("the certificate of %s is not one this machine trusts; is its clock right?", address)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Away("%s cut the connection before its answer was complete", address)
	case errors.As(err, &timeout) && timeout.Timeout():
		return Away("%s does not answer; is it switched on, and this machine online?", address)
	}
	var inner *url.Error // it repeats the address, query and all
	if errors.As(err, &inner) {
		err = cmp.Or(inner.Err, err)
	}
	return Away("%s", Because(address+" cannot be used", err.Error(), secrets...))
}
