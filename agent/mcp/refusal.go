package mcp

import (
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
	"slices"
	"strings"
	"syscall"
	"time"

	"perch/agent"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What goes wrong on the way; explain makes sentences of it.
var (
	errSlow      = errors.New("it takes too long")
	errCut       = errors.New("the connection was cut")
	errNoMCP     = errors.New("what comes is not of the protocol")
	errTooLong   = fmt.Errorf("the answer is longer than %d MB, which is more than is taken; ask for less", mostMessage>>20)
	errDeaf      = errors.New("it does not read what it is told")
	errElsewhere = errors.New("it wants messages to go to another machine, which would be told the key")
	errBusy      = errors.New("too many requests are under way")
)

// absence is why a server cannot be used, in one sentence. It is an
// agent.ErrAway, whose own words are about brains.
type absence struct{ error }

func (absence) Is(target error) bool { return target == agent.ErrAway }
func (a absence) Unwrap() error      { return a.error }

func awayf(format string, args ...any) error { return absence{fmt.Errorf(format, args...)} }

// refusal is what a server says over HTTP instead of an answer.
type refusal struct {
	status  int
	said    string // one sentence of the server's; it may hold a key
	session bool   // it was asked within a session
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.status) }

// sentence finds what a server says went wrong, in any of the places where
// servers put it.
func sentence(data []byte) string {
	var e struct {
		Error       json.RawMessage `json:"error"`
		Message     json.RawMessage `json:"message"`
		Detail      json.RawMessage `json:"detail"`
		Description json.RawMessage `json:"error_description"`
	}
	text := string(data)
	if json.Unmarshal(data, &e) == nil {
		text = ""
		for _, raw := range []json.RawMessage{e.Description, e.Message, e.Detail, e.Error} {
			var inner struct{ Message string }
			if json.Unmarshal(raw, &text) == nil && text != "" {
				break
			}
			if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
				text = inner.Message
				break
			}
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a proxy's page
	}
	return text
}

// forgotten reports whether a server refuses a call because it no longer knows
// the session, as one that has been started anew.
func forgotten(l *link, err error) bool {
	var r *refusal
	return errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &r) && r.status == http.StatusNotFound && r.session && l.ctx.Err() == nil
}

// answerOf is the error that a server gave as its answer, or nil. The SDK has
// errors of its own in the same type.
func answerOf(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || -32005 <= e.Code && e.Code <= -32003 && slices.Contains(
		[]string{"rejected by transport", "server is closing", "client is closing"}, e.Message) {
		return nil
	}
	return e
}

// broken makes a sentence of a request that failed, and gives up the connection
// where it is at fault.
func (s *Server) broken(ctx context.Context, l *link, err error) error {
	refused := answerOf(err)
	var status *refusal
	switch {
	case s.ctx.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), errSlow) && s.deaf() {
			l.lose(awayf("%s has not answered for a while and is connected anew", s.where()))
		}
		return s.slow(ctx)
	case errors.Is(err, errTooLong), errors.Is(err, errNoMCP), errors.Is(err, errBusy):
		return s.explain(err)
	case refused != nil:
		s.heard()
		return errors.New(because("it refuses", s.quote(refused.Message, mostQuote)))
	case errors.As(err, &status) && status.status != http.StatusUnauthorized && status.status != http.StatusNotFound:
		return s.explain(err)
	case l.child != nil && (errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF)), l.ctx.Err() != nil:
		// Why is told where the end of the process is seen to.
		select {
		case <-l.ctx.Done():
			return l.why()
		case <-ctx.Done():
			return s.slow(ctx)
		}
	}
	err = s.explain(err)
	l.lose(err)
	return err
}

// deaf counts a call that was not answered in time.
func (s *Server) deaf() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent++
	return s.silent >= silences
}

// slow is what is told where a context has ended.
func (s *Server) slow(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return awayf("%s does not answer in time", s.where())
	}
	return ctx.Err()
}

// explain makes one sentence of an error, with its cause and its cure.
func (s *Server) explain(err error) error {
	var told absence
	var status *refusal
	refused := answerOf(err)
	where := s.where()
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &status):
		return s.refusal(status)
	case errors.Is(err, errSlow):
		return awayf("%s does not answer in %v; see that it runs, and that it is an MCP server", where, s.o.ConnectWithin.Round(time.Millisecond))
	case errors.Is(err, errNoMCP):
		if s.url == nil {
			return awayf("%s does not speak MCP; see that its arguments make it an MCP server on standard input and output", where)
		}
		return awayf("%s is not an MCP server; is the path in url right (such as /mcp)?", where)
	case refused != nil:
		return awayf("%s", because(where+" refuses to begin", s.quote(refused.Message, mostQuote)))
	case errors.Is(err, errTooLong), errors.Is(err, errDeaf), errors.Is(err, errElsewhere), errors.Is(err, errBusy):
		return awayf("%s: %w", where, known(err))
	case errors.Is(err, sdk.ErrSessionMissing):
		return awayf("%s has been started anew and does not know the session any more", where)
	}
	return s.unreached(err)
}

