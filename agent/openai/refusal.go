package openai

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"perch/agent"
)

// refusal is what a server says instead of an answer.
type refusal struct {
	status int
	said   string // one sentence of the server's; it may hold a key
	after  string // Retry-After
	to     string // Location
	midway bool   // something had been said by then
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.status) }

// refused reads what comes with an HTTP status that is no success.
func refused(response *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, mostRefused))
	if err != nil && len(data) == 0 {
		data = nil // the status tells enough
	}
	return &refusal{status: response.StatusCode, said: sentence(data),
		after: response.Header.Get("Retry-After"), to: response.Header.Get("Location")}
}

// sentence finds what a server says went wrong, in any of the places where
// servers put it.
func sentence(data []byte) string {
	var e struct {
		Error, Message, Detail json.RawMessage
	}
	text := string(data)
	if json.Unmarshal(data, &e) == nil {
		text = ""
		for _, raw := range []json.RawMessage{e.Error, e.Message, e.Detail} {
			var inner struct{ Message string }
			switch {
			case !there(raw):
			case json.Unmarshal(raw, &text) == nil:
			case json.Unmarshal(raw, &inner) == nil && inner.Message != "":
				text = inner.Message
			default:
				text = string(raw)
			}
			if text != "" {
				break
			}
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a proxy's page
	}
	return text
}

// likeKey matches what looks like a key: servers quote the one they refuse,
// or parts of it.
var likeKey = regexp.MustCompile(`(?i)\b(?:(?:sk|pk|key|xai|gsk|hf)[-_]|bearer )[A-Za-z0-9*._-]{4,}`)

// longestQuote bounds what is quoted of a server, in bytes.
const longestQuote = 200

// quote is a server's text for a sentence of ours: on one line, short, and
// without a key.
func (e *Engine) quote(text string) string {
	if e.o.Key != "" {
		text = strings.ReplaceAll(text, e.o.Key, "[key]")
	}
	text = likeKey.ReplaceAllString(text, "[key]")
	text = strings.Join(strings.Fields(strings.Map(printable, text)), " ")
	if len(text) > longestQuote {
		text = strings.ToValidUTF8(text[:longestQuote], "") + "..."
	}
	return text
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// because joins what a server said to a sentence.
func (e *Engine) because(what, said string) string {
	if said = e.quote(said); said == "" {
		return what
	}
	return what + ": " + said
}

// show is an address without what may be secret in it.
func show(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

func away(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{agent.ErrAway}, args...)...)
}

// explain makes one sentence of an error, with its cause and its cure.
func (e *Engine) explain(ctx context.Context, err error) error {
	var out outError
	var r *refusal
	switch {
	case errors.As(err, &out):
		return out.error
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &r):
		return e.refusal(ctx, r)
	}
	return e.broken(err)
}

func (e *Engine) refusal(ctx context.Context, r *refusal) error {
	said := strings.ToLower(r.said)
	switch {
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		if e.o.Key == "" {
			return away("%s wants a key and none is set (brains[..].key)", show(e.base))
		}
		if r.status == http.StatusForbidden {
			return away("%s", e.because("the key is refused (brains[..].key)", r.said))
		}
		return away("the key is refused (brains[..].key)")
	case r.status == http.StatusNotFound,
		r.status == http.StatusBadRequest && strings.Contains(said, "model") && (strings.Contains(said, "not found") || strings.Contains(said, "does not exist")):
		return e.notFound(ctx, r)
	case r.status == http.StatusPaymentRequired:
		return away("%s", e.because("the account has no credit left", r.said))
	case r.status == http.StatusTooManyRequests:
		if r.after != "" {
			return away("%s has had too many requests; it asks to wait until %s (Retry-After)", show(e.base), e.quote(after(r.after)))
		}
		return away("%s", e.because("it has had too many requests", r.said))
	case r.status == http.StatusServiceUnavailable && strings.Contains(said, "loading"):
		return away("the model %s is still being loaded; try again in a moment", e.o.Model)
	case r.status >= 300 && r.status < 400:
		return away("%s sends elsewhere (HTTP %d to %s); put the right address into url", show(e.base), r.status, location(r.to))
	case r.status >= 500 || r.status == http.StatusRequestTimeout || r.status == http.StatusTooEarly:
		return away("%s", e.because(fmt.Sprintf("%s has failed (HTTP %d)", show(e.base), r.status), r.said))
	}
	return errors.New(e.because(fmt.Sprintf("the server refuses the request (HTTP %d)", r.status), r.said))
}

// after is a Retry-After in words.
func after(text string) string {
	if strings.Trim(text, "0123456789.") == "" {
		return text + " s from now"
	}
	return text
}

func location(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "another path"
	}
	return show(u)
}

// broken is a connection that was not made, or not kept.
func (e *Engine) broken(err error) error {
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var timeout net.Error
	where := show(e.base)
	switch {
	case errors.Is(err, errSlow):
		return away("%s: %s", where, strings.TrimPrefix(err.Error(), errSlow.Error()+": "))
	case errors.Is(err, syscall.ECONNREFUSED):
		return away("nothing listens at %s; is the server running?", where)
	case errors.As(err, &dns):
		return away("there is no host %s; is the address right?", dns.Name)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return away("there is no way to %s; is the machine on, and on this network?", where)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return away("%s does not speak TLS; does url begin with http://?", where)
	case errors.As(err, &authority), errors.As(err, &host):
		return away("the certificate of %s is not one this machine trusts", where)
	case errors.Is(err, errGarbage):
		return away("%s: %s; is it the base address, with its /v1?", where, err)
	case errors.Is(err, errTooLong), errors.Is(err, errTooMuch):
		return away("%s: %s", where, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return away("%s cut the connection before its answer was complete", where)
	case errors.As(err, &timeout) && timeout.Timeout():
		return away("%s does not answer; is the machine on?", where)
	}
	// A url.Error repeats the address, query and all.
	var inner *url.Error
	if errors.As(err, &inner) {
		err = cmp.Or(inner.Err, err)
	}
	return away("%s", e.because(where+" cannot be used", err.Error()))
}
