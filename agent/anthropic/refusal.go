package anthropic

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

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/agent"
)

// refusal is what the API says instead of an answer.
type refusal struct {
	status int
	kind   string // of the error, as the API names it
	said   string // one sentence of the server's; it may hold a key
	after  string // Retry-After
}

// kinds are the statuses that errors stand for which come within a stream,
// after its status has been sent.
var kinds = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// refused finds the API's own error in one of the SDK's.
func refused(err error) (refusal, bool) {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return refusal{}, false
	}
	r := refusal{status: e.StatusCode, kind: string(e.Type())}
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal([]byte(e.RawJSON()), &body) == nil {
		r.said, r.kind = body.Error.Message, cmp.Or(body.Error.Type, r.kind)
	}
	if r.status < 400 {
		if r.status = kinds[r.kind]; r.status == 0 {
			r.status = http.StatusBadGateway
		}
	}
	if e.Response != nil {
		r.after = e.Response.Header.Get("Retry-After")
	}
	return r, true
}

// likeKey matches what looks like a key, or a part of one.
var likeKey = regexp.MustCompile(`(?i)\b(?:(?:sk|pk|key)[-_]|bearer )[A-Za-z0-9*._-]{4,}`)

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
	switch {
	case errors.As(err, &out):
		return out.error
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if r, ok := refused(err); ok {
		return e.refusal(ctx, r)
	}
	return e.broken(err)
}

func (e *Engine) refusal(ctx context.Context, r refusal) error {
	switch {
	case r.status == http.StatusUnauthorized && e.o.Key == "":
		return away("%s wants a key and none is set (brains[..].key)", show(e.base))
	case r.status == http.StatusUnauthorized:
		return away("the key is refused (brains[..].key)")
	case r.status == http.StatusForbidden:
		return away("%s", e.because("the key is refused (brains[..].key)", r.said))
	case r.status == http.StatusPaymentRequired, strings.Contains(r.said, "credit balance"):
		return away("%s", e.because("the account has no credit left", r.said))
	case r.status == http.StatusNotFound:
		return e.notFound(ctx, r)
	case r.status == http.StatusTooManyRequests && r.after != "":
		return away("%s has had too many requests; it asks to wait until %s (Retry-After)", show(e.base), e.quote(after(r.after)))
	case r.status == http.StatusTooManyRequests:
		return away("%s", e.because("it has had too many requests", r.said))
	case r.status == 529:
		return away("%s is overloaded; try again in a moment", show(e.base))
	case r.status >= 500 || r.status == http.StatusRequestTimeout:
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

// broken is a connection that was not made, or not kept.
func (e *Engine) broken(err error) error {
	var elsewhere *moved
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var timeout net.Error
	var syntax *json.SyntaxError
	where := show(e.base)
	switch {
	case errors.Is(err, errSlow):
		return away("%s: %s", where, strings.TrimPrefix(err.Error(), errSlow.Error()+": "))
	case errors.As(err, &elsewhere):
		return away("%s sends elsewhere (to %s); put the right address into url", where, location(elsewhere.to))
	case errors.Is(err, syscall.ECONNREFUSED):
		return away("nothing listens at %s; is the server running?", where)
	case errors.As(err, &dns):
		return away("there is no host %s; is the address right, and this machine online?", dns.Name)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return away("there is no way to %s; is this machine online?", where)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return away("%s does not speak TLS; does url begin with http://?", where)
	case errors.As(err, &authority), errors.As(err, &host):
		return away("the certificate of %s is not one this machine trusts", where)
	case errors.Is(err, errGarbage), errors.As(err, &syntax):
		return away("%s: %s; is it the right address?", where, errGarbage)
	case errors.Is(err, errTooMuch):
		return away("%s: %s", where, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return away("%s cut the connection before its answer was complete", where)
	case errors.As(err, &timeout) && timeout.Timeout():
		return away("%s does not answer; is this machine online?", where)
	}
	var inner *url.Error // it repeats the address
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return away("%s", e.because(where+" cannot be used", err.Error()))
}

func location(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "another path"
	}
	return show(u)
}