// known is the error of this package in a chain that others have put words to.
func known(err error) error {
	all := []error{errTooLong, errDeaf, errElsewhere, errBusy}
	return all[slices.IndexFunc(all, func(e error) bool { return errors.Is(err, e) })]
}

func (s *Server) refusal(r *refusal) error {
	where := s.where()
	switch {
	case r.status == http.StatusUnauthorized && s.o.Key == "" && len(s.o.Headers) == 0:
		return awayf("%s wants a key and none is set", where)
	case r.status == http.StatusUnauthorized:
		return awayf("%s refuses the key; set the one it was given", where)
	case r.status == http.StatusForbidden:
		return awayf("%s", because(where+" does not allow it with this key", s.quote(r.said, mostQuote)))
	case r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed:
		return awayf("there is no MCP server at %s (HTTP %d); is the path in url right (such as /mcp)?", where, r.status)
	case r.status == http.StatusTooManyRequests:
		return awayf("%s has had too many requests", where)
	case r.status >= 300 && r.status < 400:
		return awayf("%s sends elsewhere (HTTP %d); put the right address into url", where, r.status)
	case r.status >= 500:
		return awayf("%s", because(fmt.Sprintf("%s has failed (HTTP %d)", where, r.status), s.quote(r.said, mostQuote)))
	}
	return awayf("%s", because(fmt.Sprintf("%s refuses the request (HTTP %d)", where, r.status), s.quote(r.said, mostQuote)))
}

// unreached is a connection that was not made, or not kept.
func (s *Server) unreached(err error) error {
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var timeout net.Error
	where := s.where()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), syscall.ECONNREFUSED.Error()): // the SDK does not wrap all
		return awayf("nothing listens at %s; is the server running?", where)
	case errors.As(err, &dns):
		return awayf("there is no host %s; is the address right?", dns.Name)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return awayf("there is no way to %s; is the machine on, and on this network?", where)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return awayf("%s does not speak TLS; does url begin with http://?", where)
	case errors.As(err, &authority), errors.As(err, &host):
		return awayf("the certificate of %s is not one this machine trusts", where)
	case errors.Is(err, errCut), errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "retries without progress"):
		return awayf("%s has cut the connection", where)
	case errors.As(err, &timeout) && timeout.Timeout():
		return awayf("%s does not answer; is the machine on?", where)
	}
	// A url.Error repeats the address, query and all.
	var inner *url.Error
	if errors.As(err, &inner) && inner.Err != nil {
		err = inner.Err
	}
	return awayf("%s", because(where+" cannot be used", s.quote(err.Error(), mostQuote)))
}

// because joins what somebody said to a sentence.
func because(what, said string) string {
	if said == "" {
		return what
	}
	return what + ": " + said
}

// mostQuote bounds what is quoted of a server, in bytes.
const mostQuote = 200

// likeKey matches what looks like a key: servers quote the one they refuse.
var likeKey = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[^\s"']+|://[^/\s@]+@|\b(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z]|AKIA|AIza|eyJ|hf)[-_][-_.A-Za-z0-9]{6,}|\beyJ[-_.A-Za-z0-9]{16,}`)

// named matches what is called a key.
var named = regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|passw(?:or)?d))(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`)

// quote is a server's text for a sentence of ours, or the log: on one line,
// with at most so many bytes, and without a key.
func (s *Server) quote(text string, most int) string {
	text = clip(text, mostRefused) // well beyond what is shown, where half a key may be left
	for _, secret := range s.hidden {
		text = strings.ReplaceAll(text, secret, "[key]")
	}
	text = likeKey.ReplaceAllString(text, "[key]")
	text = named.ReplaceAllString(text, "$1$2[key]")
	text = strings.Join(strings.Fields(strings.Map(printable, text)), " ")
	if len(text) > most {
		text = clip(text, most) + "..."
	}
	return text
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// secrets are the parts of the options that are never shown, longest first, so
// that none is cut out of another's middle.
func (s *Server) secrets() (all []string) {
	add := func(text string, least int) {
		if len(text) >= least {
			all = append(all, text)
		}
	}
	add(s.o.Key, 1)
	for _, value := range s.o.Headers {
		add(value, 4)
	}
	for _, entry := range s.o.Env {
		_, value, _ := strings.Cut(entry, "=")
		add(value, 8)
	}
	for i, arg := range s.o.Command {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && secretive.MatchString(name):
			add(value, 4)
		case i > 0 && secretive.MatchString(s.o.Command[i-1]) && !strings.Contains(s.o.Command[i-1], "="):
			add(arg, 4)
		}
	}
	if s.url != nil {
		password, _ := s.url.User.Password()
		add(password, 1)
		for part := range strings.SplitSeq(s.url.Path, "/") {
			add(part, longestWord+1)
		}
		for _, values := range s.url.Query() {
			for _, value := range values {
				add(value, 4)
				add(url.QueryEscape(value), 4)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// secretive matches the name of an argument whose value is not shown.
var secretive = regexp.MustCompile(`(?i)(key|token|secret|passw(or)?d|auth|header)$`)
